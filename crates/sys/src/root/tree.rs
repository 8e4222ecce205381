//! A file tree in memory: the content of an archive, or of a test.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Files and links by absolute path. Directories exist if something is below them.
#[derive(Debug, Clone, Default)]
pub struct FileTree {
    entries: BTreeMap<String, Entry>,
    directories: BTreeSet<String>,
}

#[derive(Debug, Clone)]
enum Entry {
    File(Vec<u8>),
    Link(String),
    Failing(io::ErrorKind),
}

/// Links followed before a path counts as a loop.
const MAX_LINKS: usize = 40;

impl FileTree {
    /// An empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a file.
    pub fn file(&mut self, path: &str, content: impl Into<Vec<u8>>) -> &mut Self {
        self.put(path, Entry::File(content.into()))
    }

    /// Adds a symbolic link.
    pub fn symlink(&mut self, path: &str, target: &str) -> &mut Self {
        self.put(path, Entry::Link(target.to_owned()))
    }

    /// Adds an empty directory.
    pub fn directory(&mut self, path: &str) -> &mut Self {
        self.make_parents(&format!("{path}/x"));
        self
    }

    /// Makes every read of this path, or listing of this directory, fail with this error.
    pub fn failing(&mut self, path: &str, kind: io::ErrorKind) -> &mut Self {
        self.put(path, Entry::Failing(kind))
    }

    /// Removes a file, or a directory with everything in it.
    pub fn remove(&mut self, path: &str) -> &mut Self {
        let below = format!("{path}/");
        self.entries.retain(|p, _| p != path && !p.starts_with(&below));
        self.directories.retain(|p| p != path && !p.starts_with(&below));
        self
    }

    /// Every file with its content.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.entries.iter().filter_map(|(path, entry)| match entry {
            Entry::File(content) => Some((path.as_str(), content.as_slice())),
            _ => None,
        })
    }

    /// Every symbolic link with its target.
    pub fn links(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().filter_map(|(path, entry)| match entry {
            Entry::Link(target) => Some((path.as_str(), target.as_str())),
            _ => None,
        })
    }

    /// Every directory.
    pub fn directories(&self) -> impl Iterator<Item = &str> {
        self.directories.iter().map(String::as_str)
    }

    fn put(&mut self, path: &str, entry: Entry) -> &mut Self {
        let path = normal(path);
        self.make_parents(&path);
        self.entries.insert(path, entry);
        self
    }

    fn make_parents(&mut self, path: &str) {
        let mut end = path.len();
        while let Some(slash) = path[..end].rfind('/') {
            if slash == 0 || !self.directories.insert(path[..slash].to_owned()) {
                break;
            }
            end = slash;
        }
    }

    pub(super) fn read(&self, path: &str) -> io::Result<&[u8]> {
        match self.entries.get(&self.resolve(path)?) {
            Some(Entry::File(content)) => Ok(content),
            Some(Entry::Failing(kind)) => Err((*kind).into()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn link(&self, path: &str) -> io::Result<String> {
        let path = normal(path);
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", &path));
        match self.entries.get(&format!("{}/{name}", self.resolve(parent)?)) {
            Some(Entry::Link(target)) => Ok(target.clone()),
            Some(_) => Err(io::ErrorKind::InvalidInput.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.resolve(path).is_ok_and(|p| self.entries.contains_key(&p) || self.directories.contains(&p))
    }

    pub(super) fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let path = self.resolve(path)?;
        if let Some(Entry::Failing(kind)) = self.entries.get(&path) {
            return Err((*kind).into());
        }
        if !self.directories.contains(&path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let below = format!("{path}/");
        let name = |p: &String| p.strip_prefix(&below).filter(|n| !n.contains('/')).map(str::to_owned);
        let after = |p: &&String| p.starts_with(&below);
        let files = self.entries.range(below.clone()..).map(|(p, _)| p).take_while(after).filter_map(name);
        let folders = self.directories.range(below.clone()..).take_while(after).filter_map(name);
        let mut names: Vec<String> = files.chain(folders).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// The path with every link resolved; `..` at the root stays at the root.
    fn resolve(&self, path: &str) -> io::Result<String> {
        let mut rest: Vec<String> = parts(path).rev().collect();
        let mut done = String::new();
        let mut links = 0;
        while let Some(part) = rest.pop() {
            if part == ".." {
                done.truncate(done.rfind('/').unwrap_or(0));
                continue;
            }
            let next = format!("{done}/{part}");
            let Some(Entry::Link(target)) = self.entries.get(&next) else {
                done = next;
                continue;
            };
            links += 1;
            if links > MAX_LINKS {
                return Err(io::Error::other("too many levels of symbolic links"));
            }
            if target.starts_with('/') {
                done.clear();
            }
            rest.extend(parts(target).rev());
        }
        Ok(done)
    }
}

fn parts(path: &str) -> impl DoubleEndedIterator<Item = String> + '_ {
    path.split('/').filter(|p| !p.is_empty() && *p != ".").map(str::to_owned)
}

fn normal(path: &str) -> String {
    parts(path).fold(String::new(), |all, part| all + "/" + &part)
}
