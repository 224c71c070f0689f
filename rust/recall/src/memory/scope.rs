//! Where a search looks: the parts of a scope, drained and then held still for as long as it reads.

use std::collections::BTreeSet;
use std::ops::Range;
use std::slice;
use std::sync::Arc;

use parking_lot::RwLockReadGuard;
use remora_kernels::prefetch;
use rustc_hash::FxHashSet;

use super::part::Part;
use crate::Recall;
use crate::content::Content;
use crate::text::names::is_role;

/// Where to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope<'a> {
    /// One user's part of one conversation.
    Part { user: &'a str, uid: u64 },
    /// All of one user's parts.
    User { user: &'a str },
    /// All parts of the tenant that are in memory.
    Tenant,
}

impl<'a> Scope<'a> {
    /// The user, where the scope is one's.
    pub(crate) fn user(&self) -> Option<&'a str> {
        match *self {
            Self::Part { user, .. } | Self::User { user } => Some(user),
            Self::Tenant => None,
        }
    }
}

/// The parts of a scope, by (uid, user).
#[derive(Default)]
pub(crate) struct Parts {
    parts: Vec<Arc<Part>>,
    /// Whether the scope is in memory as a whole; for a tenant, whether all of its users in memory are.
    pub(crate) complete: bool,
}

/// One part of a scope, held still; its slots stand from `base` on among those of the scope.
pub(crate) struct View<'a> {
    pub(crate) part: &'a Part,
    pub(crate) content: RwLockReadGuard<'a, Content>,
    pub(crate) base: usize,
}

impl View<'_> {
    /// The rows of the slots among those of the scope.
    pub(crate) fn range(&self) -> Range<usize> {
        self.base..self.base + self.content.slots()
    }

    /// Asks for what rules read of the documents, and of the next view for what tells where that is.
    pub(crate) fn prefetch(&self, next: Option<&Self>) {
        self.content.prefetch();
        if let Some(next) = next {
            prefetch(slice::from_ref(&*next.content));
        }
    }
}

/// Those who speak in a scope: their names, or else their roles.
pub(crate) fn speakers<'a>(views: &'a [View<'_>]) -> FxHashSet<&'a str> {
    let contents = views.iter().map(|view| &view.content);
    contents.flat_map(|content| content.speakers()).collect()
}

impl Recall {
    /// The parts of the scope, marked as used. Parts that are still being loaded are left out, and torn ones, which are to
    /// be loaded anew.
    pub(crate) fn use_parts(&self, tenant: &str, scope: Scope<'_>) -> Parts {
        let mut parts = self.parts_of(tenant, scope);
        let found = parts.parts.len();
        parts.parts.retain(|part| {
            let is_whole = !part.is_torn();
            if !is_whole {
                self.forget_torn(tenant, part.uid());
            }
            is_whole && part.is_ready()
        });
        parts.complete &= parts.parts.len() == found;
        self.touch(tenant, scope, &parts);
        parts
    }

    /// The parts of the scope that are in memory, also those that are still being loaded.
    fn parts_of(&self, tenant: &str, scope: Scope<'_>) -> Parts {
        match scope {
            Scope::Part { user, uid } => self.one_part(tenant, user, uid),
            Scope::User { user } => self.parts_of_user(tenant, user),
            Scope::Tenant => self.parts_of_tenant(tenant),
        }
    }

    fn touch(&self, tenant: &str, scope: Scope<'_>, parts: &Parts) {
        let now = self.now();
        for part in &parts.parts {
            part.touch(now);
        }
        let Some(user) = scope.user() else {
            return;
        };
        if let Some(state) = self.registry.lock().user_mut(tenant, user) {
            state.used = now;
        }
    }

    fn one_part(&self, tenant: &str, user: &str, uid: u64) -> Parts {
        let registry = self.registry.lock();
        let Some(state) = registry.user(tenant, user) else {
            return Parts::default();
        };
        let part = state.parts.get(&uid).cloned();
        Parts {
            complete: state.complete || part.is_some(),
            parts: part.into_iter().collect(),
        }
    }

    fn parts_of_user(&self, tenant: &str, user: &str) -> Parts {
        let registry = self.registry.lock();
        let Some(state) = registry.user(tenant, user) else {
            return Parts::default();
        };
        let (complete, parts) = (state.complete, Arc::clone(&state.parts));
        drop(registry);
        Parts {
            complete,
            parts: parts.values().cloned().collect(),
        }
    }

    fn parts_of_tenant(&self, tenant: &str) -> Parts {
        let registry = self.registry.lock();
        let users: Vec<_> = registry
            .users_of(tenant)
            .map(|(user, state)| (Arc::clone(user), state.complete, Arc::clone(&state.parts)))
            .collect();
        drop(registry);
        let complete = users.iter().all(|(_, complete, _)| *complete);
        let mut parts: Vec<_> = users
            .iter()
            .flat_map(|(user, _, parts)| parts.values().map(move |part| (user, part)))
            .collect();
        parts.sort_unstable_by_key(|(user, part)| (part.uid(), *user));
        Parts {
            complete,
            parts: parts
                .into_iter()
                .map(|(_, part)| Arc::clone(part))
                .collect(),
        }
    }

    /// The memory that the scope takes, also what is loaded in part, in bytes.
    pub fn bytes_of(&self, tenant: &str, scope: Scope<'_>) -> usize {
        let registry = self.registry.lock();
        let parts = match scope {
            Scope::Part { user, uid } => {
                let part = registry.part(tenant, user, uid);
                return part.map_or(0, |part| part.bytes());
            }
            Scope::User { user } => {
                let state = registry.user(tenant, user);
                state
                    .into_iter()
                    .map(|state| Arc::clone(&state.parts))
                    .collect()
            }
            Scope::Tenant => {
                let users = registry.users_of(tenant);
                users
                    .map(|(_, state)| Arc::clone(&state.parts))
                    .collect::<Vec<_>>()
            }
        };
        drop(registry);
        let parts = parts.iter().flat_map(|parts| parts.values());
        parts.map(|part| part.bytes()).sum()
    }

    /// How many documents of the scope the server's model is to embed and `model` has not embedded.
    pub fn pending(&self, tenant: &str, scope: Scope<'_>, model: &str, published: u64) -> usize {
        let parts = self.use_parts(tenant, scope);
        let views = self.views(&parts, published);
        views.iter().map(|view| view.content.pending(model)).sum()
    }

    /// The dimensions of the vectors of a model that the scope holds, in order, each once.
    pub fn dimensions(
        &self,
        tenant: &str,
        scope: Scope<'_>,
        model: &str,
        published: u64,
    ) -> Vec<usize> {
        let parts = self.use_parts(tenant, scope);
        let views = self.views(&parts, published);
        let contents = views.iter().map(|view| &view.content);
        let dimensions: BTreeSet<_> = contents
            .flat_map(|content| content.dimensions(model))
            .collect();
        dimensions.into_iter().collect()
    }

    /// The names of those who speak in the scope, role words left out, in order.
    pub fn speakers(&self, tenant: &str, scope: Scope<'_>, published: u64) -> Vec<String> {
        let parts = self.use_parts(tenant, scope);
        let views = self.views(&parts, published);
        let names = speakers(&views).into_iter();
        let mut names: Vec<_> = names
            .filter(|speaker| !is_role(speaker))
            .map(str::to_owned)
            .collect();
        names.sort_unstable();
        names
    }

    /// The parts, drained up to `published` and held still, without those that are empty.
    pub(crate) fn views<'a>(&self, parts: &'a Parts, published: u64) -> Vec<View<'a>> {
        for part in &parts.parts {
            part.drain(published, &self.analyzer);
        }
        let mut base = 0;
        let mut views = Vec::with_capacity(parts.parts.len());
        for part in &parts.parts {
            let content = part.read();
            if content.is_empty() {
                continue;
            }
            let slots = content.slots();
            views.push(View {
                part,
                content,
                base,
            });
            base += slots;
        }
        views
    }
}

impl Parts {
    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }
}
