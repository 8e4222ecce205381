//! `numa-drivers`: drivers of databases for `numa push`, `numa record --to` and `numa fetch`, which start it.
//!
//! It reads requests from standard input, makes one try for each, and writes one answer to standard output. It ends when
//! standard input does. Its address and secrets come in a request, so that no list of processes shows them.

mod cassandra;
mod postgres;
mod serve;

use numakit_sys::stdio::{note, print};
use numakit_sys::tty;
use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|word| word == "--version") {
        return ExitCode::from(u8::from(
            print(concat!("numa-drivers ", env!("CARGO_PKG_VERSION"), "\n")).is_err(),
        ));
    }
    if tty::is_input() || std::env::args().len() > 1 {
        note("'numa push', 'numa record --to' and 'numa fetch' start this program; use these");
        return ExitCode::from(2);
    }
    match serve::serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(format_args!("numa-drivers: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
