//! A server for programs that scrape: one text, health, and nothing that changes anything.

use crate::accept::{ConnectionHandler, accept};
use crate::access::{constant_time_eq, host_name, is_loopback};
use crate::http::{HttpResponse, respond};
use crate::refusal_log::RefusalLog;
use crate::server::{ServerError, socket};
use crate::tls::Tls;
use bytes::Bytes;
use data_encoding::BASE64;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Request, StatusCode};
use numakit_model::CpuSet;
use numakit_sys::stdio::note;
use numakit_sys::{file, sched};
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::Notify;

/// A larger file of secrets is not read.
const MAX_SECRET: u64 = 4096;
/// A shorter token could be guessed.
const MIN_TOKEN: usize = 16;
/// Time for clients to receive the last bytes.
const FAREWELL: Duration = Duration::from_millis(100);

/// Where scrapes are answered unless the user says where.
pub const ADDRESS: &str = "127.0.0.1:9477";

/// Why a server for scrapes cannot start.
#[derive(Debug, Error)]
pub enum ScrapeServerError {
    /// It cannot listen.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// Others could read it.
    #[error(
        "other hosts could read what is served at {0}, and nothing says who may; give --token-file, --password-file or \
         --tls-cert and --tls-key, or --insecure if a firewall protects it, or --listen 127.0.0.1:{port}", port = .0.port()
    )]
    Open(SocketAddr),
    /// A file of secrets is unusable.
    #[error("{option} {}: {problem}; {fix}", path.display())]
    Secret {
        /// The option that names it.
        option: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
        /// What helps.
        fix: &'static str,
    },
}

/// Who may scrape. Without a token and a password, everybody who reaches the address.
#[derive(Debug, Default)]
pub struct ScrapeAccess {
    token: Option<String>,
    /// As a client sends it, in base 64.
    password: Option<String>,
}

impl ScrapeAccess {
    /// Reads the files of a token, and of a user and password.
    pub fn read(token: Option<&Path>, password: Option<&Path>) -> Result<Self, ScrapeServerError> {
        let token = token.map(|path| {
            let fix = "give a file that contains one token of 16 to 4,096 letters, digits and signs, as 'openssl rand -hex 16' prints it";
            let valid = |text: &str| text.len() >= MIN_TOKEN && text.bytes().all(|b| b.is_ascii_graphic());
            secret("--token-file", path, fix, valid)
        });
        let password = password.map(|path| {
            let fix = "give a file with one line, USER:PASSWORD";
            let valid = |text: &str| {
                let parts = text.split_once(':');
                parts.is_some_and(|(user, password)| !user.is_empty() && !password.is_empty())
                    && !text.chars().any(char::is_control)
            };
            secret("--password-file", path, fix, valid)
        });
        let password = password.transpose()?.map(|text| BASE64.encode(text.as_bytes()));
        Ok(Self { token: token.transpose()?, password })
    }

    /// Whether a client has to say who it is.
    pub fn is_closed(&self) -> bool {
        self.token.is_some() || self.password.is_some()
    }

    fn permits(&self, headers: &HeaderMap) -> bool {
        if !self.is_closed() {
            return true;
        }
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let Some((scheme, secret)) = given.and_then(|given| given.split_once(' ')) else { return false };
        let known = match () {
            () if scheme.eq_ignore_ascii_case("bearer") => &self.token,
            () if scheme.eq_ignore_ascii_case("basic") => &self.password,
            () => return false,
        };
        known.as_ref().is_some_and(|known| constant_time_eq(known, secret.trim()))
    }

    /// What a client without permission has to send.
    fn challenge(&self) -> HeaderValue {
        HeaderValue::from_static(if self.password.is_some() {
            "Basic realm=\"numa serve\""
        } else {
            "Bearer"
        })
    }
}

/// The secret in a file, which only its user and group may read.
fn secret(
    option: &'static str,
    path: &Path,
    fix: &'static str,
    valid: impl Fn(&str) -> bool,
) -> Result<String, ScrapeServerError> {
    let refuse =
        |problem: String, fix| ScrapeServerError::Secret { option, path: path.to_owned(), problem, fix };
    if file::others_may_read(path).map_err(|error| refuse(error.to_string(), fix))? {
        return Err(refuse("every user of this machine can read it".to_owned(), "run chmod o= on it"));
    }
    let text = file::named_text(path, MAX_SECRET).map_err(|error| refuse(error.to_string(), fix))?;
    let text = text.trim_end_matches(['\n', '\r']);
    match valid(text) {
        true => Ok(text.to_owned()),
        false => Err(refuse(format!("its {} bytes are not what is expected", text.len()), fix)),
    }
}

/// What is scraped.
pub trait Scraped: Send + Sync {
    /// Whether there is something to scrape.
    fn is_ready(&self) -> bool;

    /// The content type and the text for a client that accepts these types; `None` while there is none yet. It must not wait.
    fn text(&self, accept: Option<&str>) -> Option<(&'static str, Arc<[u8]>)>;
}

/// A bound socket whose server has not started yet.
#[derive(Debug)]
pub struct ScrapeListener {
    socket: TcpListener,
    address: SocketAddr,
    tls: Option<Tls>,
    access: ScrapeAccess,
}

impl ScrapeListener {
    /// Binds an address. One that other hosts reach needs an access, TLS, or `insecure`.
    pub fn bind(
        address: &str,
        tls: Option<Tls>,
        access: ScrapeAccess,
        insecure: bool,
    ) -> Result<Self, ScrapeServerError> {
        let socket = socket(address)?;
        let address = socket.local_addr().map_err(ServerError::from)?;
        if !address.ip().is_loopback() && !access.is_closed() && tls.is_none() && !insecure {
            return Err(ScrapeServerError::Open(address));
        }
        socket.set_nonblocking(true).map_err(ServerError::from)?;
        Ok(Self { socket, address, tls, access })
    }

    /// The address of the metrics.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/metrics", self.address)
    }

    /// Answers scrapes in a thread on these CPUs (empty: any).
    pub fn start(self, scraped: Arc<dyn Scraped>, cpus: CpuSet) -> io::Result<ScrapeServer> {
        let end = Arc::new(Notify::new());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (socket, tls, ending) = (self.socket, self.tls, Arc::clone(&end));
        let shared = Arc::new(Shared {
            is_local: self.address.ip().is_loopback() && !self.access.is_closed(),
            access: self.access,
            scraped,
            log: RefusalLog::default(),
        });
        let thread = std::thread::Builder::new().name("scrapes".into()).spawn(move || {
            if !cpus.is_empty() {
                // Without this it is only slower: farther from its memory.
                let _ = sched::set_affinity(&cpus);
            }
            let of_connection = Arc::clone(&shared);
            let handler = move |peer, _, _| ScrapeHandler { shared: Arc::clone(&of_connection), peer };
            let result = runtime.block_on(accept(socket, tls, &shared.log, &ending, handler));
            runtime.shutdown_timeout(FAREWELL);
            if let Err(error) = result {
                note(format_args!("the server failed: {error}"));
            }
        })?;
        Ok(ScrapeServer { end, thread: Some(thread) })
    }
}

/// A running server; dropping it ends it.
#[derive(Debug)]
pub struct ScrapeServer {
    end: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for ScrapeServer {
    fn drop(&mut self) {
        self.end.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Shared {
    access: ScrapeAccess,
    /// Only programs of this machine are served, and a page in a browser must not be one of them.
    is_local: bool,
    scraped: Arc<dyn Scraped>,
    log: RefusalLog,
}

#[derive(Clone)]
struct ScrapeHandler {
    shared: Arc<Shared>,
    peer: SocketAddr,
}

impl ConnectionHandler for ScrapeHandler {
    fn refuse(&self, why: &str) {
        self.shared.log.log(&self.peer.to_string(), why);
    }

    async fn answer(self, request: Request<Incoming>) -> Result<HttpResponse, Infallible> {
        let mut answer = self.route(&request);
        if answer.status().is_client_error() {
            let line = format!("{} {}: {}", request.method(), request.uri().path(), answer.status());
            self.refuse(&line);
            // The body is not read.
            answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(answer)
    }
}

const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

impl ScrapeHandler {
    fn route(&self, request: &Request<Incoming>) -> HttpResponse {
        let headers = request.headers();
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let say = |status, words: &'static str| respond(status, PLAIN_TEXT, words);
        if !matches!(request.method(), &Method::GET | &Method::HEAD) {
            return say(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered\n");
        }
        // A page of another site may make a browser ask here by a name that leads to this machine.
        let is_here = || text(header::HOST).and_then(host_name).is_some_and(|name| is_loopback(&name));
        if self.shared.is_local && !is_here() {
            return say(
                StatusCode::MISDIRECTED_REQUEST,
                "the Host of the request is not this machine; ask for 127.0.0.1 or localhost, or start numa serve with --token-file\n",
            );
        }
        match request.uri().path() {
            "/-/healthy" => say(StatusCode::OK, "healthy\n"),
            "/-/ready" => match self.shared.scraped.is_ready() {
                true => say(StatusCode::OK, "ready\n"),
                false => say(StatusCode::SERVICE_UNAVAILABLE, "the first sample is not taken yet\n"),
            },
            "/metrics" if !self.shared.access.permits(headers) => {
                let mut answer = say(StatusCode::UNAUTHORIZED, "the token or password is missing or wrong\n");
                answer.headers_mut().insert(header::WWW_AUTHENTICATE, self.shared.access.challenge());
                answer
            }
            "/metrics" => match self.shared.scraped.text(text(header::ACCEPT)) {
                Some((kind, text)) => respond(StatusCode::OK, kind, Bytes::from_owner(text)),
                None => say(StatusCode::SERVICE_UNAVAILABLE, "the first sample is not taken yet\n"),
            },
            "/" => say(StatusCode::OK, "numa serve: /metrics, /-/healthy, /-/ready\n"),
            _ => say(StatusCode::NOT_FOUND, "not found; there are /metrics, /-/healthy and /-/ready\n"),
        }
    }
}

#[cfg(test)]
mod tests;
