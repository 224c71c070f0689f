//! Which parts are in memory.

use std::sync::Arc;

use hashbrown::HashMap;
use remora_supervision::failpoints::{self, Point};

use crate::name::{Name, OwnName};
use crate::part::{Content, Part};

/// The parts that are in memory or being loaded.
pub(crate) struct Registry<C: Content> {
    parts: HashMap<OwnName, Arc<Part<C>>>,
    /// Those that got a change since they were settled.
    waiting: Vec<Arc<Part<C>>>,
}

impl<C: Content> Default for Registry<C> {
    fn default() -> Self {
        Self {
            parts: HashMap::new(),
            waiting: Vec::new(),
        }
    }
}

impl<C: Content> Registry<C> {
    pub(crate) fn find(&self, name: &Name<'_>) -> Option<&Arc<Part<C>>> {
        self.parts.get(name)
    }

    /// Puts a part in the place of another.
    pub(crate) fn put(&mut self, name: &Name<'_>, part: Arc<Part<C>>) {
        self.parts.insert(name.kept(), part);
    }

    /// A part gets a change, of a revision or behind all that wait.
    pub(crate) fn push(&mut self, part: &Arc<Part<C>>, revision: Option<u64>, change: C::Change) {
        if part.push(revision, change) {
            self.waiting.push(Arc::clone(part));
        }
    }

    pub(crate) fn take_waiting(&mut self) -> Vec<Arc<Part<C>>> {
        std::mem::take(&mut self.waiting)
    }

    pub(crate) fn parts(&self) -> impl Iterator<Item = &Arc<Part<C>>> {
        self.parts.values()
    }

    /// The parts of a tenant whose partition begins so.
    pub(crate) fn beginning_with(&self, prefix: &Name<'_>) -> impl Iterator<Item = &Arc<Part<C>>> {
        let beginning = self.parts.iter().filter(|(name, _)| prefix.begins(name));
        beginning.map(|(_, part)| part)
    }

    /// The parts of a user.
    pub(crate) fn of_user(
        &self,
        kind: u32,
        tenant: &str,
        user: &str,
    ) -> impl Iterator<Item = &Arc<Part<C>>> {
        let of_tenant = self
            .parts
            .iter()
            .filter(move |(name, _)| name.is_of(kind, tenant));
        let parts = of_tenant.map(|(_, part)| part);
        parts.filter(move |part| part.user() == user)
    }

    /// Takes out what is more than the budget: abandoned loads, then what was used least recently.
    pub(crate) fn evict(&mut self, budget: usize) -> Vec<Arc<Part<C>>> {
        let mut evicted: Vec<_> = self
            .parts
            .extract_if(|_, part| part.is_lost() && Arc::strong_count(part) == 1)
            .map(|(_, part)| part)
            .collect();
        let mut held: usize = self.parts().map(|part| part.bytes()).sum();
        let mut uses: Vec<_> = self
            .parts()
            .filter(|part| !part.is_lost())
            .cloned()
            .collect();
        uses.sort_unstable_by_key(|part| part.used());
        uses.pop();
        let mut old = uses.into_iter();
        while held > budget
            && let Some(part) = old.next()
        {
            held -= part.bytes();
            evicted.push(part);
        }
        let is_evicted = |part: &Arc<Part<C>>| {
            failpoints::hit(Point::PartsEvicting);
            evicted.iter().any(|other| Arc::ptr_eq(other, part))
        };
        self.parts.retain(|_, part| !is_evicted(part));
        evicted
    }
}
