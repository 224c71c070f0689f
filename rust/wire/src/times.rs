//! Bounds of times, as readers give them.

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
