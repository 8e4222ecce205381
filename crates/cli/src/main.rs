//! `numa`, and `numascope` or `numaplace` when called by that name.

use clap::Parser;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    numakit_sys::signal::default_broken_pipe();
    numakit_sys::memory::single_heap();
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    let (name, result) = match Path::new(&name).file_name() {
        Some(name) if name == "numascope" => ("numascope", numakit_cli::numascope::run(words)),
        Some(name) if name == "numaplace" => ("numaplace", numakit_cli::numaplace::run(words)),
        _ => ("numa", numakit_cli::Cli::parse().run()),
    };
    result.unwrap_or_else(|error| {
        eprintln!("{name}: {error:#}");
        ExitCode::from(2)
    })
}
