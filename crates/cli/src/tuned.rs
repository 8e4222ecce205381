//! Files and progress of `numa tune`.

use anyhow::{Context, anyhow};
use numakit_model::numbers::duration;
use numakit_sys::cache;
use numakit_sys::command::quoted;
use numakit_sys::executable;
use numakit_sys::stdio::replace_line;
use numakit_sys::tty;
use numakit_trials::{
    Advised, AdvisedRemedy, ReportedAnswer, ReportedCandidate, TrialScene, TuneReport, TuneSession,
};
use numakit_tune::candidates::{TuneOption, TuneSetting};
use numakit_tune::tuning::TuneRemedy;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// The folder of tunings, in that of all results.
const FOLDER: &str = "tuned";
/// How many are kept.
const MOST: usize = 20;
/// Letters of a program's name that are part of a file's.
const NAME: usize = 15;

/// The files of a tuning.
#[derive(Debug)]
pub struct TuneFiles {
    /// All runs.
    pub session: PathBuf,
    /// What `numa explain` found.
    pub observed: PathBuf,
    /// The cure that it wrote.
    pub cure: PathBuf,
    is_cure_kept: bool,
}

impl Drop for TuneFiles {
    /// Removes what was read, and a cure that nobody tries: whatever ends a tuning before its first race leaves nothing behind.
    fn drop(&mut self) {
        // Nothing is there if the program was not observed.
        let _ = fs::remove_file(&self.observed);
        if !self.is_cure_kept {
            let _ = fs::remove_file(&self.cure);
        }
    }
}

impl TuneFiles {
    /// Chooses the files for a scene. The cure is in the working directory, where it can be typed, unless there is a file of its name.
    pub fn of(scene: &TrialScene) -> anyhow::Result<Self> {
        let folder = cache::state_folder().ok_or_else(|| {
            anyhow!("there is no place to keep the runs; set HOME, or XDG_STATE_HOME to a directory of yours")
        })?;
        let folder = folder.join(FOLDER);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).with_context(|| {
            format!("cannot create {}; set XDG_STATE_HOME to a directory of yours", folder.display())
        })?;
        for (_, old) in cache::newest_first(&folder, ".json")?.into_iter().skip(MOST - 1) {
            // Another process may have removed it.
            let _ = fs::remove_file(&old);
            let _ = fs::remove_file(old.with_extension("cure"));
        }
        let words = scene.words();
        let name = name_of(words);
        let mut hasher = DefaultHasher::new();
        (words, std::process::id(), numakit_sys::clock::utc()).hash(&mut hasher);
        let unique = format!("{name}-{:016x}", hasher.finish());
        let here = PathBuf::from(format!("{name}.cure"));
        let is_free =
            !here.exists() && fs::metadata(".").is_ok_and(|folder| !folder.permissions().readonly());
        Ok(Self {
            session: folder.join(format!("{unique}.json")),
            observed: folder.join(format!("{unique}.observed")),
            cure: if is_free { here } else { folder.join(format!("{unique}.cure")) },
            is_cure_kept: false,
        })
    }

    /// The file of the cure as it is typed.
    pub fn cure_word(&self) -> String {
        self.cure.display().to_string()
    }

    /// Keeps the cure, if it is one of these remedies.
    pub fn keep_cure_of(&mut self, advised: &Advised) {
        self.is_cure_kept = cure_of(advised) == Some(&self.cure_word());
    }
}

/// What files of a command are named after: the first program that is given with its directory, since what stands before may only
/// start it, as taskset does; else the first word.
fn name_of(words: &[String]) -> String {
    let is_program =
        |word: &&String| word.contains('/') && executable::find(word.as_ref(), "".as_ref()).is_ok();
    let first = || words.iter().find(|word| !word.starts_with('-'));
    let program = words.iter().find(is_program).or_else(first).map_or("program", String::as_str);
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || "-_".contains(*letter);
    program.rsplit('/').next().unwrap_or(program).chars().filter(is_plain).take(NAME).collect()
}

/// Removes the cure if nobody types its name.
pub fn remove_useless_cure(session: &TuneSession, report: &TuneReport) {
    let is_used = |file: &String| {
        let gains = |one: &&ReportedCandidate| one.gain().is_some_and(|gain| gain.gain >= report.worth);
        report.answer != ReportedAnswer::Nothing
            && report.candidates.iter().filter(gains).any(|one| one.command.contains(&quoted(&[file])))
    };
    if let Some(file) = cure_of(&session.advised).filter(|file| !is_used(file)) {
        // It was written by this tuning, and may have been removed.
        let _ = fs::remove_file(file);
    }
}

/// The file of the cure that an observation wrote, if it is one of these remedies. That of a setting that the user gave is the user's.
fn cure_of(advised: &Advised) -> Option<&String> {
    let found = advised.remedies.iter().filter(|advised| advised.says.is_some());
    let mut options = found.flat_map(|advised| advised.remedy.setting.options());
    options.find_map(|option| match option {
        TuneOption::Cure(file) => Some(file),
        _ => None,
    })
}

/// What is tried of a running program: threads and memory, memory, threads.
pub fn moves() -> Advised {
    let remedy = |(words, says): (&[&str], &str)| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let setting = TuneSetting::typed(&[], Some(&words));
        AdvisedRemedy { remedy: TuneRemedy { setting, bound: None }, says: Some(says.to_owned()) }
    };
    let all: [(&[&str], &str); 3] = [
        (&[], "threads to cores, and their memory to them"),
        (&["--pages"], "memory to the nodes of its threads"),
        (&["--threads"], "threads to cores of their own"),
    ];
    Advised { remedies: all.map(remedy).into(), ..Advised::default() }
}

/// Words as text, as the file of a tuning has them.
pub fn texts(words: &[OsString]) -> anyhow::Result<Vec<String>> {
    let text = |word: &OsString| {
        word.to_str().map(str::to_owned).ok_or_else(|| {
            anyhow!(
                "'{}' is not UTF-8, which the file of a tuning cannot hold; start it by a script",
                word.display()
            )
        })
    };
    words.iter().map(text).collect()
}

/// Says on the terminal what is done now.
pub fn progress(what: &str) {
    if tty::is_error() {
        replace_line(Some(what));
    }
}

/// Says on the terminal what runs next, and how much time is left.
pub fn progress_of(session: &TuneSession, setting: &TuneSetting) {
    let left = session.tuning.budget_left();
    let left = match left.seconds {
        Some(seconds) => format!("at most {} left", duration(seconds.max(0.0))),
        None => format!("at most {} runs left", left.runs),
    };
    let race = session.tuning.stages().len();
    progress(&format!("race {race}, run {}, {left}: {}", session.runs.len() + 1, session.typed(setting)));
}

/// Removes the line.
pub fn end_progress() {
    if tty::is_error() {
        replace_line(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_after_the_program_and_not_after_what_starts_it() {
        let name = |line: &str| name_of(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(name("setpriv --reuid=postgres /bin/sh -c x"), "sh");
        assert_eq!(name("taskset 3 /no/such/program"), "taskset");
        assert_eq!(name("/bin/sh /bin/ls"), "sh");
        assert_eq!(name("python3 a.py"), "python3");
        assert_eq!(name("--pid 12"), "12");
    }
}
