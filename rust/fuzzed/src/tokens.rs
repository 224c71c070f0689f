//! Any text: its count bounds every part of it that is cut to a count. A fuzzer's time limit sees that counting is linear.

use remora_tokens::{self as tokens, Encoding};

/// Counts and cuts the text that the bytes hold, which the first two say to how many tokens.
pub fn check(bytes: &[u8]) {
    let (limit, text) = bytes.split_at(bytes.len().min(2));
    let limit = limit
        .iter()
        .fold(0, |limit, byte| limit << 8 | usize::from(*byte));
    let text = String::from_utf8_lossy(text);
    for encoding in Encoding::ALL {
        let count = tokens::count(encoding, &text);
        assert!(count <= text.len());
        assert_eq!(
            tokens::count_up_to(encoding, &text, limit),
            (count <= limit).then_some(count)
        );
        let (start, end) = (
            tokens::trim_end(encoding, &text, limit),
            tokens::trim_start(encoding, &text, limit),
        );
        assert!(text.starts_with(start) && tokens::count(encoding, start) <= limit);
        assert!(text.ends_with(end) && tokens::count(encoding, end) <= limit);
        assert_eq!(count <= limit, start.len() == text.len());
    }
}
