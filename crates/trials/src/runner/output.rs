//! What a run prints.

use numakit_sys::children::ChildEnd;
use numakit_sys::file::create_unnamed;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Of longer output only the end is searched.
const SEARCHED: u64 = 8 << 20;
/// Letters of the last line that are shown.
const SHOWN: usize = 200;

/// Files with the output of a run. They have no names, so that nothing of them stays.
#[derive(Debug)]
pub(super) struct TrialOutput {
    pub(super) output: File,
    pub(super) errors: File,
}

impl TrialOutput {
    pub(super) fn new() -> io::Result<Self> {
        let folder = std::env::temp_dir();
        Ok(Self { output: create_unnamed(&folder)?, errors: create_unnamed(&folder)? })
    }

    /// What it printed, and the errors.
    pub(super) fn text(&self) -> io::Result<String> {
        Ok(end_of(&self.output)? + "\n" + &end_of(&self.errors)?)
    }

    /// What it printed, without errors.
    pub(super) fn printed(&self) -> io::Result<String> {
        end_of(&self.output)
    }

    /// How it ended, with the last line that it printed.
    pub(super) fn ending(&self, end: ChildEnd) -> String {
        self.ending_with(end, |_| true)
    }

    /// The same for a program that `numa run` has started: what that said before is not why the program failed.
    pub(super) fn ending_of_started(&self, end: ChildEnd) -> String {
        self.ending_with(end, |line| !line.starts_with("numa: "))
    }

    fn ending_with(&self, end: ChildEnd, is_shown: impl Fn(&str) -> bool) -> String {
        let how = match end {
            ChildEnd::Exited(status) => format!("exit status {status}"),
            ChildEnd::Killed(signal) => format!("killed by signal {signal}"),
        };
        let last = |file: &File| {
            let text = end_of(file).ok()?;
            let line = text.lines().rfind(|line| !line.trim().is_empty() && is_shown(line))?;
            Some(line.trim().chars().take(SHOWN).collect::<String>())
        };
        match last(&self.errors).or_else(|| last(&self.output)) {
            Some(line) => format!("{how}: {line}"),
            None => format!("{how}, and it printed nothing"),
        }
    }
}

/// The end of a file. Its place is shared with the program, which has ended.
fn end_of(file: &File) -> io::Result<String> {
    let mut file = file;
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(SEARCHED)))?;
    let mut bytes = Vec::new();
    file.take(SEARCHED).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
