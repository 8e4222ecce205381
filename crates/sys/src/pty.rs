//! Pseudo terminals: a program that believes to be at a terminal, for tests and benchmarks of what it draws.

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{ioctl_tiocsctty, setsid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// The side of the terminal: what the user sees and types.
#[derive(Debug)]
pub struct Pty {
    terminal: File,
    program: OwnedFd,
}

impl Pty {
    /// A terminal of this size.
    pub fn open(columns: u16, rows: u16) -> io::Result<Self> {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&terminal)?;
        unlockpt(&terminal)?;
        let name = ptsname(&terminal, Vec::new())?;
        let program = open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
        let pty = Self { terminal: terminal.into(), program };
        pty.resize(columns, rows)?;
        Ok(pty)
    }

    /// Starts a program as the first one of a session at this terminal.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let stream = || self.program.try_clone();
        command.stdin(stream()?).stdout(stream()?).stderr(stream()?);
        let at_terminal = || {
            setsid()?;
            ioctl_tiocsctty(rustix::stdio::stdin())?;
            Ok(())
        };
        // SAFETY: between fork and exec it makes only system calls.
        unsafe { command.pre_exec(at_terminal) }.spawn()
    }

    /// Changes the size; the program gets SIGWINCH.
    pub fn resize(&self, columns: u16, rows: u16) -> io::Result<()> {
        let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(tcsetwinsize(&self.terminal, size)?)
    }

    /// Whether the terminal edits lines and echoes keys, as a shell expects it.
    pub fn is_cooked(&self) -> io::Result<bool> {
        let modes = tcgetattr(&self.terminal)?.local_modes;
        Ok(modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG))
    }

    /// Types.
    pub fn write(&self, keys: &[u8]) -> io::Result<()> {
        (&self.terminal).write_all(keys)
    }

    /// What the program has drawn since the last call; waits for the first byte.
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        (&self.terminal).read(into)
    }
}

impl AsFd for Pty {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.terminal.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll;
    use numakit_testing::until;

    #[test]
    fn a_program_has_a_terminal_of_that_size_and_reads_what_is_typed() {
        let pty = Pty::open(70, 20).unwrap();
        let mut command = Command::new("sh");
        let mut child = pty.spawn(command.args(["-c", "stty size; read word; echo \"got $word\""])).unwrap();
        pty.write(b"it\n").unwrap();
        let mut status = None;
        until!({
            status = child.try_wait().unwrap();
            status.is_some()
        });
        assert!(status.unwrap().success());
        let mut seen = Vec::new();
        let mut buffer = [0; 1024];
        while poll::readable(&[pty.as_fd()], Some(std::time::Duration::ZERO)).unwrap() == [true] {
            let count = pty.read(&mut buffer).unwrap();
            seen.extend_from_slice(&buffer[..count]);
        }
        let text = String::from_utf8(seen).unwrap();
        assert!(text.contains("20 70") && text.contains("got it") && pty.is_cooked().unwrap(), "{text}");
    }
}
