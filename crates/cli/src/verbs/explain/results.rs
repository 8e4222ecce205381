//! Results that `numa explain` compares.

use anyhow::{anyhow, bail};
use numakit_findings::comparison::explained::saved::{self, SavedResult, SavedResultError};
use numakit_sys::executable;
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

/// The result of the last observation.
pub(super) fn last() -> anyhow::Result<SavedResult> {
    let path = saved::kept_path().ok_or_else(|| {
        anyhow!("--compare: no earlier result is kept, since neither XDG_STATE_HOME nor HOME is set")
    })?;
    result(path.as_os_str()).map_err(|error| {
        anyhow!("--compare: {error}; observe the program once before the change, without --compare")
    })
}

fn result(path: &OsStr) -> Result<SavedResult, SavedResultError> {
    SavedResult::parse(Path::new(path), &saved::read(Path::new(path))?)
}
