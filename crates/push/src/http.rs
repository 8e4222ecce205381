//! A client for one engine: one connection, kept open.

use crate::sender::clean;
use crate::target::{Address, Credentials};
use bytes::{Bytes, BytesMut};
use data_encoding::BASE64;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{AUTHORIZATION, CONTENT_LENGTH, HOST, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use numakit_sys::file::open_to_read;
use std::error::Error as _;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, CertificateError, ClientConfig, RootCertStore};

const CONNECT: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(30);
/// A connection that fails a request ends within this time.
const ENDED: Duration = Duration::from_secs(1);
/// Of an answer to rows, so much is read.
pub const SHORT_ANSWER: usize = 64 << 10;
const MAX_AUTHORITIES: u64 = 4 << 20;

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum EngineRequestError {
    /// Nobody knows where it is.
    #[error("cannot find the host of {place}: {error}; check the address")]
    Unknown {
        /// Host and port.
        place: String,
        /// The error of the system.
        error: io::Error,
    },
    /// Something else listens there.
    #[error("{place} does not speak HTTP ({why}); check the port, and write +https: if it has TLS")]
    Foreign {
        /// Host and port.
        place: String,
        /// What is wrong with its answer.
        why: String,
    },
    /// The engine cannot be reached.
    #[error("cannot connect to {place}: {error}")]
    Connect {
        /// Host and port.
        place: String,
        /// The error of the system.
        error: io::Error,
    },
    /// It took too long.
    #[error("{place} has not answered for {} s", after.as_secs())]
    Silent {
        /// Host and port.
        place: String,
        /// For how long.
        after: Duration,
    },
    /// It cannot be trusted, or has no TLS.
    #[error("{place} is not trusted: {why}")]
    Untrusted {
        /// Host and port.
        place: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The connection broke, or the answer is too long.
    #[error("{place} has not answered: {why}")]
    Broken {
        /// Host and port.
        place: String,
        /// What happened.
        why: String,
    },
}

/// Why a client cannot be made.
#[derive(Debug, Error)]
pub enum EngineClientError {
    /// A resource of the system is missing.
    #[error("cannot start a client: {0}")]
    System(#[from] io::Error),
    /// There is no certificate authority.
    #[error("{path} has no certificates: {error}; give a file in PEM form with --ca")]
    Authority {
        /// The file, or what the system has.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
}

/// An answer of an engine.
#[derive(Debug)]
pub struct Answer {
    /// The status of HTTP.
    pub status: u16,
    /// When to try again, if the engine says so.
    pub retry_after: Option<Duration>,
    /// Its text, as far as it was read.
    pub body: Bytes,
    /// Whether that is all.
    pub is_whole: bool,
}

/// A client.
pub struct EngineClient {
    runtime: Runtime,
    address: Address,
    authorization: Option<String>,
    /// What no message may show.
    secrets: Vec<String>,
    tls: Option<TlsConnector>,
    connection: Option<Connection>,
}

/// A connection that is open.
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// What moves its bytes, and ends with what is wrong.
    driver: JoinHandle<hyper::Result<()>>,
}

impl std::fmt::Debug for EngineClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineClient").field("address", &self.address).finish_non_exhaustive()
    }
}

impl EngineClient {
    /// A client of this address. `word` precedes a token.
    pub fn new(
        address: &Address,
        credentials: &Credentials,
        word: &str,
        authority: Option<&Path>,
    ) -> Result<Self, EngineClientError> {
        let authorization = match credentials {
            Credentials::None => None,
            Credentials::Password(pair) => Some(format!("Basic {}", BASE64.encode(pair.as_bytes()))),
            Credentials::Token(token) => Some(format!("{word} {token}")),
        };
        let secrets = match credentials {
            Credentials::None => Vec::new(),
            Credentials::Password(pair) => {
                let password = pair.split_once(':').map_or("", |(_, password)| password);
                vec![BASE64.encode(pair.as_bytes()), password.to_owned()]
            }
            Credentials::Token(token) => vec![token.clone()],
        };
        let tls = if address.tls { Some(connector(authority)?) } else { None };
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        Ok(Self { runtime, address: address.clone(), authorization, secrets, tls, connection: None })
    }

    /// The path of the engine.
    pub fn path(&self) -> &str {
        &self.address.path
    }

    /// A path of the same engine: in place of the last parts of its path that are `own`.
    pub fn beside(&self, own: &str, path: &str) -> String {
        let whole = self.path().split('?').next().unwrap_or_default();
        format!("{}{path}", whole.strip_suffix(own).unwrap_or(""))
    }

    /// A text of the engine without what it repeats of our credentials.
    fn hide(&self, body: Bytes) -> Bytes {
        let mut text = String::from_utf8_lossy(&body).into_owned();
        for secret in self.secrets.iter().filter(|secret| !secret.is_empty()) {
            text = text.replace(secret.as_str(), "***");
        }
        text.into()
    }

    /// Sends a request, and waits for its answer, of which at most `most` bytes are read.
    pub fn ask(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
        most: usize,
    ) -> Result<Answer, EngineRequestError> {
        let place = self.address.authority();
        let broken = |why: String| EngineRequestError::Broken { place: place.clone(), why };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &place)
            .header(USER_AGENT, concat!("numa/", env!("CARGO_PKG_VERSION")))
            .header(CONTENT_LENGTH, body.len());
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body)).map_err(|error| broken(error.to_string()))?;
        let kept = self.connection.take().filter(|connection| !connection.sender.is_closed());
        let Self { runtime, address, tls, .. } = self;
        let (mut answer, connection) = runtime.block_on(async {
            let mut connection = match kept {
                Some(connection) => connection,
                None => connect(address, tls.as_ref()).await?,
            };
            let answered = timeout(ANSWER, async {
                let Connection { sender, driver } = &mut connection;
                if let Err(error) = sender.ready().await {
                    return Err(unsent(&place, error, driver).await);
                }
                let response = match sender.send_request(request).await {
                    Ok(response) => response,
                    Err(error) => return Err(unsent(&place, error, driver).await),
                };
                let status = response.status().as_u16();
                let seconds =
                    response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
                let read = read(response.into_body(), most).await;
                let (body, is_whole) = read.map_err(|error| broken(error.to_string()))?;
                let retry_after = seconds.map(Duration::from_secs);
                Ok::<_, EngineRequestError>(Answer { status, retry_after, body, is_whole })
            });
            let silent = |_| EngineRequestError::Silent { place: place.clone(), after: ANSWER };
            Ok::<_, EngineRequestError>((answered.await.map_err(silent)??, connection))
        })?;
        self.connection = Some(connection).filter(|_| answer.is_whole);
        if answer.status >= 300 {
            answer.body = self.hide(answer.body);
        }
        Ok(answer)
    }
}

/// The first bytes of an answer, and whether they are all.
async fn read(mut body: Incoming, most: usize) -> hyper::Result<(Bytes, bool)> {
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let room = most - read.len();
        read.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            return Ok((read.freeze(), false));
        }
    }
    Ok((read.freeze(), true))
}

/// Why a request has no answer: the error of the connection, which ends with it, says more than that of the request.
async fn unsent(
    place: &str,
    error: hyper::Error,
    driver: &mut JoinHandle<hyper::Result<()>>,
) -> EngineRequestError {
    let ended =
        if error.is_canceled() || error.is_closed() { timeout(ENDED, driver).await.ok() } else { None };
    let error = ended.and_then(|ended| ended.ok()?.err()).unwrap_or(error);
    // What listens there speaks first, or answers something else.
    let speaks_first = error.source().is_none() && !error.is_incomplete_message() && !error.is_timeout();
    let is_foreign = error.is_parse() || speaks_first && !error.is_canceled() && !error.is_closed();
    let (place, why) = (place.to_owned(), error.to_string());
    match is_foreign {
        true => EngineRequestError::Foreign { place, why },
        false => EngineRequestError::Broken { place, why },
    }
}

/// Why TLS failed, if somebody must do something.
fn distrust(error: &io::Error) -> Option<String> {
    use CertificateError::{Expired, ExpiredContext, NotValidForName, NotValidForNameContext, UnknownIssuer};
    let certificate = match error.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(why) => why,
        rustls::Error::InvalidMessage(_) => {
            return Some("it does not speak TLS; check the port, or write +http:".to_owned());
        }
        _ => return None,
    };
    Some(match certificate {
        UnknownIssuer => {
            "no known authority has signed its certificate; give the file of its authority with --ca"
                .to_owned()
        }
        Expired | ExpiredContext { .. } => {
            "its certificate has expired; renew it, or correct the clock of this host".to_owned()
        }
        NotValidForName => "its certificate has another name; write a name that it has".to_owned(),
        NotValidForNameContext { presented, .. } => {
            let names = clean(&presented.join(", "));
            format!("its certificate has another name; write a name that it has: {names}")
        }
        other => format!("its certificate is wrong: {other}; replace it"),
    })
}

async fn connect(address: &Address, tls: Option<&TlsConnector>) -> Result<Connection, EngineRequestError> {
    let place = address.authority();
    let fail = |error| EngineRequestError::Connect { place: place.clone(), error };
    let connecting = async {
        let found = lookup_host((address.host.as_str(), address.port)).await;
        let found = found.map_err(|error| EngineRequestError::Unknown { place: place.clone(), error })?;
        let stream = TcpStream::connect(&*found.collect::<Vec<_>>()).await.map_err(fail)?;
        stream.set_nodelay(true).map_err(fail)?;
        match tls {
            None => handshake(stream, &place).await,
            Some(tls) => {
                let name = ServerName::try_from(address.host.clone());
                let name = name.map_err(|error| fail(io::Error::new(io::ErrorKind::InvalidInput, error)))?;
                let secured = tls.connect(name, stream).await.map_err(|error| match distrust(&error) {
                    Some(why) => EngineRequestError::Untrusted { place: place.clone(), why },
                    None => fail(error),
                })?;
                handshake(secured, &place).await
            }
        }
    };
    let silent = |_| EngineRequestError::Silent { place: place.clone(), after: CONNECT };
    timeout(CONNECT, connecting).await.map_err(silent)?
}

async fn handshake(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    place: &str,
) -> Result<Connection, EngineRequestError> {
    let broken =
        |error: hyper::Error| EngineRequestError::Broken { place: place.to_owned(), why: error.to_string() };
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    Ok(Connection { sender, driver: tokio::spawn(connection) })
}

fn connector(authority: Option<&Path>) -> Result<TlsConnector, EngineClientError> {
    Ok(TlsConnector::from(Arc::new(tls_settings(authority)?)))
}

/// TLS that trusts the authorities in a file, or those of the system.
pub fn tls_settings(authority: Option<&Path>) -> Result<ClientConfig, EngineClientError> {
    let mut roots = RootCertStore::empty();
    let none = |path: &Path, error| EngineClientError::Authority { path: path.to_owned(), error };
    let missing = || io::Error::new(io::ErrorKind::NotFound, "there is none");
    match authority {
        Some(path) => {
            let mut text = Vec::new();
            let read = open_to_read(path).and_then(|file| file.take(MAX_AUTHORITIES).read_to_end(&mut text));
            read.map_err(|error| none(path, error))?;
            let certificates: Vec<_> = CertificateDer::pem_slice_iter(&text).filter_map(Result::ok).collect();
            if roots.add_parsable_certificates(certificates).0 == 0 {
                return Err(none(path, missing()));
            }
        }
        None => {
            let native = rustls_native_certs::load_native_certs();
            if roots.add_parsable_certificates(native.certs).0 == 0 {
                return Err(none(Path::new("the system"), missing()));
            }
        }
    }
    let versions = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    Ok(versions.with_root_certificates(roots).with_no_client_auth())
}
