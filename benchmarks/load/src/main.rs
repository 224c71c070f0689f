//! Drives a server on a Unix socket with prepared requests, for a time, and says how long each took.
//!
//! One thread waits for all connections, so that the load costs little beside the server that it measures. Every
//! request file is a connection, which makes its requests in turn, up to `--streams` at once. Sixteen `#` in a request are
//! replaced by a number that no other request has.
//!
//! The load ends when its time is over or, with `--turns`, when every connection has made each of its requests so often.
//!
//! The loop is closed: each answer makes a connection ask again. With `--rate` it is open: requests are due at that rate,
//! whatever becomes of others, and their time counts from when they were due. A request whose connection has as many under
//! way as it may is turned away and counted.

mod arguments;
mod connection;
mod http1;
mod http2;
mod load;
mod protocol;
mod template;

use std::process::ExitCode;

use load::encoded;

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
    for (path, samples) in [
        (&arguments.samples, &outcome.answered),
        (&arguments.failures, &outcome.failed),
    ] {
        std::fs::write(path, encoded(samples))
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    println!("{} {}", outcome.turned_away, load::cpu_nanos());
    Ok(())
}
