//! What launcher and keeper tell each other, over a pair of sockets.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

/// All messages have this length, so that one comes whole or not at all.
const LENGTH: usize = 512;
const TEXT: usize = 10;

/// One thing to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Keeper: the program runs, with this number.
    Started(u32),
    /// Keeper: the system does not start it, for this reason (errno).
    NotStarted(i32),
    /// Keeper: something that it was to get could not be given to it.
    NotPrepared(String),
    /// Keeper: this signal stopped it.
    Stopped(i32),
    /// Keeper: it goes on.
    Continued,
    /// Keeper: it ended with this status.
    Exited(i32),
    /// Keeper: this signal ended it.
    Killed(i32),
    /// Launcher: this signal came from this process; it is for the program.
    Forward(i32, u32),
}

impl Message {
    /// Sends it.
    pub fn send(&self, mut to: &UnixStream) -> io::Result<()> {
        to.write_all(&self.bytes())
    }

    /// Waits for the next one; none where the other side is gone.
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
            Self::Forward(signal, sender) => (8, *signal, *sender, ""),
        };
        let mut bytes = [0; LENGTH];
        bytes[0] = kind;
        bytes[1..5].copy_from_slice(&number.to_le_bytes());
        bytes[5..9].copy_from_slice(&process.to_le_bytes());
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
            8 => Self::Forward(number, process),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_arrives() {
        let (here, there) = UnixStream::pair().unwrap();
        let messages = [
            Message::Started(77),
            Message::NotStarted(2),
            Message::NotPrepared("its CPUs cannot be set: no".to_owned()),
            Message::Stopped(19),
            Message::Continued,
            Message::Exited(255),
            Message::Killed(11),
            Message::Forward(15, 4_000_000),
        ];
        for message in &messages {
            message.send(&here).unwrap();
            assert_eq!(Message::receive(&there).as_ref(), Some(message));
        }
        Message::NotPrepared("x".repeat(5000)).send(&here).unwrap();
        assert_eq!(Message::receive(&there), Some(Message::NotPrepared("x".repeat(LENGTH - TEXT))));
        drop(here);
        assert_eq!(Message::receive(&there), None);
    }
}
