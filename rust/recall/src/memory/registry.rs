//! Whose parts are in memory. Every call is short: no text is read and no content is locked here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use hashbrown::HashMap;
use remora_kernels::Kernels;
use remora_supervision::failpoints::{self, Point};
use rustc_hash::FxBuildHasher;

use super::account::Account;
use super::part::{PART_BYTES, Part};

/// What a user costs besides the parts, in bytes.
const USER_BYTES: usize = 512;

/// A user's parts by uid. Searches hold a copy of the reference; a change copies the map where one does.
pub(crate) type Parts = Arc<BTreeMap<u64, Arc<Part>>>;

/// One user of a tenant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub(crate) tenant: Arc<str>,
    pub(crate) user: Arc<str>,
}

pub(crate) struct User {
    /// Whether every part that the user has is here.
    pub(crate) complete: bool,
    /// Callers that have begun to load the user and have neither finished nor abandoned it, or hold it.
    pub(crate) loaders: usize,
    /// When the user, or a part of the user, was last searched or loaded.
    pub(crate) used: u64,
    pub(crate) parts: Parts,
    _account: Account,
}

impl User {
    /// Whether a change of an unknown part must be kept: it may be the part's first, or come before it is declared.
    fn gathers(&self) -> bool {
        self.complete || self.loaders > 0
    }
}

type Users = HashMap<Arc<str>, User, FxBuildHasher>;

pub(crate) struct Registry {
    kernels: &'static Kernels,
    total: Arc<AtomicUsize>,
    tenants: HashMap<Arc<str>, Users, FxBuildHasher>,
    /// Whose parts each conversation has, by uid.
    owners: HashMap<u64, Vec<Owner>, FxBuildHasher>,
    /// Users with loaders.
    loading: Vec<Owner>,
    /// The highest revision that was ever delivered.
    pub(crate) revision: u64,
}

impl Registry {
    pub(crate) fn new(kernels: &'static Kernels, total: Arc<AtomicUsize>) -> Self {
        Self {
            kernels,
            total,
            tenants: HashMap::default(),
            owners: HashMap::default(),
            loading: Vec::new(),
            revision: 0,
        }
    }

    pub(crate) fn user(&self, tenant: &str, user: &str) -> Option<&User> {
        self.tenants.get(tenant)?.get(user)
    }

    pub(crate) fn user_mut(&mut self, tenant: &str, user: &str) -> Option<&mut User> {
        self.tenants.get_mut(tenant)?.get_mut(user)
    }

    pub(crate) fn users(&self) -> impl Iterator<Item = (Owner, &User)> {
        self.tenants.iter().flat_map(|(tenant, users)| {
            users.iter().map(|(user, state)| {
                let owner = Owner {
                    tenant: Arc::clone(tenant),
                    user: Arc::clone(user),
                };
                (owner, state)
            })
        })
    }

    pub(crate) fn users_of(&self, tenant: &str) -> impl Iterator<Item = (&Arc<str>, &User)> {
        self.tenants.get(tenant).into_iter().flatten()
    }

    pub(crate) fn part(&self, tenant: &str, user: &str, uid: u64) -> Option<&Arc<Part>> {
        self.user(tenant, user)?.parts.get(&uid)
    }

    /// Whether the user's part of `uid` is here, or the user has none; a use of it at `now`.
    pub(crate) fn has_part(&mut self, tenant: &str, user: &str, uid: u64, now: u64) -> bool {
        let Some(state) = self.user_mut(tenant, user) else {
            return false;
        };
        state.used = now;
        let Some(part) = state.parts.get(&uid) else {
            return state.complete;
        };
        part.touch(now);
        part.is_ready()
    }

    /// The part that takes a change of what the user has of `uid`; `None` if it need not be kept.
    pub(crate) fn receiver(&mut self, tenant: &str, user: &str, uid: u64) -> Option<Arc<Part>> {
        let state = self.user(tenant, user)?;
        if let Some(part) = state.parts.get(&uid) {
            return Some(Arc::clone(part));
        }
        if !state.gathers() {
            return None;
        }
        let ready = state.complete;
        Some(self.add_part(tenant, user, uid, ready))
    }

    /// The parts of a conversation, of all its users, and of users who are being loaded.
    pub(crate) fn receivers(&mut self, tenant: &str, uid: u64) -> Vec<Arc<Part>> {
        let mut owners = self.owners.get(&uid).cloned().unwrap_or_default();
        owners.extend_from_slice(&self.loading);
        owners.retain(|owner| *owner.tenant == *tenant);
        owners.sort_unstable();
        owners.dedup();
        owners
            .iter()
            .filter_map(|owner| self.receiver(tenant, &owner.user, uid))
            .collect()
    }

    /// Whose parts of a conversation are torn.
    pub(crate) fn torn(&self, tenant: &str, uid: u64) -> Vec<Owner> {
        let owners = self.owners.get(&uid).into_iter().flatten();
        let torn = owners.filter(|owner| {
            *owner.tenant == *tenant
                && self
                    .part(tenant, &owner.user, uid)
                    .is_some_and(|part| part.is_torn())
        });
        torn.cloned().collect()
    }

    /// The user's part of `uid`, made where there is none.
    pub(crate) fn part_or_add(&mut self, tenant: &str, user: &str, uid: u64) -> Arc<Part> {
        match self.part(tenant, user, uid) {
            Some(part) => Arc::clone(part),
            None => self.add_part(tenant, user, uid, false),
        }
    }

    pub(crate) fn add_user_loader(&mut self, tenant: &str, user: &str) {
        let owner = self.owner(tenant, user);
        self.user_or_add(&owner).loaders += 1;
        if !self.loading.contains(&owner) {
            self.loading.push(owner);
        }
    }

    /// One loader of the user less; none stays none.
    pub(crate) fn end_user_loader(&mut self, tenant: &str, user: &str) {
        let Some(state) = self.user_mut(tenant, user) else {
            return;
        };
        state.loaders = state.loaders.saturating_sub(1);
        if state.loaders == 0 {
            self.loading
                .retain(|owner| (&*owner.tenant, &*owner.user) != (tenant, user));
        }
    }

    /// Takes out the user's parts for which `goes` holds; the caller drops them when the lock is given back.
    pub(crate) fn take_parts(
        &mut self,
        tenant: &str,
        user: &str,
        goes: impl Fn(&Part) -> bool,
    ) -> Vec<Arc<Part>> {
        let parts = self.user(tenant, user).map(|state| state.parts.values());
        let uids: Vec<_> = parts
            .into_iter()
            .flatten()
            .filter(|part| goes(part))
            .map(|part| part.uid())
            .collect();
        let take = |uid| self.take_part(tenant, user, uid);
        uids.into_iter().filter_map(take).collect()
    }

    /// Takes one part out; the caller drops it when the lock is given back.
    pub(crate) fn take_part(&mut self, tenant: &str, user: &str, uid: u64) -> Option<Arc<Part>> {
        let state = self.user_mut(tenant, user)?;
        let part = Arc::make_mut(&mut state.parts).remove(&uid)?;
        failpoints::hit(Point::RecallEvicting);
        self.forget_owner(tenant, user, uid);
        Some(part)
    }

    /// Forgets a user who has no part and no loader.
    pub(crate) fn remove_if_idle(&mut self, tenant: &str, user: &str) {
        let Some(users) = self.tenants.get_mut(tenant) else {
            return;
        };
        if users
            .get(user)
            .is_some_and(|state| state.loaders == 0 && state.parts.is_empty())
        {
            users.remove(user);
        }
        if users.is_empty() {
            self.tenants.remove(tenant);
        }
    }

    fn forget_owner(&mut self, tenant: &str, user: &str, uid: u64) {
        if let Some(owners) = self.owners.get_mut(&uid) {
            owners.retain(|owner| (&*owner.tenant, &*owner.user) != (tenant, user));
            if owners.is_empty() {
                self.owners.remove(&uid);
            }
        }
    }

    fn add_part(&mut self, tenant: &str, user: &str, uid: u64, ready: bool) -> Arc<Part> {
        let owner = self.owner(tenant, user);
        let account = Account::new(Arc::clone(&self.total), PART_BYTES);
        let part = Arc::new(Part::new(uid, self.revision, ready, self.kernels, account));
        let state = self.user_or_add(&owner);
        Arc::make_mut(&mut state.parts).insert(uid, Arc::clone(&part));
        self.owners.entry(uid).or_default().push(owner);
        part
    }

    /// The names of a user, shared with the tables where they are there.
    fn owner(&self, tenant: &str, user: &str) -> Owner {
        let users = self.tenants.get_key_value(tenant);
        let name = users.and_then(|(_, users)| users.get_key_value(user));
        Owner {
            tenant: users.map_or_else(|| tenant.into(), |(tenant, _)| Arc::clone(tenant)),
            user: name.map_or_else(|| user.into(), |(user, _)| Arc::clone(user)),
        }
    }

    fn user_or_add(&mut self, owner: &Owner) -> &mut User {
        let users = self.tenants.entry(Arc::clone(&owner.tenant)).or_default();
        users
            .entry(Arc::clone(&owner.user))
            .or_insert_with(|| User {
                complete: false,
                loaders: 0,
                used: 0,
                parts: Parts::default(),
                _account: Account::new(Arc::clone(&self.total), USER_BYTES),
            })
    }
}
