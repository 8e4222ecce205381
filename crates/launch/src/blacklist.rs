//! Blacklists of programs that run slower with huge pages: one of the machine, one of the user.

use numakit_model::numbers::hexadecimal;
use numakit_sys::file::open_to_read;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The path of a blacklist in a configuration directory.
const NAME: &str = "numakit/no-huge-pages";

/// The blacklists of the machine and of this user: lines with the name of a program or with
/// `sha256:` and the hash of its file; `#` begins a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blacklists(Vec<PathBuf>);

/// A line of a blacklist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlacklistEntry {
    /// The line.
    pub line: String,
    /// The list.
    pub list: PathBuf,
}

/// The result of searching the blacklists for a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlacklistMatch {
    /// The first line of the list that names the program.
    pub line: Option<BlacklistEntry>,
    /// Warnings: lists that cannot be read, each with the reason and the fix.
    pub warnings: Vec<String>,
}

impl Blacklists {
    /// The list in `/etc` and the one in the user's configuration directory.
    pub fn of_this_user(config_home: Option<OsString>, home: Option<OsString>) -> Self {
        let own = config_home.map(PathBuf::from).filter(|path| path.is_absolute());
        let own = own.or_else(|| home.map(|home| Path::new(&home).join(".config")));
        Self([Some(PathBuf::from("/etc")), own].into_iter().flatten().map(|p| p.join(NAME)).collect())
    }

    /// Searches them for a program. Lists that do not exist or cannot be read count as empty.
    pub fn find(&self, program: &Path) -> BlacklistMatch {
        use io::ErrorKind::{NotADirectory, NotFound};
        let mut found = BlacklistMatch::default();
        let mut hash = None;
        for list in &self.0 {
            match open_to_read(list).and_then(io::read_to_string) {
                Ok(text) if found.line.is_none() => {
                    let line = line_for(program, &text, &mut hash);
                    found.line = line.map(|line| BlacklistEntry { line, list: list.clone() });
                }
                Ok(_) => {}
                Err(error) if matches!(error.kind(), NotFound | NotADirectory) => {}
                Err(error) => found.warnings.push(format!(
                    "{} cannot be read ({error}), so programs in it may get huge pages; make it readable, \
                     or set XDG_CONFIG_HOME to a directory of this user",
                    list.display()
                )),
            }
        }
        found
    }
}

/// The line of a list that names a program. The program is read only if the list has hashes.
fn line_for(program: &Path, text: &str, hash: &mut Option<Option<String>>) -> Option<String> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let fits = |line: &&str| match line.strip_prefix("sha256:") {
        None => !line.is_empty() && *line == name,
        Some(wanted) => {
            let hash = hash.get_or_insert_with(|| hash_of(program).ok());
            hash.as_ref().is_some_and(|hash| wanted.eq_ignore_ascii_case(hash))
        }
    };
    lines.into_iter().find(fits).map(str::to_owned)
}

fn hash_of(program: &Path) -> io::Result<String> {
    let (mut file, mut hasher) = (open_to_read(program)?, Sha256::new());
    // Programs are large, so only one piece at a time is in memory.
    let mut piece = [0; 16 << 10];
    loop {
        match file.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => hasher.update(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(hexadecimal(&hasher.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn programs_are_found_by_name_or_content() {
        let folder = std::env::temp_dir().join(format!("numakit-blacklist-{}", std::process::id()));
        fs::create_dir_all(folder.join("numakit")).unwrap();
        let (list, program) = (folder.join(NAME), folder.join("solver"));
        fs::write(&program, "abc").unwrap();
        let lists = Blacklists::of_this_user(Some(folder.clone().into()), None);
        let find = |text: &str| {
            fs::write(&list, text).unwrap();
            lists.find(&program).line.map(|found| found.line)
        };
        assert_eq!(find(""), None);
        assert_eq!(find("# solver\nsolve\n"), None);
        assert_eq!(find("other\n solver # slow\n"), Some("solver".to_owned()));
        let hash = "sha256:BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD";
        assert_eq!(find(hash), Some(hash.to_owned()));
        assert_eq!(find("sha256:00"), None);
        assert_eq!(find("sha256:"), None);
        fs::remove_file(&list).unwrap();
        assert_eq!(lists.find(&program), BlacklistMatch::default());
        // A list that cannot be read does not prevent reading the others.
        fs::create_dir(&list).unwrap();
        let other = folder.join("other");
        fs::write(&other, "solver").unwrap();
        let found = Blacklists(vec![list.clone(), other.clone(), program.join("no-folder")]).find(&program);
        assert_eq!(found.line, Some(BlacklistEntry { line: "solver".to_owned(), list: other }));
        assert!(
            found.warnings.len() == 1 && found.warnings[0].contains("no-huge-pages cannot be read"),
            "{found:?}"
        );
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn lists_are_in_configuration_directories() {
        let places = |config: Option<&str>, home: Option<&str>| {
            Blacklists::of_this_user(config.map(Into::into), home.map(Into::into)).0
        };
        let etc = PathBuf::from("/etc/numakit/no-huge-pages");
        assert_eq!(places(None, None), std::slice::from_ref(&etc));
        assert_eq!(places(None, Some("/h")), [etc.clone(), "/h/.config/numakit/no-huge-pages".into()]);
        assert_eq!(places(Some("/c"), Some("/h")), [etc, "/c/numakit/no-huge-pages".into()]);
    }
}
