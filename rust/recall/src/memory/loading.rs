//! How parts come into memory.
//!
//! A load begins by declaring that changes gather; then the caller waits until the store holds everything that was
//! delivered by then ([`Progress::since`], [`Recall::revision`]), reads it, and fills, at once or in chunks in the order of
//! sequences. The gathered changes are applied on top: they repeat what the store may hold already, in order, and each is
//! idempotent, so that each chunk may be read from a later state of the store. Where a load ends early, its chunks stay and
//! changes go on gathering: the next load needs only the rest. Several callers may load the same at once: the first to
//! fill all counts, and a part with loaders stays, so that no fill meets a part that began after it.

use std::sync::Arc;

use super::inbox::Later;
use super::part::{Part, Progress, StoredDocuments};
use super::registry::Registry;
use crate::Recall;

impl Recall {
    /// Whether a part is in memory, which counts as a use of it.
    pub fn has_part(&self, tenant: &str, user: &str, uid: u64) -> bool {
        let now = self.now();
        self.registry.lock().has_part(tenant, user, uid, now)
    }

    /// From where on the caller must fill the part, or abandon it; `None` if it is in memory.
    pub fn begin_part(&self, tenant: &str, user: &str, uid: u64) -> Option<Progress> {
        let now = self.now();
        let mut registry = self.registry.lock();
        if registry.has_part(tenant, user, uid, now) {
            return None;
        }
        let part = registry.part_or_add(tenant, user, uid);
        part.add_loader();
        part.touch(now);
        Some(part.progress())
    }

    /// Whether the caller must list the user's parts and declare them, then finish, or abandon the user; false if all
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

    /// Keeps a user in memory until `release_user`; false if not all of the user's parts are there.
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

    /// Those of the user's parts that the caller must fill, or abandon, each with the sequence through which it is loaded.
    /// Where another caller has finished the user meanwhile, parts that are not here hold nothing.
    pub fn declare_parts(&self, tenant: &str, user: &str, uids: &[u64]) -> Vec<(u64, u64)> {
        let now = self.now();
        let mut registry = self.registry.lock();
        let mut missing = Vec::new();
        for uid in uids {
            let complete = registry
                .user(tenant, user)
                .is_some_and(|state| state.complete);
            if complete && registry.part(tenant, user, *uid).is_none() {
                continue;
            }
            let part = registry.part_or_add(tenant, user, *uid);
            part.touch(now);
            if !part.is_ready() {
                part.add_loader();
                missing.push((*uid, part.progress().loaded));
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

    /// Takes what the store holds of a part, or the next chunk of that, and `later` what it lacks of what was delivered
    /// before the load began; the vectors are those of each message's present revision.
    ///
    /// What is filled ends the load of the part where nothing follows; else that goes on.
    pub fn fill_part(
        &self,
        tenant: &str,
        user: &str,
        uid: u64,
        conversation_id: &str,
        stored: StoredDocuments,
        later: Later,
    ) {
        let part = self.registry.lock().part(tenant, user, uid).cloned();
        if let Some(part) = part {
            let is_last = stored.through.is_none();
            part.fill(conversation_id, stored, later, &self.analyzer);
            part.touch(self.now());
            if is_last {
                let registry = self.registry.lock();
                part.end_loader();
                drop(registry);
            }
        }
        self.evict();
    }

    /// Ends a load that failed: of a part, or of the user where there is no `uid`. What was loaded stays, and changes go on
    /// gathering for it, so that the next load needs only the rest.
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

/// Takes out the parts that nobody loads any more and that hold nothing that a load could go on with.
fn forget_unfinished(registry: &mut Registry, tenant: &str, user: &str) -> Vec<Arc<Part>> {
    if registry
        .user(tenant, user)
        .is_some_and(|state| state.loaders > 0)
    {
        return Vec::new();
    }
    let is_useless = |part: &Part| !part.is_ready() && !part.is_partial() && part.loaders() == 0;
    let forgotten = registry.take_parts(tenant, user, is_useless);
    if registry
        .user(tenant, user)
        .is_some_and(|state| !state.complete)
    {
        registry.remove_if_idle(tenant, user);
    }
    forgotten
}
