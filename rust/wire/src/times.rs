//! Times, and their bounds as readers give them.

const MICROS: i64 = 1_000_000;

/// The times between two others, microseconds since 1970: both exclusive, and open where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Between {
    pub after: Option<i64>,
    pub before: Option<i64>,
}

impl From<(Option<i64>, Option<i64>)> for Between {
    fn from((after, before): (Option<i64>, Option<i64>)) -> Self {
        Self { after, before }
    }
}

impl Between {
    /// Whether a time is within the bounds.
    pub fn contains(self, time: i64) -> bool {
        self.after.is_none_or(|after| time > after)
            && self.before.is_none_or(|before| time < before)
    }
}

/// A `google.protobuf.Duration`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Duration {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

impl Duration {
    pub fn micros(self) -> i64 {
        self.seconds * MICROS + i64::from(self.nanos) / 1_000
    }
}

/// A `google.protobuf.Timestamp`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Timestamp {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

impl Timestamp {
    pub fn from_micros(micros: i64) -> Self {
        Self {
            seconds: micros.div_euclid(MICROS),
            nanos: (micros.rem_euclid(MICROS) * 1_000) as i32,
        }
    }

    /// Microseconds since 1970; at the ends of the range for times beyond it.
    pub fn micros(self) -> i64 {
        self.seconds
            .saturating_mul(MICROS)
            .saturating_add(i64::from(self.nanos) / 1_000)
    }
}
