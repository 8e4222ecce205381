//! Engines whose drivers are in a second program, `numa-drivers`, so that `numa` stays small.
//!
//! It is started when it is needed, and ends when its connection to `numa` does, however `numa` ends. It makes one try for each
//! request; the sender here does all else. Secrets go to it over that connection.

mod address;
mod fetched;
mod wire;

pub use address::DriverAddress;
pub(crate) use address::{DriverEngine, DriverOption, WrongAddress};
pub(crate) use fetched::DriverSource;
pub use wire::{
    DriverAnswer, DriverMessage, DriverNothing, DriverOpen, DriverRequest, EncodedRows, WireError,
};

use crate::rows;
use crate::sender::Delivery;
use crate::target::{Credentials, PushTarget};
use numakit_recording::{Batch, Header};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};
use thiserror::Error;

/// The program.
const PROGRAM: &str = "numa-drivers";
/// Where packages have it, seen from the folder of `numa`.
const LIBEXEC: &str = "../libexec/numakit";
/// Its own limit for an engine is shorter.
const ANSWER: Duration = Duration::from_secs(60);
/// How long it may take to end.
const END: Duration = Duration::from_secs(1);

/// Why there is no answer of the program.
#[derive(Debug, Error)]
pub enum DriverError {
    /// It is not installed.
    #[error(
        "this engine needs the program {PROGRAM}, which is neither {}; install it there: it is in the packages of numakit, and \
         'cargo install --path crates/drivers' builds it",
        looked.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" nor ")
    )]
    Missing {
        /// Where it was looked for.
        looked: Vec<PathBuf>,
    },
    /// It does not start.
    #[error("cannot start {path}: {error}")]
    Start {
        /// The program.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
    /// It ended.
    #[error("{PROGRAM} has ended ({0})")]
    Ended(String),
    /// It does not answer.
    #[error("{PROGRAM} has not answered for {} s", ANSWER.as_secs())]
    Silent,
    /// Its answer is damaged.
    #[error("{PROGRAM}: {0}")]
    Wire(WireError),
    /// It answered another question.
    #[error("{PROGRAM} gave a wrong answer")]
    Wrong,
}

/// The program that has the driver of an engine.
#[derive(Debug)]
pub struct Driver {
    path: PathBuf,
    open: DriverOpen,
    running: Option<Running>,
    described: Option<Arc<Header>>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    connection: UnixStream,
}

impl Driver {
    /// That of a target. Nothing is started yet.
    pub(crate) fn new(target: &PushTarget, address: &DriverAddress) -> Result<Self, DriverError> {
        let (user, secret) = match &target.credentials {
            Credentials::None => (None, None),
            Credentials::Token(token) => (None, Some(token.clone())),
            Credentials::Password(pair) => match pair.split_once(':') {
                Some((user, password)) => (Some(user.to_owned()), Some(password.to_owned())),
                None => (None, Some(pair.clone())),
            },
        };
        let open = DriverOpen {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: target.emitter.scheme.to_owned(),
            address: address.clone(),
            user: user.or_else(|| address.user.clone()),
            secret,
            authority: target.authority.as_deref().and_then(|path| std::path::absolute(path).ok()),
        };
        let own =
            std::env::current_exe().map_err(|error| DriverError::Start { path: PROGRAM.into(), error })?;
        Ok(Self { path: found(&own)?, open, running: None, described: None })
    }

    /// Delivers rows once.
    pub(crate) fn deliver(&mut self, header: &Arc<Header>, batch: &Batch) -> Delivery {
        let Some(encoded) = EncodedRows::of(batch) else { return Delivery::Large };
        self.try_to_deliver(header, encoded)
            .unwrap_or_else(|error| Delivery::Down { why: error.to_string(), after: None })
    }

    fn try_to_deliver(
        &mut self,
        header: &Arc<Header>,
        encoded: EncodedRows,
    ) -> Result<Delivery, DriverError> {
        let is_described = self.running.is_some() && rows::are_described_by(self.described.as_ref(), header);
        if !is_described {
            match self.delivery(&DriverRequest::Describe(Box::new(Header::clone(header))))? {
                Delivery::Accepted => self.described = Some(Arc::clone(header)),
                other => return Ok(other),
            }
        }
        self.delivery(&DriverRequest::Rows(encoded))
    }

    fn delivery(&mut self, request: &DriverRequest) -> Result<Delivery, DriverError> {
        match self.ask(request)? {
            DriverAnswer::Delivery(delivery) => Ok(delivery),
            _ => Err(DriverError::Wrong),
        }
    }

    /// Asks the program, which is started unless it runs. After an error, the next request starts another one.
    pub(crate) fn ask(&mut self, request: &DriverRequest) -> Result<DriverAnswer, DriverError> {
        let mut running = match self.running.take() {
            Some(running) => running,
            None => {
                self.described = None;
                let mut running = Running::start(&self.path)?;
                let answer = running.ask(&DriverRequest::Open(Box::new(self.open.clone())))?;
                if !matches!(answer, DriverAnswer::Delivery(Delivery::Accepted)) {
                    return Ok(answer);
                }
                running
            }
        };
        let answer = running.ask(request)?;
        self.running = Some(running);
        Ok(answer)
    }
}

impl Running {
    fn start(path: &Path) -> Result<Self, DriverError> {
        let fail = |error| DriverError::Start { path: path.to_owned(), error };
        let (connection, other) = UnixStream::pair().map_err(fail)?;
        connection.set_read_timeout(Some(ANSWER)).map_err(fail)?;
        connection.set_write_timeout(Some(ANSWER)).map_err(fail)?;
        let output: OwnedFd = other.try_clone().map_err(fail)?.into();
        // In its own process group, a key of the terminal that ends an observation leaves it to send the rest.
        let mut command = Command::new(path);
        command.stdin(Stdio::from(OwnedFd::from(other))).stdout(Stdio::from(output)).process_group(0);
        let child = command.spawn().map_err(fail)?;
        Ok(Self { child, connection })
    }

    fn ask(&mut self, request: &DriverRequest) -> Result<DriverAnswer, DriverError> {
        let answer =
            request.send(&mut self.connection).and_then(|()| DriverAnswer::receive(&mut self.connection));
        match answer {
            Ok(Some(answer)) => Ok(answer),
            Err(WireError::Broken(error)) if is_late(&error) => Err(DriverError::Silent),
            Ok(None) | Err(WireError::Broken(_)) => Err(DriverError::Ended(self.end())),
            Err(error) => Err(DriverError::Wire(error)),
        }
    }

    /// Waits until it has ended, and ends it if it does not. Returns how it ended.
    fn end(&mut self) -> String {
        // Its end of the connection sees that nothing follows.
        let _ = self.connection.shutdown(std::net::Shutdown::Both);
        let until = Instant::now() + END;
        while Instant::now() < until {
            match self.child.try_wait() {
                Ok(Some(status)) => return status.to_string(),
                Ok(None) => sleep(Duration::from_millis(5)),
                Err(_) => break,
            }
        }
        let _ = self.child.kill();
        self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// The program for this `numa`: beside it, or where packages have it.
fn found(numa: &Path) -> Result<PathBuf, DriverError> {
    let folder = numa.parent().unwrap_or(Path::new("/"));
    let looked: Vec<PathBuf> =
        [folder.join(PROGRAM), folder.join(LIBEXEC).join(PROGRAM)].into_iter().collect();
    match looked.iter().find(|path| path.is_file()) {
        Some(path) => Ok(path.clone()),
        None => Err(DriverError::Missing { looked }),
    }
}
