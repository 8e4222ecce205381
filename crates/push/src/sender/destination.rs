//! One try to deliver rows, and what the answer means.

use super::Deliver;
use super::counts::clean;
use crate::driver::{Driver, DriverError};
use crate::emitters::{Http, Transport};
use crate::folder;
use crate::http::{Answer, EngineClient, EngineClientError, EngineRequestError, SHORT_ANSWER};
use crate::rows;
use crate::target::{Place, PushTarget};
use bytes::Bytes;
use hyper::Method;
use numakit_recording::{Batch, Header};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// What became of rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Delivery {
    /// The engine has them.
    Accepted,
    /// It has them, but for some values.
    Partly {
        /// Values that it refused.
        refused: u64,
        /// Why.
        reason: String,
    },
    /// It wants fewer at once.
    Large,
    /// It will never take them as they are.
    Refused(String),
    /// It may take them later.
    Down {
        /// Why.
        why: String,
        /// When it wants to be asked again.
        after: Option<Duration>,
    },
    /// It does not take them from this sender, or at this address.
    Denied(String),
}

/// Why there is no sender.
#[derive(Debug, Error)]
pub enum SendError {
    /// There is no client.
    #[error(transparent)]
    EngineClient(#[from] EngineClientError),
    /// There is no driver.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// The engine of a target.
#[derive(Debug)]
pub enum PushDestination {
    /// An engine.
    Engine(Box<Engine>),
    /// A folder.
    Folder(PathBuf),
    /// A database.
    Database(Box<Driver>),
}

/// An engine that takes requests of HTTP.
#[derive(Debug)]
pub struct Engine {
    client: EngineClient,
    http: &'static Http,
    is_prepared: bool,
    /// What the rows are of.
    header: Option<Arc<Header>>,
    is_described: bool,
    /// When the first value of each of its series was sent.
    since: Vec<Option<u64>>,
    /// Answers since the last one that were none of HTTP.
    foreign: u32,
}

/// From this number of answers on that are none of HTTP, something else listens there: a proxy may break one or two.
const FOREIGN: u32 = 3;

impl PushDestination {
    /// The engine of a target. Nothing is sent yet.
    pub fn new(target: &PushTarget) -> Result<Self, SendError> {
        match (&target.place, &target.emitter.transport) {
            (Place::Http(address), Transport::Http(http)) => {
                let client =
                    EngineClient::new(address, &target.credentials, http.token, target.authority.as_deref())?;
                let is_prepared = http.prepare.is_none();
                Ok(Self::Engine(Box::new(Engine {
                    client,
                    http,
                    is_prepared,
                    header: None,
                    is_described: false,
                    since: Vec::new(),
                    foreign: 0,
                })))
            }
            (Place::Folder(folder), _) => Ok(Self::Folder(folder.clone())),
            (Place::Driver(address), _) => Ok(Self::Database(Box::new(Driver::new(target, address)?))),
            (Place::Http(address), _) => Ok(Self::Folder(address.path.clone().into())),
        }
    }
}

impl Deliver for PushDestination {
    fn deliver(&mut self, header: &Arc<Header>, batch: &Batch) -> Delivery {
        match self {
            Self::Engine(engine) => engine.deliver(header, batch),
            Self::Database(driver) => driver.deliver(header, batch),
            Self::Folder(path) => match folder::write(path, header, batch) {
                Ok(()) => Delivery::Accepted,
                Err(error) if folder::is_temporary(&error) => {
                    Delivery::Down { why: format!("{}: {error}", path.display()), after: None }
                }
                Err(error) => Delivery::Refused(error.to_string()),
            },
        }
    }
}

impl Engine {
    fn deliver(&mut self, header: &Arc<Header>, batch: &Batch) -> Delivery {
        if let Some(text) = self.http.prepare.filter(|_| !self.is_prepared) {
            match self.post(&[], text.into()) {
                Delivery::Accepted => self.is_prepared = true,
                Delivery::Refused(why) => return Delivery::Denied(why),
                other => return other,
            }
        }
        if !rows::are_described_by(self.header.as_ref(), header) {
            self.header = Some(Arc::clone(header));
            (self.is_described, self.since) = (false, Vec::new());
        }
        rows::note_first(batch, &mut self.since);
        if !self.is_described {
            match self.describe(header) {
                // Rows are worth more than what they are of.
                Delivery::Accepted | Delivery::Refused(_) | Delivery::Large | Delivery::Partly { .. } => {
                    self.is_described = true;
                }
                other => return other,
            }
        }
        match (self.http.encode)(header, batch.clone(), &self.since) {
            Ok(body) if body.is_empty() => Delivery::Accepted,
            Ok(body) => self.post(self.http.headers, body.into()),
            Err(error) => Delivery::Refused(error.to_string()),
        }
    }

    /// Sends what the rows are of, and makes their tables.
    fn describe(&mut self, header: &Header) -> Delivery {
        for path in self.http.tables.map(|tables| tables(header)).unwrap_or_default() {
            let path = self.client.beside(self.http.path, &path);
            // If it takes no rows, it says so.
            if let down @ Delivery::Down { .. } = self.ask(Method::GET, &path, &[], Bytes::new()) {
                return down;
            }
        }
        match self.http.describe {
            Some(describe) => self.post(self.http.headers, describe(header).into()),
            None => Delivery::Accepted,
        }
    }

    fn post(&mut self, headers: &[(&str, &str)], body: Bytes) -> Delivery {
        let path = self.client.path().to_owned();
        self.ask(Method::POST, &path, headers, body)
    }

    fn ask(&mut self, method: Method, path: &str, headers: &[(&str, &str)], body: Bytes) -> Delivery {
        let error = match self.client.ask(method, path, headers, body, SHORT_ANSWER) {
            Ok(answer) => {
                self.foreign = 0;
                return meaning(&answer, self.http);
            }
            Err(error) => error,
        };
        self.foreign += u32::from(matches!(error, EngineRequestError::Foreign { .. }));
        match error {
            // Somebody must do something.
            EngineRequestError::Untrusted { .. } | EngineRequestError::Unknown { .. } => {
                Delivery::Denied(error.to_string())
            }
            _ if self.foreign >= FOREIGN => Delivery::Denied(error.to_string()),
            _ => Delivery::Down { why: error.to_string(), after: None },
        }
    }
}

/// What an answer means.
pub(crate) fn meaning(answer: &Answer, http: &Http) -> Delivery {
    let text = clean(&String::from_utf8_lossy(&answer.body));
    let why = match text.as_str() {
        "" => format!("status {}", answer.status),
        text => format!("status {}: {text}", answer.status),
    };
    match answer.status {
        200..=299 => match (http.refused)(&answer.body) {
            Some((refused, reason)) => Delivery::Partly { refused, reason },
            None => Delivery::Accepted,
        },
        401 | 403 => Delivery::Denied(format!("{why}; check --password-file or --token-file")),
        404 | 405 if http.has_database() => {
            Delivery::Denied(format!("{why}; check the address, and that the database exists"))
        }
        404 | 405 => Delivery::Denied(format!("{why}; check the port and the path of the address")),
        300..=399 => Delivery::Denied(format!("{why}; write the address that it redirects to")),
        413 => Delivery::Large,
        408 | 429 | 500.. => Delivery::Down { why, after: answer.retry_after },
        _ => Delivery::Refused(why),
    }
}
