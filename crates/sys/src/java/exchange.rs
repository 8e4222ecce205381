//! One question to a Java virtual machine, and its answer.

use super::AttachError;
use crate::file::path_of;
use crate::proc::TaskDir;
use crate::root::SysRoot;
use crate::{check, poll};
use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// The version of the protocol, which all machines know.
const PROTOCOL: &str = "1";
/// A command has this number of arguments.
const ARGUMENTS: usize = 3;
/// Between looks whether the machine listens.
const PAUSE: Duration = Duration::from_millis(5);
/// Bytes that are read at a time.
const PIECE: usize = 1 << 16;

/// Opens a process, so that a signal never reaches another one that has its number later.
pub(super) fn handle(process: u32) -> io::Result<OwnedFd> {
    // SAFETY: plain integers; the new descriptor has no other owner.
    let fd = check(unsafe { libc::syscall(libc::SYS_pidfd_open, process as libc::pid_t, 0) })?;
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Whom to ask.
#[derive(Debug)]
pub(super) struct Exchange<'a> {
    pub process: u32,
    /// Its number in its own PID namespace, by which its files are called.
    pub inner: u32,
    pub user: u32,
    pub handle: &'a OwnedFd,
    /// Its /tmp.
    pub folder: &'a File,
}

impl Exchange<'_> {
    /// Asks a command with its first argument; the answer has at most `most` bytes.
    pub fn ask(&self, words: [&str; 2], most: u64, patience: Duration) -> Result<String, AttachError> {
        let end = Instant::now() + patience;
        let socket = match self.connect()? {
            Some(socket) => socket,
            None => self.wake(end)?,
        };
        let mut question = PROTOCOL.to_owned() + "\0";
        words.iter().chain(&["", ""]).take(1 + ARGUMENTS).for_each(|word| {
            question.push_str(word);
            question.push('\0');
        });
        answer(socket, question.as_bytes(), most, end)
    }

    /// The machine's socket; `None` if it does not listen.
    fn connect(&self) -> Result<Option<UnixStream>, AttachError> {
        let name = format!(".java_pid{}", self.inner);
        match connect(&path_of(self.folder).join(&name)) {
            Ok(socket) => {
                let (process, user) = peer(&socket).map_err(super::system("cannot tell who answers"))?;
                // Anybody may have put a socket there.
                if (process, user) != (self.process, self.user) {
                    return Err(AttachError::Foreign(format!("/tmp/{name}")));
                }
                Ok(Some(socket))
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                Ok(None)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(AttachError::NoAnswer),
            Err(error) => Err(super::system("cannot connect to it")(error)),
        }
    }

    /// Makes the machine listen.
    fn wake(&self, end: Instant) -> Result<UnixStream, AttachError> {
        let name = format!(".attach_pid{}", self.inner);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(self.folder, &name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| super::system("cannot create a file in its /tmp")(error.into()))?;
        let woken = self.signal().and_then(|()| self.listening(end));
        // A machine that is late would take the signal for something else if the file were gone, and print all its threads.
        if !matches!(woken, Err(AttachError::NoAnswer)) {
            let _ = unlinkat(self.folder, &name, AtFlags::empty());
        }
        woken
    }

    /// Sends the signal, if the machine handles it.
    fn signal(&self) -> Result<(), AttachError> {
        let root = SysRoot::host();
        let dir = TaskDir::of(&root, self.process);
        if dir.stat().is_ok_and(|stat| stat.stopped) {
            return Err(AttachError::Stopped);
        }
        let caught = dir.status().is_ok_and(|status| status.catches(libc::SIGQUIT));
        if !caught {
            return Err(AttachError::NoSignal);
        }
        let no_info = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: the descriptor is open, and the kernel accepts no information.
        let sent = unsafe {
            libc::syscall(libc::SYS_pidfd_send_signal, self.handle.as_raw_fd(), libc::SIGQUIT, no_info, 0)
        };
        check(sent).map(drop).map_err(super::system("cannot signal it"))
    }

    fn listening(&self, end: Instant) -> Result<UnixStream, AttachError> {
        while Instant::now() < end {
            if let Some(socket) = self.connect()? {
                return Ok(socket);
            }
            std::thread::sleep(PAUSE);
        }
        Err(AttachError::NoAnswer)
    }
}

/// Connects without waiting.
fn connect(path: &Path) -> io::Result<UnixStream> {
    // SAFETY: all zero bytes are a valid value of this plain structure.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let path = path.as_os_str().as_bytes();
    // The last byte stays zero.
    if path.len() >= address.sun_path.len() {
        return Err(ErrorKind::InvalidFilename.into());
    }
    address.sun_path.iter_mut().zip(path).for_each(|(to, from)| *to = *from as libc::c_char);
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: plain integers; the new descriptor has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(check(libc::socket(libc::AF_UNIX, kind, 0).into())? as i32) };
    let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: the address has this length and outlives the call.
    check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) }.into())?;
    Ok(socket.into())
}

/// The process and the user at the other end.
fn peer(socket: &UnixStream) -> io::Result<(u32, u32)> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    let (fd, into) = (socket.as_raw_fd(), (&raw mut peer).cast());
    // SAFETY: the structure has this length and outlives the call.
    let got = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, into, &raw mut length) };
    check(got.into())?;
    Ok((peer.pid as u32, peer.uid))
}

/// The answer to a question: a line with its status, and text.
fn answer(mut socket: UnixStream, question: &[u8], most: u64, end: Instant) -> Result<String, AttachError> {
    let failed = super::system("cannot read its answer");
    socket.write_all(question).map_err(super::system("cannot ask it"))?;
    let (mut text, mut piece) = (Vec::new(), vec![0; PIECE]);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(AttachError::NoAnswer);
        }
        poll::readable(&[socket.as_fd()], Some(left)).map_err(&failed)?;
        match socket.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => text.extend_from_slice(piece.get(..count).unwrap_or_default()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(failed(error)),
        }
        if text.len() as u64 > most {
            let why = format!("it has more than {most} bytes");
            return Err(failed(io::Error::new(ErrorKind::InvalidData, why)));
        }
    }
    let text = String::from_utf8_lossy(&text);
    match text.split_once('\n') {
        Some(("0", rest)) => Ok(rest.to_owned()),
        _ => Err(AttachError::Refused(reason(&text))),
    }
}

/// The end of an answer that is an error, printable: the first lines are numbers and names of exceptions.
fn reason(text: &str) -> String {
    /// A longer text says no more.
    const MAX: usize = 200;
    let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing");
    let short: String = line.trim().chars().take(MAX).collect();
    crate::proc::printable(short.as_bytes())
}

#[cfg(test)]
mod tests;
