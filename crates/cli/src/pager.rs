//! Long text on a terminal.

use anyhow::Context;
use numakit_sys::signal::{self, Signals};
use numakit_sys::stdio::print;
use numakit_sys::tty;
use std::io::Write;
use std::process::{Command, Stdio};

/// Variables that name a pager, as a line of the shell; the first that is set is used.
const VARIABLES: [&str; 2] = ["NUMAKIT_PAGER", "PAGER"];
/// The pager where none is named.
const DEFAULT: &str = "less";
/// The options of less where LESS is not set: quit if the text fits the screen, show bold text, leave the text there.
const OPTIONS_OF_LESS: &str = "FRX";
/// What the shell exits with if there is no such program.
const NOT_FOUND: i32 = 127;

/// Shows text page by page. It is printed if standard output is no terminal, if the pager is 'cat' or empty, or if there is no
/// pager.
pub fn show(text: &str) -> anyhow::Result<()> {
    let named = VARIABLES.iter().find_map(|name| std::env::var(name).ok());
    let pager = named.as_deref().unwrap_or(DEFAULT).trim();
    if !tty::is_output() || ["", "cat"].contains(&pager) {
        return Ok(print(text)?);
    }
    // Ctrl-C must not end this process before the pager, which uses the terminal; it ends with its own key.
    let signals = Signals::collect(&[signal::INTERRUPT]).context("cannot collect signals")?;
    let mut command = Command::new("sh");
    command.args(["-c", pager]).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", OPTIONS_OF_LESS);
    }
    if named.is_none() {
        // The shell would say that there is no less.
        command.stderr(Stdio::null());
    }
    let mut child = command.spawn().context("cannot start the pager")?;
    // The user may quit before the end, and a pager that is not there reads nothing: neither ends this process.
    signal::ignore_broken_pipe();
    if let Some(mut input) = child.stdin.take() {
        let _ = input.write_all(text.as_bytes());
    }
    let status = child.wait().context("cannot wait for the pager")?;
    drop(signals);
    if status.code() == Some(NOT_FOUND) {
        print(text)?;
    }
    Ok(())
}
