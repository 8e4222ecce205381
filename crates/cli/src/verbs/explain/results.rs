//! Results that `numa explain` compares.

use crate::to_file;
use anyhow::{anyhow, bail};
use numakit_findings::comparison::explained::compare;
use numakit_findings::comparison::explained::kept::{self, SoughtProgram};
use numakit_findings::comparison::explained::saved::{self, SavedResult, SavedResultError};
use numakit_findings::explained::JudgedReport;
use numakit_processes::ChosenProcesses;
use numakit_sys::command::quoted;
use numakit_sys::proc::TaskDir;
use numakit_sys::stdio::note;
use numakit_sys::{SysRoot, executable};
use numakit_terminal::compare::text;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The two results that the words of a command name; `None` if they are a command.
pub(super) fn named(words: &[OsString]) -> anyhow::Result<Option<(SavedResult, SavedResult)>> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    match words {
        [first, ..] if executable::find(first, &path).is_ok() => Ok(None),
        [one] if one.to_str().is_some_and(|word| word.parse::<u32>().is_ok()) => {
            let number = one.display();
            bail!("'{number}' is not a program; 'numa explain --pid {number} --for 10s' observes a process")
        }
        [one] if result(one).is_ok() => {
            let shown = one.display();
            bail!(
                "{shown} is a result, not a program: 'numa show {shown}' prints it, and 'numa explain {shown} AFTER' compares it"
            )
        }
        [before, after] => match (result(before), result(after)) {
            (Ok(before), Ok(after)) => Ok(Some((before, after))),
            // Neither is a result: the words are a command, whose program cannot be run, unless their names say otherwise.
            (Err(_), Err(_)) if !words.iter().all(|word| word.as_encoded_bytes().ends_with(b".json")) => {
                Ok(None)
            }
            (Err(error), _) | (_, Err(error)) => Err(error.into()),
        },
        _ => Ok(None),
    }
}

/// The last result of the program that is observed now.
pub(super) fn last(command: &[OsString], chosen: Option<&ChosenProcesses>) -> anyhow::Result<SavedResult> {
    let folder = kept::folder().ok_or_else(|| {
        anyhow!("--compare: no earlier result is kept, since neither XDG_STATE_HOME nor HOME is set")
    })?;
    let (program, sought) = match chosen {
        None => (quoted(command), SoughtProgram::of_command(&quoted(command))),
        Some(chosen) => {
            let root = SysRoot::host();
            let stats = chosen.numbers().iter().filter_map(|pid| TaskDir::of(&root, *pid).stat().ok());
            let names: Vec<String> = stats.map(|stat| stat.name()).collect();
            (chosen.to_string(), SoughtProgram::of_processes(&chosen.to_string(), names))
        }
    };
    let found = sought.newest(&folder).map_err(|error| anyhow!("--compare: {error}; remove it"))?;
    found.ok_or_else(|| {
        anyhow!(
            "--compare: no result of '{program}' is kept in {}; observe the program once before the change, without --compare",
            folder.display()
        )
    })
}

/// What changed since the result before; empty, with a message, if that is of another program.
pub(super) fn compared(before: &SavedResult, after: &SavedResult, rows: usize) -> String {
    if before.is_of_program_of(after) {
        return text(&compare(before, after), rows) + "\n";
    }
    note(format_args!(
        "the last observation was of another program, '{}': nothing is compared. This one is kept now; type the same again after a \
         change",
        before.program
    ));
    String::new()
}

/// Keeps a result; returns whether that was possible.
pub(super) fn keep(report: &JudgedReport, json: &str) -> bool {
    kept::folder().is_some_and(|folder| kept::keep(&folder, &report.report.program, json).is_ok())
}

/// The word by which the next run finds the cure of this observation; `None` if nothing keeps it.
pub(super) fn cure_word(file: Option<&Path>) -> Option<String> {
    match file.filter(|file| !to_file::is_standard_output(file)) {
        Some(file) => Some(quoted(&[file])),
        None => kept::folder().map(|_| "last".to_owned()),
    }
}

fn result(path: &OsStr) -> Result<SavedResult, SavedResultError> {
    SavedResult::parse(Path::new(path), &saved::read(Path::new(path))?)
}
