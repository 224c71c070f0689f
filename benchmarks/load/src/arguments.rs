//! The command line.

use std::path::PathBuf;
use std::str::FromStr;

/// How requests are put on the wire.
#[derive(Clone, Copy)]
pub(crate) enum Wire {
    Grpc,
    Http,
}

/// What to do. `path` is the method of gRPC requests, `first` the first number that requests are given, `rate` how many are
/// due in a second: 0 in a closed loop, `turns` how often a connection makes its requests: 0 for as long as there is time.
pub(crate) struct Arguments {
    pub(crate) socket: PathBuf,
    pub(crate) wire: Wire,
    pub(crate) path: String,
    pub(crate) seconds: f64,
    pub(crate) streams: usize,
    pub(crate) rate: f64,
    pub(crate) turns: usize,
    pub(crate) first: u64,
    pub(crate) samples: PathBuf,
    pub(crate) failures: PathBuf,
    pub(crate) requests: Vec<PathBuf>,
}

impl Arguments {
    /// Reads `--name value` pairs, then the request files.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut parsed = Self {
            socket: PathBuf::new(),
            wire: Wire::Grpc,
            path: String::new(),
            seconds: 1.0,
            streams: 1,
            rate: 0.0,
            turns: 0,
            first: 0,
            samples: PathBuf::new(),
            failures: PathBuf::new(),
            requests: Vec::new(),
        };
        while let Some(word) = words.next() {
            match word.strip_prefix("--") {
                None => parsed.requests.push(word.into()),
                Some(name) => {
                    let value = words
                        .next()
                        .ok_or_else(|| format!("--{name} wants a value"))?;
                    parsed.set(name, value)?;
                }
            }
        }
        match parsed.requests.is_empty() {
            true => Err("no request file is named".into()),
            false => Ok(parsed),
        }
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        match name {
            "socket" => self.socket = value.into(),
            "wire" => self.wire = wire(&value)?,
            "path" => self.path = value,
            "seconds" => self.seconds = number(name, &value)?,
            "streams" => self.streams = number(name, &value)?,
            "rate" => self.rate = number(name, &value)?,
            "turns" => self.turns = number(name, &value)?,
            "first" => self.first = number(name, &value)?,
            "samples" => self.samples = value.into(),
            "failures" => self.failures = value.into(),
            _ => return Err(format!("--{name} is unknown")),
        }
        Ok(())
    }
}

fn wire(value: &str) -> Result<Wire, String> {
    match value {
        "grpc" => Ok(Wire::Grpc),
        "http" => Ok(Wire::Http),
        _ => Err(format!("--wire is grpc or http, not {value}")),
    }
}

fn number<T: FromStr>(name: &str, value: &str) -> Result<T, String> {
    value
        .parse()
        .map_err(|_| format!("--{name}: {value} is not a number"))
}
