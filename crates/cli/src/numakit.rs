//! `numa` under its second name.

use std::process::ExitCode;

fn main() -> ExitCode {
    numakit_cli::program::start()
}
