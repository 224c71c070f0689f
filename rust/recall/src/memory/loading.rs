//! How threads come into memory.
//!
//! A load begins by declaring that changes gather; then the caller waits until the store holds everything that was
//! delivered by then ([`Recall::revision`]), reads it, and fills. The gathered changes are applied on top: they repeat what the store may
//! hold already, in order, and each is idempotent. Several callers may load the same at once: the first fill counts, and
//! a thread with loaders stays, so that no fill meets a thread that began after it.

use std::sync::Arc;

use super::inbox::Later;
use super::registry::Registry;
use super::thread::{StoredDocument, Thread};
use crate::Recall;

impl Recall {
    /// Whether the caller must fill the thread, or abandon it; false where it is in memory.
    pub fn begin_thread(&self, tenant: &str, user: &str, uid: u64) -> bool {
        let now = self.now();
        let mut registry = self.registry.lock();
        if let Some(state) = registry.user_mut(tenant, user) {
            state.used = now;
            match state.threads.get(&uid) {
                Some(thread) if thread.is_ready() => {
                    thread.touch(now);
                    return false;
                }
                None if state.complete => return false,
                _ => {}
            }
        }
        let thread = registry.thread_or_add(tenant, user, uid);
        thread.add_loader();
        thread.touch(now);
        true
    }

    /// Whether the caller must list the user's threads and declare them, then finish, or abandon the user; false where all
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

    /// Keeps a user in memory until `release_user`; false where not all of the user's threads are there.
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

    /// Those of the user's threads that the caller must fill, or abandon.
    pub fn declare_threads(&self, tenant: &str, user: &str, uids: &[u64]) -> Vec<u64> {
        let now = self.now();
        let mut registry = self.registry.lock();
        let mut missing = Vec::new();
        for uid in uids {
            let thread = registry.thread_or_add(tenant, user, *uid);
            thread.touch(now);
            if !thread.is_ready() {
                thread.add_loader();
                missing.push(*uid);
            }
        }
        missing
    }

    /// Ends the load of a user whose declared threads are all filled: the threads that appeared meanwhile hold all that
    /// they ever held.
    pub fn finish_user(&self, tenant: &str, user: &str) {
        let now = self.now();
        let mut registry = self.registry.lock();
        if let Some(state) = registry.user_mut(tenant, user)
            && state.loaders > 0
        {
            state.complete = true;
            state.threads.values().for_each(|thread| thread.settle());
            state.touch(now);
            registry.end_user_loader(tenant, user);
        }
        drop(registry);
        self.evict();
    }

    /// Takes what the store holds of a thread, and `later` what it lacks of what was delivered before the load began; the
    /// vectors are those of each message's present revision.
    pub fn fill_thread(
        &self,
        tenant: &str,
        user: &str,
        uid: u64,
        conversation_id: &str,
        documents: Vec<StoredDocument>,
        later: Later,
    ) {
        let thread = self.registry.lock().thread(tenant, user, uid).cloned();
        if let Some(thread) = thread {
            thread.fill(conversation_id, documents, later, &self.analyzer);
            thread.touch(self.now());
            let registry = self.registry.lock();
            thread.end_loader();
            drop(registry);
        }
        self.evict();
    }

    /// Ends a load that failed: of a thread, or of the user where there is no `uid`.
    pub fn abandon(&self, tenant: &str, user: &str, uid: Option<u64>) {
        let mut registry = self.registry.lock();
        match uid {
            None => registry.end_user_loader(tenant, user),
            Some(uid) => {
                if let Some(thread) = registry.thread(tenant, user, uid) {
                    thread.end_loader();
                }
            }
        }
        let forgotten = forget_unfinished(&mut registry, tenant, user);
        drop(registry);
        drop(forgotten);
    }
}

/// Takes out the threads that nobody loads any more and that are not ready.
fn forget_unfinished(registry: &mut Registry, tenant: &str, user: &str) -> Vec<Arc<Thread>> {
    if registry
        .user(tenant, user)
        .is_some_and(|state| state.loaders > 0)
    {
        return Vec::new();
    }
    let forgotten = registry.take_threads(tenant, user, |thread| {
        !thread.is_ready() && thread.loaders() == 0
    });
    if registry
        .user(tenant, user)
        .is_some_and(|state| !state.complete)
    {
        registry.remove_if_idle(tenant, user);
    }
    forgotten
}
