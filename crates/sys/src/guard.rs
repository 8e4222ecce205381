//! Settings of the machine that are changed for a moment: a process of its own restores them when this one ends, however it ends.

use crate::supervise::{self, Fork, close_all_but, detach_stdio, exit_now, leave_session};
use std::fs::{self, File};
use std::io::{self, ErrorKind, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// What the guard reads if nothing is left to restore.
const DONE: u8 = b'.';

/// The settings that may be changed, and the process that restores them.
#[derive(Debug)]
pub struct SettingsGuard {
    /// The process.
    process: u32,
    pipe: PipeWriter,
    before: Vec<(PathBuf, String)>,
}

/// The value of a setting: the word in brackets where a file lists all of them, else all of it.
pub fn value(path: &Path) -> io::Result<String> {
    let text = fs::read_to_string(path)?;
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    Ok(chosen.map_or(text.as_str(), |(word, _)| word).trim().to_owned())
}

impl SettingsGuard {
    /// Starts the process. An error if this process has several threads, or if a setting cannot be read.
    pub fn start(paths: &[PathBuf]) -> io::Result<Self> {
        let before: Vec<(PathBuf, String)> =
            paths.iter().map(|path| Ok((path.clone(), value(path)?))).collect::<io::Result<_>>()?;
        let (mut reader, pipe) = io::pipe()?;
        match supervise::fork()? {
            Fork::Parent(process) => Ok(Self { process, pipe, before }),
            Fork::Child => {
                drop(pipe);
                // What fails here leaves a guard that hears signals of the terminal, which is better than none.
                let _ = leave_session();
                let _ = detach_stdio(true);
                let _ = close_all_but(&[reader.as_raw_fd()]);
                let mut last = [0];
                let is_done = matches!(reader.read(&mut last), Ok(1)) && last[0] == DONE;
                if !is_done {
                    restore(&before);
                }
                exit_now(0)
            }
        }
    }

    /// The process that restores the settings.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Changes a setting. An error if it was not given at the start, or if the kernel refuses it.
    pub fn set(&self, path: &Path, value: &str) -> io::Result<()> {
        if self.before.iter().all(|(known, _)| known != path) {
            return Err(ErrorKind::InvalidInput.into());
        }
        write(path, value)
    }

    /// Restores all settings; returns those that cannot be restored, with their values and the reason.
    pub fn restore(&self) -> Vec<(PathBuf, String, io::Error)> {
        restore(&self.before)
    }
}

impl Drop for SettingsGuard {
    fn drop(&mut self) {
        if self.restore().is_empty() {
            // If it has ended, there is nothing to tell.
            let _ = self.pipe.write_all(&[DONE]);
        }
    }
}

fn restore(before: &[(PathBuf, String)]) -> Vec<(PathBuf, String, io::Error)> {
    let failed =
        |(path, value): &(PathBuf, String)| Some((path.clone(), value.clone(), write(path, value).err()?));
    before.iter().filter_map(failed).collect()
}

fn write(path: &Path, value: &str) -> io::Result<()> {
    File::options().write(true).open(path)?.write_all(value.as_bytes())
}
