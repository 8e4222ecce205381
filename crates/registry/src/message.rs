//! What launcher and keeper tell each other, over a pair of sockets.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

/// All messages have this length, so that one comes whole or not at all.
const LENGTH: usize = 512;
const TIME: usize = 10;
const TEXT: usize = 18;

/// One thing to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeeperMessage {
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
    /// Launcher: it knows that the program goes on, and does so too.
    Noted,
    /// Launcher: this signal came from this process; it is for the program. Then the time, by the
    /// monotonic clock, at which the launcher read it.
    Forward(i32, u32, u64),
}

impl KeeperMessage {
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
            Self::Forward(signal, sender, _) => (8, *signal, *sender, ""),
            Self::Noted => (9, 0, 0, ""),
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
            9 => Self::Noted,
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
            KeeperMessage::Started(77),
            KeeperMessage::NotStarted(2),
            KeeperMessage::NotPrepared("its CPUs cannot be set: no".to_owned()),
            KeeperMessage::Stopped(19),
            KeeperMessage::Continued,
            KeeperMessage::Exited(255),
            KeeperMessage::Killed(11),
            KeeperMessage::Forward(15, 4_000_000, u64::MAX - 1),
            KeeperMessage::Noted,
        ];
        for message in &messages {
            message.send(&here).unwrap();
            assert_eq!(KeeperMessage::receive(&there).as_ref(), Some(message));
        }
        KeeperMessage::NotPrepared("x".repeat(5000)).send(&here).unwrap();
        assert_eq!(
            KeeperMessage::receive(&there),
            Some(KeeperMessage::NotPrepared("x".repeat(LENGTH - TEXT)))
        );
        drop(here);
        assert_eq!(KeeperMessage::receive(&there), None);
    }
}
