//! Writes a file completely or not at all, and never replaces one that is not regular.

use anyhow::{Context, anyhow, bail};
pub use numakit_sys::output::Existing;
use numakit_sys::output::{KeptOutput, OutputFile};
use numakit_sys::{executable, stdio, tty};
use std::ffi::OsStr;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;

/// Whether this means standard output.
pub fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// Refuses to write binary data to a terminal.
pub fn no_terminal(what: &str) -> anyhow::Result<()> {
    if tty::is_output() {
        bail!("{what} is binary and standard output is a terminal; use -o FILE, or redirect standard output");
    }
    Ok(())
}

/// Keeps standard output from the observed program if a result goes there.
pub fn keep_from_program<'a>(
    results: impl IntoIterator<Item = &'a Path>,
) -> anyhow::Result<Option<KeptOutput>> {
    let goes_there = results.into_iter().any(is_standard_output);
    goes_there.then(KeptOutput::redirect).transpose().context("cannot use standard output")
}

/// Ends what [`keep_from_program`] began.
pub fn give_back(kept: Option<KeptOutput>) -> anyhow::Result<()> {
    kept.map_or(Ok(()), KeptOutput::give_back).context("cannot use standard output")
}

/// Whether a file can be written, before work is done that would be lost.
pub fn check(path: &Path, existing: Existing) -> anyhow::Result<()> {
    if is_standard_output(path) {
        return Ok(());
    }
    // An option whose file was forgotten takes the program that follows.
    if existing == Existing::Replace && executable::find(path.as_os_str(), OsStr::new("")).is_ok() {
        bail!(
            "{0} is a program, which a result would replace; give the file before it, as in 'result.json {0}'",
            path.display()
        );
    }
    OutputFile::create(path, existing).map(drop).map_err(|error| cannot(path, &error))
}

fn cannot(path: &Path, error: &io::Error) -> anyhow::Error {
    let shown = path.display();
    anyhow!(
        "cannot write {shown}: {error}; give a file in a directory where you have write permission, or '-' for \
         standard output"
    )
}

/// Writes a file, which gets its name when it is complete; '-' is standard output. `fix_if_exists` is
/// printed if a file with this name exists.
pub fn write<T>(
    path: &Path,
    existing: Existing,
    fix_if_exists: &str,
    fill: impl FnOnce(&mut (dyn Write + Send)) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    if is_standard_output(path) {
        let mut to = BufWriter::with_capacity(1 << 16, stdio::Stdout::for_text());
        let result = fill_and_flush(&mut to, fill);
        return match to.get_ref().failure() {
            Some(error) => Err(error.into()),
            None => result,
        };
    }
    let shown = path.display();
    let cannot = |error: io::Error| match error.kind() {
        ErrorKind::AlreadyExists => anyhow!("{shown} exists; {fix_if_exists}"),
        _ => cannot(path, &error),
    };
    let mut output = OutputFile::create(path, existing).map_err(cannot)?;
    let result =
        fill_and_flush(&mut BufWriter::with_capacity(1 << 16, &mut output), fill).with_context(|| {
            let left = if path.exists() { "is unchanged" } else { "was not written" };
            format!("{shown} {left}")
        })?;
    output.persist().map_err(cannot)?;
    Ok(result)
}

fn fill_and_flush<T>(
    to: &mut (impl Write + Send),
    fill: impl FnOnce(&mut (dyn Write + Send)) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let result = fill(to)?;
    to.flush()?;
    Ok(result)
}
