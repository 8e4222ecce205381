//! A file that is read at every tick, and opened again some time after a failure.

use super::{ReadError, RootFile, SysRoot};

/// Number of reads before a failed file is opened again: a CPU or node that comes back is found
/// soon, and a removed one costs little.
pub const PATIENCE: u32 = 10;

/// An open file of a [`SysRoot`].
#[derive(Debug)]
pub struct Watched {
    root: SysRoot,
    state: State,
    path: String,
}

#[derive(Debug)]
enum State {
    Open(RootFile),
    Failed { why: ReadError, wait: u32 },
}

impl Watched {
    /// Opens the file.
    pub fn open(root: &SysRoot, path: impl Into<String>) -> Result<Self, ReadError> {
        let path = path.into();
        Ok(Self { state: State::Open(root.source(&path)?), root: root.clone(), path })
    }

    /// Its path, below the root.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Reads the current content into the buffer. False if that fails; [`Watched::failure`] then
    /// says why.
    pub fn read(&mut self, buffer: &mut Vec<u8>) -> bool {
        if let State::Failed { why, wait } = &mut self.state {
            *wait = wait.saturating_sub(1);
            if *wait > 0 {
                return false;
            }
            match self.root.source(&self.path) {
                Ok(source) => self.state = State::Open(source),
                Err(error) => {
                    (*why, *wait) = (error, PATIENCE);
                    return false;
                }
            }
        }
        let State::Open(source) = &mut self.state else { return false };
        match source.read(buffer) {
            Ok(()) => true,
            Err(why) => {
                self.state = State::Failed { why, wait: PATIENCE };
                false
            }
        }
    }

    /// Why the last read failed.
    pub fn failure(&self) -> Option<&ReadError> {
        match &self.state {
            State::Open(_) => None,
            State::Failed { why, .. } => Some(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::FileTree;
    use std::io::ErrorKind;

    #[test]
    fn a_file_that_comes_back_is_found_after_a_while() {
        let mut tree = FileTree::new();
        tree.file("/proc/x", "1\n");
        let root = SysRoot::of_tree(tree);
        let mut file = Watched::open(&root, "/proc/x").unwrap();
        let mut buffer = Vec::new();
        assert!(file.read(&mut buffer));
        root.change(|t| _ = t.failing("/proc/x", ErrorKind::NotFound));
        assert!(!file.read(&mut buffer));
        assert_eq!(file.failure().unwrap().to_string(), "/proc/x: no such file");
        root.change(|t| _ = t.file("/proc/x", "2\n"));
        for _ in 1..PATIENCE {
            assert!(!file.read(&mut buffer));
        }
        assert!(file.read(&mut buffer));
        assert_eq!(buffer, b"2\n");
        assert!(file.failure().is_none());
    }
}
