//! How a verb writes a file: whole or not at all, never in place of what is no regular file.

use anyhow::{Context, anyhow, bail};
pub use numakit_sys::output::Existing;
use numakit_sys::output::Output;
use numakit_sys::{stdio, tty};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;

/// Whether this means standard output.
pub fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// What cannot be read by people is not written to a terminal.
pub fn no_terminal(what: &str) -> anyhow::Result<()> {
    if tty::is_output() {
        bail!("{what} is no text for a terminal; give a file with -o, or lead standard output into one");
    }
    Ok(())
}

/// Has a file written, which gets its name when all of it is there; '-' is standard output.
/// `taken` says what to do where the name is another file's.
pub fn write<T>(
    path: &Path,
    existing: Existing,
    taken: &str,
    fill: impl FnOnce(&mut (dyn Write + Send)) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    if is_standard_output(path) {
        let mut to = BufWriter::with_capacity(1 << 16, stdio::Output::default());
        let done = filled(&mut to, fill);
        return match to.get_ref().failure() {
            Some(error) => Err(error.into()),
            None => done,
        };
    }
    let shown = path.display();
    let cannot = |error: io::Error| match error.kind() {
        ErrorKind::AlreadyExists => anyhow!("{shown} exists; {taken}"),
        _ => anyhow!(
            "cannot write {shown}: {error}; give the name of a file in a folder that you may write to, or '-' \
             for standard output"
        ),
    };
    let mut output = Output::create(path, existing).map_err(cannot)?;
    let done = filled(&mut BufWriter::with_capacity(1 << 16, &mut output), fill).with_context(|| {
        let left = if path.exists() { "is as it was" } else { "was not written" };
        format!("{shown} {left}")
    })?;
    output.keep().map_err(cannot)?;
    Ok(done)
}

fn filled<T>(
    to: &mut (impl Write + Send),
    fill: impl FnOnce(&mut (dyn Write + Send)) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let done = fill(to)?;
    to.flush()?;
    Ok(done)
}
