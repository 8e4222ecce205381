//! Programs that are known to suffer from huge pages: lists of the user and of the machine.

use numakit_sys::file::open_to_read;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The name of such a list in a folder of settings.
const NAME: &str = "numakit/no-huge-pages";

/// The lists of the machine and of this user: lines with the name of a program or with
/// `sha256:` and the hash of its file; `#` begins a remark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lists(Vec<PathBuf>);

/// What a list says of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The line.
    pub line: String,
    /// The list.
    pub list: PathBuf,
}

impl Lists {
    /// In `/etc` and in the user's folder of settings.
    pub fn usual(config_home: Option<OsString>, home: Option<OsString>) -> Self {
        let own = config_home.map(PathBuf::from).filter(|path| path.is_absolute());
        let own = own.or_else(|| home.map(|home| Path::new(&home).join(".config")));
        Self([Some(PathBuf::from("/etc")), own].into_iter().flatten().map(|p| p.join(NAME)).collect())
    }

    /// Whether a program is in one of them. A list that is not there is empty; one that cannot
    /// be read is an error.
    pub fn find(&self, program: &Path) -> io::Result<Option<Match>> {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let mut hash: Option<Option<String>> = None;
        for list in &self.0 {
            let text = match open_to_read(list).and_then(io::read_to_string) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    return Err(io::Error::new(error.kind(), format!("{}: {error}", list.display())));
                }
            };
            let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
            for line in lines.filter(|line| !line.is_empty()) {
                let fits = match line.strip_prefix("sha256:") {
                    None => line == name,
                    Some(wanted) => {
                        // Only a list with hashes makes us read the program.
                        let hash = hash.get_or_insert_with(|| hash_of(program).ok());
                        hash.as_ref().is_some_and(|hash| wanted.eq_ignore_ascii_case(hash))
                    }
                };
                if fits {
                    return Ok(Some(Match { line: line.to_owned(), list: list.clone() }));
                }
            }
        }
        Ok(None)
    }
}

fn hash_of(program: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    io::copy(&mut File::open(program)?, &mut hasher)?;
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn programs_are_found_by_name_or_content() {
        let folder = std::env::temp_dir().join(format!("numakit-sufferers-{}", std::process::id()));
        fs::create_dir_all(folder.join("numakit")).unwrap();
        let (list, program) = (folder.join(NAME), folder.join("solver"));
        fs::write(&program, "abc").unwrap();
        let lists = Lists::usual(Some(folder.clone().into()), None);
        let find = |text: &str| {
            fs::write(&list, text).unwrap();
            lists.find(&program).unwrap().map(|found| found.line)
        };
        assert_eq!(find(""), None);
        assert_eq!(find("# solver\nsolve\n"), None);
        assert_eq!(find("other\n solver # slow\n"), Some("solver".to_owned()));
        let hash = "sha256:BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD";
        assert_eq!(find(hash), Some(hash.to_owned()));
        assert_eq!(find("sha256:00"), None);
        assert_eq!(find("sha256:"), None);
        fs::remove_file(&list).unwrap();
        assert_eq!(lists.find(&program).unwrap(), None);
        fs::create_dir(&list).unwrap();
        assert!(lists.find(&program).unwrap_err().to_string().contains("no-huge-pages"));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn lists_are_where_settings_are() {
        let places = |config: Option<&str>, home: Option<&str>| {
            Lists::usual(config.map(Into::into), home.map(Into::into)).0
        };
        let etc = PathBuf::from("/etc/numakit/no-huge-pages");
        assert_eq!(places(None, None), std::slice::from_ref(&etc));
        assert_eq!(places(None, Some("/h")), [etc.clone(), "/h/.config/numakit/no-huge-pages".into()]);
        assert_eq!(places(Some("/c"), Some("/h")), [etc, "/c/numakit/no-huge-pages".into()]);
    }
}
