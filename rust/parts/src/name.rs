//! What a part is called.

use hashbrown::Equivalent;

/// Which partition of which kind of records a part is. An empty partition stands for all of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name<'a> {
    pub kind: u32,
    pub tenant: &'a str,
    pub partition: &'a [u8],
}

/// The same, kept.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct OwnName {
    kind: u32,
    tenant: Box<str>,
    partition: Box<[u8]>,
}

impl Name<'_> {
    pub(crate) fn kept(&self) -> OwnName {
        OwnName {
            kind: self.kind,
            tenant: self.tenant.into(),
            partition: self.partition.into(),
        }
    }

    /// Whether it is this partition, or begins so.
    pub(crate) fn begins(&self, other: &OwnName) -> bool {
        self.kind == other.kind
            && *self.tenant == *other.tenant
            && other.partition.starts_with(self.partition)
    }
}

impl OwnName {
    /// Whether it is a partition of this kind and tenant.
    pub(crate) fn is_of(&self, kind: u32, tenant: &str) -> bool {
        self.kind == kind && *self.tenant == *tenant
    }
}

impl Equivalent<OwnName> for Name<'_> {
    fn equivalent(&self, other: &OwnName) -> bool {
        self.kind == other.kind
            && *self.tenant == *other.tenant
            && *self.partition == *other.partition
    }
}
