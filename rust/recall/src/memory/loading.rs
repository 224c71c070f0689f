//! How parts come into memory.
//!
//! A load begins by declaring that changes gather; then the caller waits until the store holds everything that was
//! delivered by then ([`Recall::revision`]), reads it, and fills. The gathered changes are applied on top: they repeat what the store may
//! hold already, in order, and each is idempotent. Several callers may load the same at once: the first fill counts, and
//! a part with loaders stays, so that no fill meets a part that began after it.

use std::sync::Arc;

use super::inbox::Later;
use super::part::{Part, StoredDocument};
use super::registry::Registry;
use crate::Recall;

impl Recall {
    /// Whether the caller must fill the part, or abandon it; false where it is in memory.
    pub fn begin_part(&self, tenant: &str, user: &str, uid: u64) -> bool {
        let now = self.now();
        let mut registry = self.registry.lock();
        if let Some(state) = registry.user_mut(tenant, user) {
            state.used = now;
            match state.parts.get(&uid) {
                Some(part) if part.is_ready() => {
                    part.touch(now);
                    return false;
                }
                None if state.complete => return false,
                _ => {}
            }
        }
        let part = registry.part_or_add(tenant, user, uid);
        part.add_loader();
        part.touch(now);
        true
    }

    /// Whether the caller must list the user's parts and declare them, then finish, or abandon the user; false where all
    /// of them are in memory.
    pub fn begin_user(&self, tenant: &str, user: &str) -> bool {
        let now = self.now();
        let mut registry = self.registry.lock();
        if let Some(state) = registry.user_mut(tenant, user)
            && state.complete
        {
            state.touch(now);
            return false;
        }
        registry.add_user_loader(tenant, user);
        true
    }

    /// Keeps a user in memory until `release_user`; false where not all of the user's parts are there.
    pub fn hold_user(&self, tenant: &str, user: &str) -> bool {
        let now = self.now();
        let mut registry = self.registry.lock();
        let Some(state) = registry
            .user_mut(tenant, user)
            .filter(|state| state.complete)
        else {
            return false;
        };
        state.touch(now);
        registry.add_user_loader(tenant, user);
        true
    }

    /// Ends what `hold_user` began.
    pub fn release_user(&self, tenant: &str, user: &str) {
        self.registry.lock().end_user_loader(tenant, user);
        self.evict();
    }

    /// Those of the user's parts that the caller must fill, or abandon.
    pub fn declare_parts(&self, tenant: &str, user: &str, uids: &[u64]) -> Vec<u64> {
        let now = self.now();
        let mut registry = self.registry.lock();
        let mut missing = Vec::new();
        for uid in uids {
            let part = registry.part_or_add(tenant, user, *uid);
            part.touch(now);
            if !part.is_ready() {
                part.add_loader();
                missing.push(*uid);
            }
        }
        missing
    }

    /// Ends the load of a user whose declared parts are all filled: the parts that appeared meanwhile hold all that
    /// they ever held.
    pub fn finish_user(&self, tenant: &str, user: &str) {
        let now = self.now();
        let mut registry = self.registry.lock();
        if let Some(state) = registry.user_mut(tenant, user)
            && state.loaders > 0
        {
            state.complete = true;
            state.parts.values().for_each(|part| part.settle());
            state.touch(now);
            registry.end_user_loader(tenant, user);
        }
        drop(registry);
        self.evict();
    }

    /// Takes what the store holds of a part, and `later` what it lacks of what was delivered before the load began; the
    /// vectors are those of each message's present revision.
    pub fn fill_part(
        &self,
        tenant: &str,
        user: &str,
        uid: u64,
        conversation_id: &str,
        documents: Vec<StoredDocument>,
        later: Later,
    ) {
        let part = self.registry.lock().part(tenant, user, uid).cloned();
        if let Some(part) = part {
            part.fill(conversation_id, documents, later, &self.analyzer);
            part.touch(self.now());
            let registry = self.registry.lock();
            part.end_loader();
            drop(registry);
        }
        self.evict();
    }

    /// Ends a load that failed: of a part, or of the user where there is no `uid`.
    pub fn abandon(&self, tenant: &str, user: &str, uid: Option<u64>) {
        let mut registry = self.registry.lock();
        match uid {
            None => registry.end_user_loader(tenant, user),
            Some(uid) => {
                if let Some(part) = registry.part(tenant, user, uid) {
                    part.end_loader();
                }
            }
        }
        let forgotten = forget_unfinished(&mut registry, tenant, user);
        drop(registry);
        drop(forgotten);
    }
}

/// Takes out the parts that nobody loads any more and that are not ready.
fn forget_unfinished(registry: &mut Registry, tenant: &str, user: &str) -> Vec<Arc<Part>> {
    if registry
        .user(tenant, user)
        .is_some_and(|state| state.loaders > 0)
    {
        return Vec::new();
    }
    let forgotten =
        registry.take_parts(tenant, user, |part| !part.is_ready() && part.loaders() == 0);
    if registry
        .user(tenant, user)
        .is_some_and(|state| !state.complete)
    {
        registry.remove_if_idle(tenant, user);
    }
    forgotten
}
