//! A request's bytes with places for its number.

const PLACE: &[u8; 16] = b"################";

/// Bytes in which every run of sixteen `#` is a place for a decimal number of sixteen digits.
pub(crate) struct Template {
    bytes: Vec<u8>,
    places: Vec<usize>,
}

impl Template {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let mut places = Vec::new();
        let mut at = 0;
        while at + PLACE.len() <= bytes.len() {
            if &bytes[at..at + PLACE.len()] == PLACE {
                places.push(at);
                at += PLACE.len();
            } else {
                at += 1;
            }
        }
        Self { bytes, places }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends the bytes with the number filled in.
    pub(crate) fn write(&self, number: u64, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let digits = format!("{number:016}");
        for place in &self.places {
            out[start + place..start + place + PLACE.len()]
                .copy_from_slice(&digits.as_bytes()[..PLACE.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Template;

    #[test]
    fn every_place_holds_the_number() {
        let template = Template::new(b"a################b################".to_vec());
        let mut out = b"before ".to_vec();

        template.write(42, &mut out);

        assert_eq!(out, b"before a0000000000000042b0000000000000042");
    }

    #[test]
    fn bytes_without_a_place_stay_as_they_are() {
        let template = Template::new(b"###############".to_vec());
        let mut out = Vec::new();

        template.write(7, &mut out);

        assert_eq!(out, b"###############");
    }
}
