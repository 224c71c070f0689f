//! How much it says that a message has words of a question, beyond what chance explains.
//!
//! A word of idf w is in one of exp(w) messages. So words that weigh ln(N) together are expected in one of N messages by
//! chance. What exceeds that speaks for the message; one rare word that somebody among 20,000 messages used, too, does not.

/// What chance explains in a scope.
#[derive(Clone, Copy)]
pub(crate) struct Chance {
    /// The weight that one message of the scope is expected to have by chance: the logarithm of their number.
    expected: f64,
}

/// A scope is small up to this number of messages: those that share words there are mostly about the same thing.
const SMALL: f64 = 1_000.0;

/// It is as strict as it gets from this many times `SMALL` messages on.
const LARGE: f64 = 20.0;

/// The share of [`Chance::sureness`] that chance does not take away.
const UNSURE: f64 = 0.25;

/// How far above what is expected the weight of all words makes it sure.
const SURE: f64 = 20.0;

impl Chance {
    /// In a scope of so many messages.
    pub(crate) fn among(documents: f64) -> Self {
        Self {
            expected: documents.max(1.0).ln(),
        }
    }

    /// How far shared words are to be trusted, from 0 to 1, where the best message has words that weigh `best` of the
    /// question's `whole`: if it has a good share of the question, or more than chance explains. The more messages there
    /// are, the more is asked.
    pub(crate) fn trust(self, best: f64, whole: f64) -> f64 {
        let strictness = ((self.expected - SMALL.ln()) / LARGE.ln()).clamp(0.0, 1.0);
        let share = best / whole.max(f64::MIN_POSITIVE);
        let by_share = (share - (0.25 + 0.15 * strictness)) / (0.25 + 0.15 * strictness);
        let by_weight = (best - self.expected + 1.0 - strictness) / (1.0 + 4.0 * strictness);
        by_share.max(by_weight).clamp(0.0, 1.0)
    }

    /// How sure it is, from a quarter to 1, that a message with all words of a question is what it asks for.
    pub(crate) fn sureness(self, whole: f64) -> f64 {
        let excess = ((whole - self.expected) / SURE).clamp(0.0, 1.0);
        UNSURE + (1.0 - UNSURE) * excess
    }
}

#[cfg(test)]
mod tests {
    use super::Chance;

    /// What a word of one message weighs.
    fn rarest(documents: f64) -> f64 {
        (1.0 + (documents - 0.5) / 1.5).ln()
    }

    #[test]
    fn one_rare_word_of_many_is_trusted_in_no_scope_of_thousands() {
        let large = Chance::among(20_000.0);
        let word = rarest(20_000.0);

        assert_eq!(large.trust(word, 5.0 * word), 0.0);
        assert!(large.trust(2.0 * word, 5.0 * word) > 0.9);
        assert_eq!(large.trust(word, word), 1.0);
        assert_eq!(large.trust(0.0, 0.0), 0.0);
    }

    #[test]
    fn the_more_messages_there_are_the_more_is_asked() {
        let trusts = [100.0, 1_000.0, 5_000.0, 50_000.0]
            .map(|documents: f64| Chance::among(documents).trust(documents.ln(), 30.0));

        assert!(
            trusts.windows(2).all(|pair| pair[0] >= pair[1]),
            "{trusts:?}"
        );
        assert!(trusts[0] > trusts[3]);
    }

    #[test]
    fn a_message_with_all_words_is_the_surer_the_more_they_weigh() {
        let chance = Chance::among(1_000.0);

        assert_eq!(chance.sureness(rarest(1_000.0)), 0.25);
        assert!(chance.sureness(14.0) < chance.sureness(20.0));
        assert_eq!(chance.sureness(100.0), 1.0);
    }
}
