//! Where records of a partition are looked for in the database.

/// A hash of 64 bits of a partition and of whose it is, by which the database finds its records. It is stored, so it
/// never changes: FNV-1a over the tenant's length and bytes, the uid (both numbers in 8 bytes, little-endian) and the
/// partition, then the finalizer of MurmurHash3.
pub fn place(tenant: &str, uid: u64, partition: &[u8]) -> u64 {
    let length = (tenant.len() as u64).to_le_bytes();
    let parts = [&length, tenant.as_bytes(), &uid.to_le_bytes(), partition];
    let hash = parts.into_iter().flatten().fold(OFFSET, fnv1a);
    finalize(hash)
}

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

fn fnv1a(hash: u64, byte: &u8) -> u64 {
    (hash ^ u64::from(*byte)).wrapping_mul(PRIME)
}

fn finalize(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_stored_rows() {
        assert_eq!(place("", 0, b""), 0xa5e0_dba6_c385_580a);
        assert_eq!(place("acme", 7, b"ann\0\x01"), 0x3915_8afd_4713_70b4);
    }

    #[test]
    fn parts_are_told_apart_by_where_they_end() {
        assert_ne!(place("a", 0, b"b"), place("ab", 0, b""));
        assert_ne!(place("a", 1, b""), place("a", 2, b""));
    }
}
