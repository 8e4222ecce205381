//! Results of `numa explain` that are kept: the newest one of each command line.

use super::saved::{self, RUNNERS, SavedResult, SavedResultError};
use numakit_sys::cache;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, io};

/// The folder of kept results, in that of all results.
const FOLDER: &str = "explained";
/// What the names of kept results end with.
const END: &str = ".json";
/// How many results are kept.
const MOST: usize = 20;
/// The kernel cuts the names of programs to this many bytes.
const CUT: usize = 15;

/// The folder with the results of this user. `None` if there is none, since neither XDG_STATE_HOME nor HOME is set.
pub fn folder() -> Option<PathBuf> {
    Some(cache::state_folder()?.join(FOLDER))
}

/// The kept results in this folder, with the times when they were written, the newest first.
pub fn newest_first(folder: &Path) -> io::Result<Vec<(SystemTime, PathBuf)>> {
    cache::newest_first(folder, END)
}

/// Keeps the JSON of a result of this command line in this folder, in place of the last one, and removes the oldest results. Only this
/// user can read it: it tells what a program does. Returns the file.
pub fn keep(folder: &Path, program: &str, json: &str) -> io::Result<PathBuf> {
    let name = file_name(program);
    cache::store_privately(folder, &name, json)?;
    for (_, old) in newest_first(folder)?.into_iter().skip(MOST) {
        // Another process may have removed it.
        let _ = fs::remove_file(old);
    }
    Ok(folder.join(name))
}

/// The first word of a command line, as far as it is plain, and a number for all of it.
fn file_name(program: &str) -> String {
    let mut hasher = DefaultHasher::new();
    program.hash(&mut hasher);
    let first = program.split(' ').next().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || "-_".contains(*letter);
    let name: String = first.chars().filter(is_plain).take(CUT).collect();
    format!("{name}-{:016x}{END}", hasher.finish())
}

/// A program whose kept result is looked for before it is observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoughtProgram {
    line: String,
    names: Vec<String>,
}

impl SoughtProgram {
    /// Of a command line, whose program may be any of its words, as in `numa run ./app`.
    pub fn of_command(line: &str) -> Self {
        let words = line.split(|letter: char| letter.is_whitespace() || "'\"".contains(letter));
        let names = words.filter_map(|word| word.rsplit('/').next()).map(|name| {
            let end = name.char_indices().map(|(at, letter)| at + letter.len_utf8());
            &name[..end.take_while(|end| *end <= CUT).last().unwrap_or(0)]
        });
        Self::of_processes(line, names.map(str::to_owned))
    }

    /// Of running processes with these names, which `words` describe.
    pub fn of_processes(words: &str, names: impl IntoIterator<Item = String>) -> Self {
        let is_told = |name: &String| !name.is_empty() && !RUNNERS.contains(&name.as_str());
        Self { line: words.to_owned(), names: names.into_iter().filter(is_told).collect() }
    }

    /// The newest kept result of the same command line, else the newest one of the same program; `None` if there is none. An error
    /// if there may be one in a file that cannot be read.
    pub fn newest(&self, folder: &Path) -> Result<Option<SavedResult>, SavedResultError> {
        let read = |path: &Path| SavedResult::parse(path, &saved::read(path)?);
        let listed = newest_first(folder)
            .map_err(|error| SavedResultError::Read { path: folder.to_owned(), error })?;
        let (mut of_program, mut unreadable) = (None, None);
        for (_, path) in listed {
            match read(&path) {
                Ok(result) if result.is_of_line(&self.line) => return Ok(Some(result)),
                Ok(result) if self.has_process_of(&result) => _ = of_program.get_or_insert(result),
                Ok(_) => {}
                Err(error) => _ = unreadable.get_or_insert(error),
            }
        }
        match (of_program, unreadable) {
            (None, Some(error)) => Err(error),
            (found, _) => Ok(found),
        }
    }

    fn has_process_of(&self, result: &SavedResult) -> bool {
        result.processes.iter().any(|process| self.names.contains(&process.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    struct Kept(PathBuf);

    impl Kept {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("numakit-kept-{name}-{}", std::process::id())))
        }

        /// Keeps a result of this command line and process, written this many seconds after others.
        fn add(&self, program: &str, process: &str, age: u64) -> PathBuf {
            let text = super::super::tests::text(0.1, 0.2, 0)
                .replace("\"program\": \"./a\"", &format!("\"program\": \"{program}\""))
                .replace(
                    "\"lines\"",
                    &format!("\"processes\": [{{\"pid\": 1, \"name\": \"{process}\"}}], \"lines\""),
                );
            let path = keep(&self.0, program, &text).unwrap();
            let when = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000 + age);
            fs::File::options().append(true).open(&path).unwrap().set_modified(when).unwrap();
            path
        }

        fn found(&self, sought: &SoughtProgram) -> Option<String> {
            sought.newest(&self.0).unwrap().map(|result| result.program)
        }
    }

    impl Drop for Kept {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn other_observations_in_between_do_not_replace_a_result() {
        let kept = Kept::new("between");
        let sought = SoughtProgram::of_command("numa run --thp on ./app 7");
        assert_eq!(kept.found(&sought), None);
        let path = kept.add("./app 7", "app", 1);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(path.file_name().unwrap().to_str().unwrap().starts_with("app-"), "{}", path.display());
        kept.add("sleep 1", "sleep", 2);
        kept.add("./app 8", "app", 3);
        assert_eq!(kept.found(&sought).as_deref(), Some("./app 7"), "the same command line comes first");
        assert_eq!(kept.add("./app 7", "app", 4), path, "the newest one of a command line");
        let other = SoughtProgram::of_command("/opt/app 9");
        assert_eq!(kept.found(&other).as_deref(), Some("./app 7"), "the newest one of the program");
        assert_eq!(kept.found(&SoughtProgram::of_command("./other")), None);
        let running = SoughtProgram::of_processes("process 9 (sleep)", ["sleep".to_owned()]);
        assert_eq!(kept.found(&running).as_deref(), Some("sleep 1"));
    }

    #[test]
    fn runners_are_no_program() {
        let kept = Kept::new("runners");
        kept.add("bash -c ./app", "bash", 1);
        assert_eq!(kept.found(&SoughtProgram::of_command("bash -c ./other")), None);
        assert_eq!(kept.found(&SoughtProgram::of_command("bash -c ./app")).as_deref(), Some("bash -c ./app"));
    }

    #[test]
    fn names_are_cut_as_the_kernel_cuts_them() {
        let sought = SoughtProgram::of_command("'/opt/a-program-with-a-long-name' 3");
        assert!(sought.names.contains(&"a-program-with-".to_owned()), "{sought:?}");
    }

    #[test]
    fn the_oldest_results_are_removed() {
        let kept = Kept::new("oldest");
        for number in 0..=MOST as u64 {
            kept.add(&format!("./app {number}"), "app", number);
        }
        assert_eq!(newest_first(&kept.0).unwrap().len(), MOST);
        fs::write(kept.0.join("other-1.json"), "no result").unwrap();
        let missing = SoughtProgram::of_command("./missing");
        assert!(matches!(missing.newest(&kept.0), Err(SavedResultError::Damaged { .. })));
        assert!(kept.found(&SoughtProgram::of_command("./app 9")).is_some());
    }
}
