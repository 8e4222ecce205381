//! The program: its names, and its exit codes.

use crate::originals::ORIGINALS;
use numakit_sys::stdio::{OutputError, say};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Runs the command line of this process. The name by which it was called decides which program it is.
pub fn start() -> ExitCode {
    numakit_sys::signal::default_broken_pipe();
    numakit_sys::signal::ignore_file_size_limit();
    let words: Vec<OsString> = std::env::args_os().collect();
    // That one measures the allocator as other programs have it.
    if words.get(1).is_none_or(|verb| verb != numakit_bench::ALLOC_WORK_VERB) {
        numakit_sys::memory::use_single_heap();
    }
    let name = words.first().and_then(|word| Path::new(word).file_name());
    let original = ORIGINALS.iter().find(|original| name.is_some_and(|name| name == original.name));
    let (name, result) = match original {
        Some(original) => (original.name, original.run(words.into_iter().skip(1).collect())),
        None => ("numa", crate::run(&words)),
    };
    result.unwrap_or_else(|error| failed(name, &error))
}

/// Exit code 1 if the verb did its work and only its output could not be written. A reader that closed
/// the pipe is no error.
fn failed(name: &str, error: &anyhow::Error) -> ExitCode {
    let output = error.chain().find_map(|cause| cause.downcast_ref::<OutputError>());
    if output.is_some_and(OutputError::is_closed_by_reader) {
        return ExitCode::SUCCESS;
    }
    say(format_args!("{name}: {error:#}\n"));
    ExitCode::from(if output.is_some() { 1 } else { 2 })
}
