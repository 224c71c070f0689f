//! Which parts leave when memory is short: first the parts of the least recently used user, and of these the least recently
//! used first.
//!
//! Parts that are being loaded stay, and so do parts that were used within the grace period, so that a search finds the
//! parts that its caller has just loaded. Until then more than the budget may be held. The user who was used last stays,
//! too, because a user who alone takes more than the budget would be loaded again for every search.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::part::Part;
use super::registry::{Owner, User};
use crate::Recall;

impl User {
    /// Marks a use of all parts at `now`.
    pub(crate) fn touch(&mut self, now: u64) {
        self.used = self.used.max(now);
        for part in self.parts.values() {
            part.touch(now);
        }
    }
}

impl Recall {
    /// Evicts until less than the budget is held, with some room to spare so that this is rare, or nothing can go.
    pub(crate) fn evict(&self) {
        if self.bytes() <= self.budget {
            return;
        }
        let target = self.budget - self.budget / 8;
        let newest = self.newest_evictable();
        let mut owners = self.least_recently_used();
        owners.pop();
        for owner in owners {
            if self.bytes() <= target {
                return;
            }
            self.evict_user(&owner, target, newest);
        }
    }

    /// Evicts one part that has grown in memory without being used, where far more than the budget is held.
    pub(crate) fn evict_idle(&self, tenant: &str, user: &str, part: &Part) {
        if self.bytes() > self.budget.saturating_add(self.budget / 4)
            && part.used() < self.newest_evictable()
        {
            drop(self.take_out(tenant, user, part.uid()));
        }
    }

    /// Forgets a user's parts that hold nothing and wait for nothing; a user who is in memory as a whole does not need
    /// them.
    pub(crate) fn sweep(&self, tenant: &str, user: &str) {
        let mut registry = self.registry.lock();
        let is_whole = |state: &User| state.complete && state.loaders == 0;
        if registry.user(tenant, user).is_some_and(is_whole) {
            let swept =
                registry.take_parts(tenant, user, |part| part.loaders() == 0 && part.is_spent());
            drop(registry);
            drop(swept);
        }
    }

    fn newest_evictable(&self) -> u64 {
        let grace = u64::try_from(self.grace.as_micros()).unwrap_or(u64::MAX);
        self.now().saturating_sub(grace)
    }

    fn least_recently_used(&self) -> Vec<Owner> {
        let registry = self.registry.lock();
        let mut users: Vec<_> = registry
            .users()
            .map(|(owner, user)| (user.used, owner))
            .collect();
        drop(registry);
        users.sort_unstable();
        users.into_iter().map(|(_, owner)| owner).collect()
    }

    fn evict_user(&self, owner: &Owner, target: usize, newest: u64) {
        for uid in self.evictable(owner, newest) {
            if self.bytes() <= target {
                return;
            }
            drop(self.take_out(&owner.tenant, &owner.user, uid));
        }
        let mut registry = self.registry.lock();
        if registry
            .user(&owner.tenant, &owner.user)
            .is_some_and(|state| state.used <= newest)
        {
            registry.remove_if_idle(&owner.tenant, &owner.user);
        }
    }

    /// The user's parts that may go, the least recently used first.
    fn evictable(&self, owner: &Owner, newest: u64) -> Vec<u64> {
        let registry = self.registry.lock();
        let parts = registry
            .user(&owner.tenant, &owner.user)
            .filter(|state| state.loaders == 0)
            .map(|state| Arc::clone(&state.parts))
            .unwrap_or_default();
        drop(registry);
        let mut idle: Vec<_> = parts
            .values()
            .filter(|part| part.used() <= newest)
            .map(|part| (part.used(), part.uid()))
            .collect();
        idle.sort_unstable();
        idle.into_iter().map(|(_, uid)| uid).collect()
    }

    /// Takes a part out, unless it or its user is being loaded; the user is then no longer complete.
    pub(crate) fn take_out(&self, tenant: &str, user: &str, uid: u64) -> Option<Arc<Part>> {
        let mut registry = self.registry.lock();
        let state = registry.user_mut(tenant, user)?;
        let part = state.parts.get(&uid)?;
        if state.loaders > 0 || part.loaders() > 0 {
            return None;
        }
        state.complete = false;
        registry.take_part(tenant, user, uid)
    }

    /// Takes out the torn parts of a conversation, unless they or their users are being loaded.
    pub(crate) fn forget_torn(&self, tenant: &str, uid: u64) {
        let torn = self.registry.lock().torn(tenant, uid);
        for owner in torn {
            drop(self.take_out(&owner.tenant, &owner.user, uid));
        }
    }

    /// The memory held, in bytes.
    pub fn bytes(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }
}
