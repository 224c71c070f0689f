//! Requests' bytes with places for their number.

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

/// The requests of a file, which a connection makes in turn. Each is preceded by its length as a little-endian u32.
pub(crate) struct Templates {
    all: Vec<Template>,
    turn: usize,
    left: usize,
}

impl Templates {
    pub(crate) fn parse(mut bytes: &[u8]) -> Option<Self> {
        let mut all = Vec::new();
        while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
            let (request, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            all.push(Template::new(request.to_vec()));
            bytes = rest;
        }
        (!all.is_empty() && bytes.is_empty()).then_some(Self {
            all,
            turn: 0,
            left: usize::MAX,
        })
    }

    /// Only so many times each.
    pub(crate) fn times(self, turns: usize) -> Self {
        Self {
            left: turns * self.all.len(),
            ..self
        }
    }

    /// The one whose turn it is, where there is one more to make.
    pub(crate) fn current(&self) -> Option<&Template> {
        (self.left > 0).then(|| &self.all[self.turn])
    }

    pub(crate) fn advance(&mut self) {
        self.turn = (self.turn + 1) % self.all.len();
        self.left -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::{Template, Templates};

    #[test]
    fn requests_take_turns() {
        let file = [&[1, 0, 0, 0][..], b"a", &[2, 0, 0, 0][..], b"bc"].concat();
        let Some(mut templates) = Templates::parse(&file) else {
            panic!("the file holds two requests");
        };

        assert_eq!(
            [0; 3].map(|_| next_length(&mut templates)),
            [1, 2, 1].map(Some)
        );
    }

    #[test]
    fn requests_end_after_the_turns_asked_for() {
        let file = [&[1, 0, 0, 0][..], b"a", &[2, 0, 0, 0][..], b"bc"].concat();
        let Some(templates) = Templates::parse(&file) else {
            panic!("the file holds two requests");
        };
        let mut templates = templates.times(2);

        let lengths = [0; 5].map(|_| next_length(&mut templates));

        assert_eq!(lengths, [Some(1), Some(2), Some(1), Some(2), None]);
    }

    fn next_length(templates: &mut Templates) -> Option<usize> {
        let length = templates.current()?.len();
        templates.advance();
        Some(length)
    }

    #[test]
    fn a_file_that_is_cut_is_none() {
        assert!(Templates::parse(&[2, 0, 0, 0, b'a']).is_none());
    }

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
