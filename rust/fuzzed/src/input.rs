//! Bytes of a fuzzer as decisions. Where they end, every further one is zero.

/// What is left of the bytes.
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl Input<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::from(u16::from_le_bytes([self.byte(), self.byte()])) % limit.max(1)
    }

    /// Small numbers, numbers at the ends of their types, and any others.
    pub(crate) fn number(&mut self) -> u64 {
        match self.byte() {
            kind @ 0..128 => kind.into(),
            128..160 => u64::MAX - u64::from(self.byte()),
            160..192 => u64::from(u32::MAX) - u64::from(self.byte()),
            _ => {
                let mut number = [0; 8];
                let given = self.bytes(8);
                number[..given.len()].copy_from_slice(given);
                u64::from_le_bytes(number)
            }
        }
    }

    /// So many bytes, or those that are left.
    pub(crate) fn bytes(&mut self, count: usize) -> &[u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }
}
