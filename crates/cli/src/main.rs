//! `numa`, and `numakit`, `numascope` or `numaplace` when called by that name.

use std::process::ExitCode;

fn main() -> ExitCode {
    numakit_cli::program::start()
}
