//! Drives a server on a Unix socket with prepared requests, for a time, and says how long each took.
//!
//! One thread waits for all connections, so that the load costs little beside the server that it measures. Every
//! request file is a connection, which makes its requests in turn, `--streams` at once. Sixteen `#` in a request are
//! replaced by a number that no other request has.

mod arguments;
mod connection;
mod http1;
mod http2;
mod load;
mod protocol;
mod template;

use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let arguments = arguments::Arguments::parse(std::env::args().skip(1))?;
    let outcome = load::run(&arguments).map_err(|error| format!("the load failed: {error}"))?;
    std::fs::write(&arguments.samples, outcome.encoded())
        .map_err(|error| format!("{}: {error}", arguments.samples.display()))?;
    println!("{} {}", outcome.samples.len(), outcome.failed);
    Ok(())
}
