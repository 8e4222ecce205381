//! Child processes of tests: waiting for them has a limit, and a failed test leaves none behind.

use crate::wait::{LIMIT, wait_for};
use std::io::{BufRead, BufReader, Read};
use std::ops::{Deref, DerefMut};
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

/// A child process, killed when this is dropped.
#[derive(Debug)]
pub struct Started(pub Child);

impl Started {
    /// Its exit status once it has ended.
    ///
    /// # Panics
    /// After two minutes.
    #[track_caller]
    pub fn ended(&mut self) -> ExitStatus {
        wait_for(format_args!("the end of process {}", self.0.id()), || self.0.try_wait().ok().flatten())
    }
}

impl Deref for Started {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Started {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The lines of a child's output, up to its end. All are read, also when this is dropped: the child never waits for it.
#[derive(Debug)]
pub struct Lines(Receiver<String>);

impl Lines {
    /// The lines that come from here.
    pub fn of(output: impl Read + Send + 'static) -> Self {
        let (to, from) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.for_each(|line| drop(to.send(line)));
        });
        Self(from)
    }
}

impl Iterator for Lines {
    type Item = String;

    /// Fails after two minutes, as `until!` does.
    fn next(&mut self) -> Option<String> {
        let line = self.0.recv_timeout(LIMIT);
        assert!(line != Err(RecvTimeoutError::Timeout), "timeout after {LIMIT:.0?}: no further line");
        line.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::until;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    fn shell(script: &str) -> Started {
        Started(Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap())
    }

    #[test]
    fn lines_and_status_are_the_childs() {
        let mut child = shell("echo one; echo two; exit 7");
        let lines = Lines::of(child.stdout.take().unwrap());
        assert_eq!(lines.collect::<Vec<_>>(), ["one", "two"]);
        assert_eq!(child.ended().code(), Some(7));
    }

    #[test]
    fn a_child_ends_with_its_guard() {
        let mut child = shell("echo here; exec sleep 600");
        assert_eq!(Lines::of(child.stdout.take().unwrap()).next().as_deref(), Some("here"));
        let folder = PathBuf::from(format!("/proc/{}", child.id()));
        assert!(folder.exists());
        drop(child);
        until!(!folder.exists());
    }
}
