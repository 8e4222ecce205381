//! What `numa` and `numa-drivers` say to each other: a request, then its answer.
//!
//! ```text
//! message  length u32  kind u8  content
//! ```
//!
//! Numbers are little endian. Descriptions and rows are as in the spool, all else is JSON.

use super::address::DriverAddress;
use crate::sender::Delivery;
use crate::spool::{MalformedRows, decode_rows, encode_rows};
use numakit_recording::{Batch, Header};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use thiserror::Error;

/// Maximum length of a message.
const MAX_MESSAGE: usize = 64 << 20;

/// Why a message cannot be used.
#[derive(Debug, Error)]
pub enum WireError {
    /// It could not be read or written.
    #[error(transparent)]
    Broken(#[from] io::Error),
    /// It is too long.
    #[error("a message of {0} bytes is too long")]
    Long(usize),
    /// Its content is not what its kind says.
    #[error("a message is damaged: {0}")]
    Content(serde_json::Error),
    /// Its rows are damaged.
    #[error("rows are damaged: {0}")]
    Rows(#[from] MalformedRows),
    /// There is no such kind.
    #[error("no message has the kind {0}")]
    Kind(u8),
}

/// Where to connect, and as whom.
#[derive(Clone, Serialize, Deserialize)]
pub struct DriverOpen {
    /// The version of the program that asks.
    pub version: String,
    /// The scheme of the engine.
    pub engine: String,
    /// The parts of its address.
    pub address: DriverAddress,
    /// The user, if the address or the file with the password names one.
    pub user: Option<String>,
    /// The password or the token.
    pub secret: Option<String>,
    /// A file with the certificate authority of the engine.
    pub authority: Option<PathBuf>,
}

impl std::fmt::Debug for DriverOpen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DriverOpen").field("engine", &self.engine).finish_non_exhaustive()
    }
}

/// What `numa` asks.
#[derive(Debug)]
pub enum DriverRequest {
    /// Use this engine from now on. Answered by a delivery.
    Open(Box<DriverOpen>),
    /// The following rows are of this recording. Answered by a delivery.
    Describe(Box<Header>),
    /// Take these rows. Answered by a delivery.
    Rows(EncodedRows),
    /// The latest description of a host. Answered by it.
    Latest {
        /// The host.
        host: String,
        /// It began before this time, ns since 1970 UTC.
        before: u64,
    },
    /// The rows of the host that was described last. Answered by them.
    Range {
        /// The first time.
        from: u64,
        /// The time after the last.
        to: u64,
    },
}

/// What `numa-drivers` answers.
#[derive(Debug)]
pub enum DriverAnswer {
    /// What became of what was sent.
    Delivery(Delivery),
    /// A description.
    Header(Box<Header>),
    /// Rows.
    Rows(EncodedRows),
    /// Why there is nothing.
    Nothing(DriverNothing),
}

/// Why nothing was fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum DriverNothing {
    /// The engine is down, or refuses this.
    Failed(String),
    /// The host has no rows there; these have.
    Host(Vec<String>),
    /// The range has too many rows.
    Long,
}

/// Rows as bytes.
#[derive(Debug)]
pub struct EncodedRows(Vec<u8>);

impl EncodedRows {
    /// Of a batch; `None` if it is too large.
    pub fn of(batch: &Batch) -> Option<Self> {
        encode_rows(batch).map(Self)
    }

    /// As a batch with this number of columns.
    pub fn batch(&self, columns: usize) -> Result<Batch, WireError> {
        Ok(decode_rows(&self.0, columns)?)
    }
}

/// A message that can be sent and received.
pub trait DriverMessage: Sized {
    /// Its kind and content.
    fn content(&self) -> Result<(u8, Cow<'_, [u8]>), WireError>;

    /// Reads its content.
    fn of(kind: u8, content: Vec<u8>) -> Result<Self, WireError>;

    /// Sends it.
    fn send(&self, to: &mut impl Write) -> Result<(), WireError> {
        let (kind, content) = self.content()?;
        let length = content.len();
        let fits = u32::try_from(length).ok().filter(|_| length <= MAX_MESSAGE);
        let mut bytes = fits.ok_or(WireError::Long(length))?.to_le_bytes().to_vec();
        bytes.push(kind);
        bytes.extend_from_slice(&content);
        to.write_all(&bytes)?;
        Ok(to.flush()?)
    }

    /// Receives one; `None` at the end.
    fn receive(from: &mut impl Read) -> Result<Option<Self>, WireError> {
        let mut head = [0; 5];
        match from.read_exact(&mut head[..1]) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        from.read_exact(&mut head[1..])?;
        let [a, b, c, d, kind] = head;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > MAX_MESSAGE {
            return Err(WireError::Long(length));
        }
        let mut content = Vec::new();
        if from.take(length as u64).read_to_end(&mut content)? < length {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Self::of(kind, content).map(Some)
    }
}

impl DriverMessage for DriverRequest {
    fn content(&self) -> Result<(u8, Cow<'_, [u8]>), WireError> {
        Ok(match self {
            Self::Open(open) => (1, json(open)?.into()),
            Self::Describe(header) => (2, header.packed()?.into()),
            Self::Rows(rows) => (3, rows.0.as_slice().into()),
            Self::Latest { host, before } => (4, json(&(host, before))?.into()),
            Self::Range { from, to } => (5, json(&(from, to))?.into()),
        })
    }

    fn of(kind: u8, content: Vec<u8>) -> Result<Self, WireError> {
        Ok(match kind {
            1 => Self::Open(parsed(&content)?),
            2 => Self::Describe(Box::new(Header::unpacked(&content)?)),
            3 => Self::Rows(EncodedRows(content)),
            4 => {
                let (host, before) = parsed(&content)?;
                Self::Latest { host, before }
            }
            5 => {
                let (from, to) = parsed(&content)?;
                Self::Range { from, to }
            }
            other => return Err(WireError::Kind(other)),
        })
    }
}

impl DriverMessage for DriverAnswer {
    fn content(&self) -> Result<(u8, Cow<'_, [u8]>), WireError> {
        Ok(match self {
            Self::Delivery(delivery) => (1, json(delivery)?.into()),
            Self::Header(header) => (2, header.packed()?.into()),
            Self::Rows(rows) => (3, rows.0.as_slice().into()),
            Self::Nothing(why) => (4, json(why)?.into()),
        })
    }

    fn of(kind: u8, content: Vec<u8>) -> Result<Self, WireError> {
        Ok(match kind {
            1 => Self::Delivery(parsed(&content)?),
            2 => Self::Header(Box::new(Header::unpacked(&content)?)),
            3 => Self::Rows(EncodedRows(content)),
            4 => Self::Nothing(parsed(&content)?),
            other => return Err(WireError::Kind(other)),
        })
    }
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, WireError> {
    serde_json::to_vec(value).map_err(WireError::Content)
}

fn parsed<T: DeserializeOwned>(content: &[u8]) -> Result<T, WireError> {
    serde_json::from_slice(content).map_err(WireError::Content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{header, rows};

    fn again<T: DriverMessage>(message: &T) -> T {
        let mut bytes = Vec::new();
        message.send(&mut bytes).unwrap();
        // Whatever is cut off, it is an error and no message.
        for length in 1..bytes.len() {
            assert!(T::receive(&mut &bytes[..length]).is_err(), "{length}");
        }
        let mut rest = &bytes[..];
        let message = T::receive(&mut rest).unwrap().unwrap();
        assert!(T::receive(&mut rest).unwrap().is_none());
        message
    }

    #[test]
    fn messages_arrive_as_they_were_sent() {
        let batch = rows(7, 3, 4);
        let DriverRequest::Rows(same) = again(&DriverRequest::Rows(EncodedRows::of(&batch).unwrap())) else {
            panic!()
        };
        assert_eq!(same.batch(4).unwrap(), batch);
        assert!(same.batch(5).is_err());
        let DriverRequest::Describe(same) = again(&DriverRequest::Describe(Box::new((*header(4)).clone())))
        else {
            panic!()
        };
        assert_eq!(*same, *header(4));
        let down = Delivery::Down { why: "x".into(), after: None };
        let DriverAnswer::Delivery(same) = again(&DriverAnswer::Delivery(down.clone())) else { panic!() };
        assert_eq!(same, down);
        let DriverRequest::Latest { host, before } =
            again(&DriverRequest::Latest { host: "h".into(), before: u64::MAX })
        else {
            panic!()
        };
        assert_eq!((host.as_str(), before), ("h", u64::MAX));
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        for bytes in [&[0, 0, 0, 0, 99][..], &[255; 5], &[1, 0, 0, 0, 1, b'{'], &[0, 0, 0, 0, 2]] {
            assert!(DriverRequest::receive(&mut &bytes[..]).is_err(), "{bytes:?}");
        }
    }
}
