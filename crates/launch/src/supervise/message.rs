//! Messages between launcher and supervisor, over a socket pair.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

/// All messages have this length, so that one arrives completely or not at all.
const LENGTH: usize = 512;
const TIME: usize = 10;
const TEXT: usize = 18;

/// A message; the first word of each description is its sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SupervisorMessage {
    /// Supervisor: the program runs, with this PID.
    Started(u32),
    /// Supervisor: the program cannot be started, with this errno.
    NotStarted(i32),
    /// Supervisor: the program's settings cannot be applied; the error.
    NotPrepared(String),
    /// Supervisor: this signal stopped the program.
    Stopped(i32),
    /// Supervisor: the program continues.
    Continued,
    /// Supervisor: the program ended with this status.
    Exited(i32),
    /// Supervisor: this signal ended the program.
    Killed(i32),
    /// Launcher: the launcher continues too.
    Acknowledged,
    /// Launcher: a signal for the program, its sender, and the time (monotonic clock) at which the launcher read it.
    Forward(i32, u32, u64),
}

impl SupervisorMessage {
    /// Sends it.
    pub fn send(&self, mut to: &UnixStream) -> io::Result<()> {
        to.write_all(&self.bytes())
    }

    /// Waits for the next message; `None` if the other side has ended.
    pub fn receive(mut from: &UnixStream) -> Option<Self> {
        let mut bytes = [0; LENGTH];
        from.read_exact(&mut bytes).ok()?;
        Self::parse(&bytes)
    }

    fn bytes(&self) -> [u8; LENGTH] {
        let (kind, number, process, text) = match self {
            Self::Started(process) => (1, 0, *process, ""),
            Self::NotStarted(error) => (2, *error, 0, ""),
            Self::NotPrepared(text) => (3, 0, 0, text.as_str()),
            Self::Stopped(signal) => (4, *signal, 0, ""),
            Self::Continued => (5, 0, 0, ""),
            Self::Exited(status) => (6, *status, 0, ""),
            Self::Killed(signal) => (7, *signal, 0, ""),
            Self::Forward(signal, sender, _) => (8, *signal, *sender, ""),
            Self::Acknowledged => (9, 0, 0, ""),
        };
        let mut bytes = [0; LENGTH];
        bytes[0] = kind;
        bytes[1..5].copy_from_slice(&number.to_le_bytes());
        bytes[5..9].copy_from_slice(&process.to_le_bytes());
        let time = if let Self::Forward(.., time) = self { *time } else { 0 };
        bytes[TIME..TIME + 8].copy_from_slice(&time.to_le_bytes());
        let text = &text.as_bytes()[..text.len().min(LENGTH - TEXT)];
        bytes[TEXT..TEXT + text.len()].copy_from_slice(text);
        bytes
    }

    fn parse(bytes: &[u8; LENGTH]) -> Option<Self> {
        let number = i32::from_le_bytes(bytes[1..5].try_into().ok()?);
        let process = u32::from_le_bytes(bytes[5..9].try_into().ok()?);
        Some(match bytes[0] {
            1 => Self::Started(process),
            2 => Self::NotStarted(number),
            3 => {
                let text = bytes[TEXT..].split(|&byte| byte == 0).next().unwrap_or_default();
                Self::NotPrepared(String::from_utf8_lossy(text).into_owned())
            }
            4 => Self::Stopped(number),
            5 => Self::Continued,
            6 => Self::Exited(number),
            7 => Self::Killed(number),
            8 => {
                let time = u64::from_le_bytes(bytes[TIME..TIME + 8].try_into().ok()?);
                Self::Forward(number, process, time)
            }
            9 => Self::Acknowledged,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive() {
        let (here, there) = UnixStream::pair().unwrap();
        let messages = [
            SupervisorMessage::Started(77),
            SupervisorMessage::NotStarted(2),
            SupervisorMessage::NotPrepared("its CPUs cannot be set: no".to_owned()),
            SupervisorMessage::Stopped(19),
            SupervisorMessage::Continued,
            SupervisorMessage::Exited(255),
            SupervisorMessage::Killed(11),
            SupervisorMessage::Forward(15, 4_000_000, u64::MAX - 1),
            SupervisorMessage::Acknowledged,
        ];
        for message in &messages {
            message.send(&here).unwrap();
            assert_eq!(SupervisorMessage::receive(&there).as_ref(), Some(message));
        }
        SupervisorMessage::NotPrepared("x".repeat(5000)).send(&here).unwrap();
        assert_eq!(
            SupervisorMessage::receive(&there),
            Some(SupervisorMessage::NotPrepared("x".repeat(LENGTH - TEXT)))
        );
        drop(here);
        assert_eq!(SupervisorMessage::receive(&there), None);
    }
}
