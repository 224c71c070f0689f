//! Where a search looks: the threads of a scope, drained and then held still for as long as it reads.

use std::collections::BTreeSet;
use std::ops::Range;
use std::slice;
use std::sync::Arc;

use parking_lot::RwLockReadGuard;
use remora_kernels::prefetch;
use rustc_hash::FxHashSet;

use super::thread::Thread;
use crate::Recall;
use crate::content::Content;
use crate::text::names::is_role;

/// Where to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope<'a> {
    /// One user's part of one conversation.
    Thread { user: &'a str, uid: u64 },
    /// All of one user's threads.
    User { user: &'a str },
    /// All threads of the tenant that are in memory.
    Tenant,
}

impl<'a> Scope<'a> {
    /// The user, where the scope is one's.
    pub(crate) fn user(&self) -> Option<&'a str> {
        match *self {
            Self::Thread { user, .. } | Self::User { user } => Some(user),
            Self::Tenant => None,
        }
    }
}

/// The threads of a scope, by (uid, user).
#[derive(Default)]
pub(crate) struct Threads {
    threads: Vec<Arc<Thread>>,
    /// Whether the scope is in memory as a whole; for a tenant, whether all of its users in memory are.
    pub(crate) complete: bool,
}

/// One thread of a scope, held still; its slots stand from `base` on among those of the scope.
pub(crate) struct View<'a> {
    pub(crate) thread: &'a Thread,
    pub(crate) content: RwLockReadGuard<'a, Content>,
    pub(crate) base: usize,
}

impl View<'_> {
    /// The places of the slots among those of the scope.
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
    /// The threads of the scope. Threads that are still being loaded are left out, and torn ones, which are to be loaded anew.
    fn threads(&self, tenant: &str, scope: Scope<'_>) -> Threads {
        let mut threads = match scope {
            Scope::Thread { user, uid } => self.one_thread(tenant, user, uid),
            Scope::User { user } => self.threads_of_user(tenant, user),
            Scope::Tenant => self.threads_of_tenant(tenant),
        };
        let found = threads.threads.len();
        threads.threads.retain(|thread| {
            let is_whole = !thread.is_torn();
            if !is_whole {
                self.forget_torn(tenant, thread.uid());
            }
            is_whole && thread.is_ready()
        });
        threads.complete &= threads.threads.len() == found;
        threads
    }

    /// The threads of the scope, marked as used.
    pub(crate) fn use_threads(&self, tenant: &str, scope: Scope<'_>) -> Threads {
        let threads = self.threads(tenant, scope);
        self.touch(tenant, scope, &threads);
        threads
    }

    fn touch(&self, tenant: &str, scope: Scope<'_>, threads: &Threads) {
        let now = self.now();
        for thread in &threads.threads {
            thread.touch(now);
        }
        let Some(user) = scope.user() else {
            return;
        };
        if let Some(state) = self.registry.lock().user_mut(tenant, user) {
            state.used = now;
        }
    }

    fn one_thread(&self, tenant: &str, user: &str, uid: u64) -> Threads {
        let registry = self.registry.lock();
        let Some(state) = registry.user(tenant, user) else {
            return Threads::default();
        };
        let thread = state.threads.get(&uid).cloned();
        Threads {
            complete: state.complete || thread.is_some(),
            threads: thread.into_iter().collect(),
        }
    }

    fn threads_of_user(&self, tenant: &str, user: &str) -> Threads {
        let registry = self.registry.lock();
        let Some(state) = registry.user(tenant, user) else {
            return Threads::default();
        };
        let (complete, threads) = (state.complete, Arc::clone(&state.threads));
        drop(registry);
        Threads {
            complete,
            threads: threads.values().cloned().collect(),
        }
    }

    fn threads_of_tenant(&self, tenant: &str) -> Threads {
        let registry = self.registry.lock();
        let users: Vec<_> = registry
            .users_of(tenant)
            .map(|(user, state)| (Arc::clone(user), state.complete, Arc::clone(&state.threads)))
            .collect();
        drop(registry);
        let complete = users.iter().all(|(_, complete, _)| *complete);
        let mut threads: Vec<_> = users
            .iter()
            .flat_map(|(user, _, threads)| threads.values().map(move |thread| (user, thread)))
            .collect();
        threads.sort_unstable_by_key(|(user, thread)| (thread.uid(), *user));
        Threads {
            complete,
            threads: threads
                .into_iter()
                .map(|(_, thread)| Arc::clone(thread))
                .collect(),
        }
    }

    /// Applies what waits for the scope up to `published`, so that the next search finds little to do.
    pub fn drain(&self, tenant: &str, scope: Scope<'_>, published: u64) {
        for thread in &self.threads(tenant, scope).threads {
            thread.drain(published, &self.analyzer);
        }
        self.evict();
    }

    /// How many documents of the scope the server's model is to embed and `model` has not embedded.
    pub fn pending(&self, tenant: &str, scope: Scope<'_>, model: &str, published: u64) -> usize {
        let threads = self.use_threads(tenant, scope);
        let views = self.views(&threads, published);
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
        let threads = self.use_threads(tenant, scope);
        let views = self.views(&threads, published);
        let contents = views.iter().map(|view| &view.content);
        let dimensions: BTreeSet<_> = contents
            .flat_map(|content| content.dimensions(model))
            .collect();
        dimensions.into_iter().collect()
    }

    /// The names of those who speak in the scope, role words left out, in order.
    pub fn speakers(&self, tenant: &str, scope: Scope<'_>, published: u64) -> Vec<String> {
        let threads = self.use_threads(tenant, scope);
        let views = self.views(&threads, published);
        let names = speakers(&views).into_iter();
        let mut names: Vec<_> = names
            .filter(|speaker| !is_role(speaker))
            .map(str::to_owned)
            .collect();
        names.sort_unstable();
        names
    }

    /// The threads, drained up to `published` and held still, without those that are empty.
    pub(crate) fn views<'a>(&self, threads: &'a Threads, published: u64) -> Vec<View<'a>> {
        for thread in &threads.threads {
            thread.drain(published, &self.analyzer);
        }
        let mut base = 0;
        let mut views = Vec::with_capacity(threads.threads.len());
        for thread in &threads.threads {
            let content = thread.read();
            if content.is_empty() {
                continue;
            }
            let slots = content.slots();
            views.push(View {
                thread,
                content,
                base,
            });
            base += slots;
        }
        views
    }
}

impl Threads {
    pub(crate) fn len(&self) -> usize {
        self.threads.len()
    }
}
