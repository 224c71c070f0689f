//! The instruction sets that have a table, and which of them this processor can run.

use std::fmt;
use std::str::FromStr;

/// An instruction set, ordered from the slowest to the fastest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Portable code: the specification.
    Scalar,
    /// 128-bit vectors of aarch64.
    Neon,
    /// 256-bit vectors with fused multiply-add.
    Avx2,
    /// 512-bit vectors of x86-64-v4: F, BW, DQ and VL.
    Avx512,
}

/// A name that no level has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown instruction set {0:?}: expected scalar, neon, avx2 or avx512")]
pub struct UnknownLevel(pub String);

impl Level {
    /// Every level, the slowest first.
    pub const ALL: [Self; 4] = [Self::Scalar, Self::Neon, Self::Avx2, Self::Avx512];

    /// The fastest level of this processor.
    pub fn detect() -> Self {
        Self::ALL
            .into_iter()
            .rev()
            .find(|level| level.is_available())
            .unwrap_or(Self::Scalar)
    }

    /// Whether this processor can run the level.
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar => true,
            Self::Neon => has_neon(),
            Self::Avx2 => has_avx2(),
            Self::Avx512 => has_avx512(),
        }
    }

    /// The name by which a caller chooses the level.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(name: &str) -> Result<Self, UnknownLevel> {
        Self::ALL
            .into_iter()
            .find(|level| level.name() == name)
            .ok_or_else(|| UnknownLevel(name.to_owned()))
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    has_avx2()
        && std::is_x86_feature_detected!("avx512f")
        && std::is_x86_feature_detected!("avx512bw")
        && std::is_x86_feature_detected!("avx512dq")
        && std::is_x86_feature_detected!("avx512vl")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx512() -> bool {
    false
}

#[cfg(target_arch = "aarch64")]
fn has_neon() -> bool {
    std::arch::is_aarch64_feature_detected!("neon")
}

#[cfg(not(target_arch = "aarch64"))]
fn has_neon() -> bool {
    false
}
