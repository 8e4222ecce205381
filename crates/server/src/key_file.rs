//! Keys that outlive a restart: a file that only its owner can read.

use crate::access::{Secrets, random};
use numakit_sys::{file, user};
use std::fmt::Write;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a key file cannot be used.
#[derive(Debug, Error)]
pub enum KeyFileError {
    /// It can neither be read nor created.
    #[error("--key-file {}: {error}; give a file in a directory that you may write, which numa then creates", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Others could know the keys.
    #[error("--key-file {}: its mode is {mode:04o}, so others can read the keys; run: chmod 0600 {}; if others may have read it, remove it, and numa creates a new one", path.display(), path.display())]
    Mode {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Another user knows the keys.
    #[error("--key-file {}: it belongs to user {owner}, who knows the keys, and numa runs as user {own}; give a file of your own", path.display())]
    Owner {
        /// The file.
        path: PathBuf,
        /// Its user.
        owner: u32,
        /// This process's user.
        own: u32,
    },
    /// It is another file, or damaged.
    #[error("--key-file {}: line {line} is not '{expected}'; give a file that numa wrote, or a name that does not exist, for which numa creates it", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The number of the line.
        line: usize,
        /// What should be there.
        expected: &'static str,
    },
}

/// The secrets of a server, the same at every start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// Part of the cookies' name.
    pub name: String,
    /// Those of the controller.
    pub controller: Secrets,
    /// Those of viewers.
    pub viewer: Secrets,
}

/// The first line.
const HEAD: &str = "# Keys of the web page, written by numa. Who reads them has access.";
/// What the other lines begin with, and their number of digits.
const FIELDS: [(&str, &str, usize); 5] = [
    ("name", "name, a space and 8 hexadecimal digits", 8),
    ("control", "control, a space and 32 hexadecimal digits", 32),
    ("control-cookie", "control-cookie, a space and 32 hexadecimal digits", 32),
    ("view", "view, a space and 32 hexadecimal digits", 32),
    ("view-cookie", "view-cookie, a space and 32 hexadecimal digits", 32),
];
/// A larger file is not read.
const MAX_BYTES: u64 = 4096;
/// Mode of the file.
const MODE: u32 = 0o600;

impl Keys {
    /// New keys.
    pub fn random() -> io::Result<Self> {
        Ok(Self { name: random(4)?, controller: Secrets::new()?, viewer: Secrets::new()? })
    }

    /// The keys in this file. If it does not exist, it is created with new ones.
    pub fn open(path: &Path) -> Result<Self, KeyFileError> {
        let failed = |error| KeyFileError::System { path: path.to_owned(), error };
        match file::open_existing(path, false) {
            Ok(mut opened) => {
                let there = opened.metadata().map_err(failed)?;
                private(path, there.mode() & 0o7777, there.uid())?;
                let mut text = String::new();
                opened.by_ref().take(MAX_BYTES).read_to_string(&mut text).map_err(failed)?;
                Self::parse(path, &text)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let keys = Self::random().map_err(failed)?;
                match file::create_atomically(path, keys.text().as_bytes(), MODE) {
                    Ok(()) => Ok(keys),
                    // Another numa created it meanwhile.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Self::open(path),
                    Err(error) => Err(failed(error)),
                }
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn values(&self) -> [&str; 5] {
        let (controller, viewer) = (&self.controller, &self.viewer);
        [&self.name, &controller.token, &controller.cookie, &viewer.token, &viewer.cookie]
    }

    fn text(&self) -> String {
        let lines = FIELDS.iter().zip(self.values());
        lines.fold(format!("{HEAD}\n"), |mut text, ((name, ..), value)| {
            let _ = writeln!(text, "{name} {value}");
            text
        })
    }

    fn parse(path: &Path, text: &str) -> Result<Self, KeyFileError> {
        let wrong = |line, expected| KeyFileError::Content { path: path.to_owned(), line, expected };
        let mut lines = text.lines();
        if lines.next() != Some(HEAD) {
            return Err(wrong(1, HEAD));
        }
        let mut values = Vec::new();
        for (at, (name, expected, digits)) in FIELDS.into_iter().enumerate() {
            let value = lines.next().and_then(|line| line.strip_prefix(name)?.strip_prefix(' '));
            let value = value.filter(|v| v.len() == digits && v.bytes().all(|b| b.is_ascii_hexdigit()));
            values.push(value.ok_or_else(|| wrong(at + 2, expected))?.to_owned());
        }
        let [name, token, cookie, view_token, view_cookie] =
            <[String; 5]>::try_from(values).map_err(|_| wrong(1, HEAD))?;
        Ok(Self {
            name,
            controller: Secrets { token, cookie },
            viewer: Secrets { token: view_token, cookie: view_cookie },
        })
    }
}

/// An error unless only this user can read it.
fn private(path: &Path, mode: u32, owner: u32) -> Result<(), KeyFileError> {
    let own = user::id();
    if owner != own {
        return Err(KeyFileError::Owner { path: path.to_owned(), owner, own });
    }
    if mode & 0o077 != 0 {
        return Err(KeyFileError::Mode { path: path.to_owned(), mode });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// An empty folder, removed when it is dropped.
    struct Emptied(PathBuf);

    impl Emptied {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("numakit-keys-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Emptied {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn error(path: &Path) -> String {
        Keys::open(path).unwrap_err().to_string()
    }

    #[test]
    fn a_file_is_created_once_for_its_owner_only_and_read_afterwards() {
        let folder = Emptied::new("created");
        let path = folder.path().join("keys");
        let keys = Keys::open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        assert_eq!(Keys::open(&path).unwrap(), keys);
        assert_ne!(Keys::open(&folder.path().join("others")).unwrap(), keys);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left");
    }

    #[test]
    fn a_file_that_others_can_read_is_refused_with_the_fix() {
        let folder = Emptied::new("mode");
        let path = folder.path().join("keys");
        Keys::open(&path).unwrap();
        for mode in [0o644, 0o640, 0o606] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let said = error(&path);
            assert!(
                said.contains(&format!("its mode is {mode:04o}")) && said.contains("chmod 0600"),
                "{said}"
            );
        }
        fs::set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
        assert!(Keys::open(&path).is_ok());
        let foreign = private(&path, 0o600, user::id() + 1).unwrap_err().to_string();
        assert!(foreign.contains("give a file of your own"), "{foreign}");
    }

    #[test]
    fn other_and_damaged_files_are_refused_by_line() {
        let folder = Emptied::new("content");
        let path = folder.path().join("keys");
        let keys = Keys::open(&path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let control = &keys.controller.token;
        for (content, line) in [
            (String::new(), "line 1"),
            ("-----BEGIN PRIVATE KEY-----\n".to_owned(), "line 1"),
            (text.replace(control, &control[1..]), "line 3"),
            (text.replace(control, &format!("{}x", &control[1..])), "line 3"),
            (text.replace("view ", "see "), "line 5"),
            (text.lines().take(5).collect::<Vec<_>>().join("\n"), "line 6"),
        ] {
            fs::write(&path, content).unwrap();
            let said = error(&path);
            assert!(said.contains(line) && said.contains("for which numa creates it"), "{said}");
            assert!(!said.contains(&control[2..]), "the message has no key: {said}");
        }
    }

    #[test]
    fn links_folders_and_missing_folders_are_refused() {
        let folder = Emptied::new("links");
        let link = folder.path().join("link");
        symlink("nowhere", &link).unwrap();
        assert!(error(&link).contains("symbolic link"));
        assert!(error(folder.path()).contains("not a regular file"), "{}", error(folder.path()));
        assert!(error(&folder.path().join("no/keys")).contains("directory that you may write"));
    }
}
