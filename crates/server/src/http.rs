//! Answers HTTP requests.

use crate::accept::ConnectionHandler;
use crate::access::same_origin;
use crate::client::Client;
use crate::client_request_error::ClientRequestError;
use crate::connections::ConnectionSlot;
use crate::hub::Hub;
use crate::listen_options::Below;
use crate::wire::{LoggedIn, Login, MESSAGE_BYTES, Role, SUBPROTOCOL};
use crate::{csv, page, upload};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use numakit_formulas::Catalog;
use numakit_guide::site;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{self, WebSocketConfig};

/// Only our own files are loaded, and no page may frame ours.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
/// Maximum size of the body of `POST /session`.
const LOGIN_BYTES: usize = 4096;
/// Maximum wait for it.
const PATIENCE: Duration = Duration::from_secs(5);
/// Why a connection was closed for a newer one.
pub const CLOSED_FOR_NEWER: &str = "too many connections; the oldest one was closed";

/// A response.
pub type HttpResponse = Response<Full<Bytes>>;

/// Why a request is refused.
#[derive(Debug)]
pub struct HttpRefusal {
    status: StatusCode,
    why: String,
}

impl HttpRefusal {
    /// A response with this status and message.
    pub fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self { status, why: why.into() }
    }
}

/// CSV text that is being sent, with the permit that limits their number.
struct PermittedText {
    text: String,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for PermittedText {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

/// Serves the requests of one connection.
#[derive(Clone)]
pub struct HttpHandler {
    /// What all clients share.
    pub hub: Arc<Hub>,
    /// Formulas for uploaded recordings.
    pub formulas: Arc<Catalog>,
    /// Address of the client or proxy.
    pub peer: SocketAddr,
    /// Address of this server that it connected to.
    pub local: Option<SocketAddr>,
    /// The connection's slot.
    pub slot: Arc<ConnectionSlot>,
}

impl ConnectionHandler for HttpHandler {
    fn refuse(&self, why: &str) {
        self.hub.refusal_log.log(&self.peer.to_string(), why);
    }

    async fn answer(self, request: Request<Incoming>) -> Result<HttpResponse, Infallible> {
        let request_line = format!("{} {}", request.method(), request.uri().path());
        let (who, role) = (self.who(request.headers()), self.role(request.headers()));
        self.set_role(role);
        let mut answer = match self.route(request).await {
            Ok(answer) => answer,
            Err(HttpRefusal { status, why }) => {
                self.hub.refusal_log.log(&who, &format!("{request_line}: {status}: {why}"));
                let mut answer = respond(status, "text/plain; charset=utf-8", format!("{why}\n"));
                // The rest of the body is not read.
                answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                answer
            }
        };
        protect(answer.headers_mut());
        Ok(answer)
    }
}

impl HttpHandler {
    async fn route(&self, request: Request<Incoming>) -> Result<HttpResponse, HttpRefusal> {
        self.check_host(&request)?;
        let path = request.uri().path().to_owned();
        let path = match self.hub.access.base.below(&path) {
            Below::Path("/guide") => return Ok(redirect(&format!("{}guide/", self.hub.access.base.page()))),
            Below::Path(path) => path,
            Below::Page => return Ok(redirect(&self.hub.access.base.page())),
            Below::Outside => return Err(self.not_found()),
        };
        match (request.method(), path) {
            (&Method::POST, "/session") => self.login(request).await,
            (&Method::GET, "/session") => self.session(&request),
            (&Method::GET, "/stream") => self.stream(request),
            (&Method::GET, "/export.csv") => self.export(&request).await,
            (&Method::GET, "/results") => {
                self.need(&request, Role::Viewer)?;
                Ok(respond(StatusCode::OK, "application/json", self.hub.results()))
            }
            (&Method::POST, "/recordings") => {
                check_origin(&request)?;
                self.need(&request, Role::Controller)?;
                upload::take(&self.hub, &self.formulas, request).await
            }
            (&Method::GET | &Method::HEAD, path) => match path.strip_prefix("/guide/") {
                Some(path) => self.guide(path),
                None => self.page(path),
            },
            _ => Err(HttpRefusal::new(StatusCode::METHOD_NOT_ALLOWED, "method not allowed")),
        }
    }

    fn page(&self, path: &str) -> Result<HttpResponse, HttpRefusal> {
        let file = page::file(path).ok_or_else(|| self.not_found())?;
        Ok(respond(StatusCode::OK, file.kind, Bytes::from_static(file.content)))
    }

    /// A file of the guide, which everybody may read.
    fn guide(&self, path: &str) -> Result<HttpResponse, HttpRefusal> {
        let path = if path.is_empty() { site::FIRST } else { path };
        let file = site::file(path).ok_or_else(|| self.not_found())?;
        Ok(respond(StatusCode::OK, file.kind, file.content))
    }

    fn not_found(&self) -> HttpRefusal {
        let page = self.hub.access.base.page();
        HttpRefusal::new(StatusCode::NOT_FOUND, format!("not found; open {page}"))
    }

    /// The client's address, from which limits are counted.
    fn address(&self, headers: &HeaderMap) -> IpAddr {
        let host = text(headers, header::HOST).unwrap_or_default();
        // Each proxy appends to the last of these lines.
        let forwarded = headers.get_all("x-forwarded-for").iter().next_back();
        let forwarded = forwarded.and_then(|value| value.to_str().ok());
        self.hub.access.origin_of(host, forwarded, self.peer.ip())
    }

    /// The sender of a request in log lines.
    fn who(&self, headers: &HeaderMap) -> String {
        let address = self.address(headers);
        if address == self.peer.ip() { self.peer.to_string() } else { format!("{address} by {}", self.peer) }
    }

    /// The role of the cookies of a request.
    fn role(&self, headers: &HeaderMap) -> Option<Role> {
        let mut cookies = headers.get_all(header::COOKIE).iter().filter_map(|c| c.to_str().ok());
        cookies.find_map(|c| self.hub.access.role_of_cookies(c))
    }

    /// Counts the connection as one of this role from now on.
    fn set_role(&self, role: Option<Role>) {
        if let Some(owner) = self.slot.set_role(role) {
            self.hub.refusal_log.log(&owner.to_string(), CLOSED_FOR_NEWER);
        }
    }

    /// Refuses foreign host names, against DNS rebinding.
    fn check_host(&self, request: &Request<Incoming>) -> Result<(), HttpRefusal> {
        let host = text(request.headers(), header::HOST).unwrap_or_default();
        let hosts = request.headers().get_all(header::HOST).iter().count();
        if hosts == 1 && self.hub.access.accepts_host(host, self.local.map(|l| l.ip())) {
            return Ok(());
        }
        let why = format!(
            "the host '{host}' is not this server; start it with --trusted-host {name} if this is its name behind a proxy, \
             otherwise use localhost and a tunnel (ssh -L)",
            name = host.split(':').next().unwrap_or_default()
        );
        Err(HttpRefusal::new(StatusCode::MISDIRECTED_REQUEST, why))
    }

    /// The role of the cookie; an error if it is less than `required`.
    fn need(&self, request: &Request<Incoming>, required: Role) -> Result<Role, HttpRefusal> {
        match self.role(request.headers()) {
            Some(Role::Viewer) if required == Role::Controller => Err(HttpRefusal::new(
                StatusCode::FORBIDDEN,
                "a viewer cannot do that; open the control address",
            )),
            Some(role) => Ok(role),
            None => Err(HttpRefusal::new(
                StatusCode::UNAUTHORIZED,
                "no valid cookie; open the address that the server printed when it started",
            )),
        }
    }

    async fn login(&self, request: Request<Incoming>) -> Result<HttpResponse, HttpRefusal> {
        check_origin(&request)?;
        let origin = text(request.headers(), header::ORIGIN).unwrap_or_default().to_owned();
        let bad = |why: String| HttpRefusal::new(StatusCode::BAD_REQUEST, why);
        let body = timeout(PATIENCE, Limited::new(request.into_body(), LOGIN_BYTES).collect()).await;
        let body = body.map_err(|_| {
            HttpRefusal::new(StatusCode::REQUEST_TIMEOUT, "timed out while receiving the body")
        })?;
        let body = body.map_err(|error| bad(format!("cannot read the body: {error}")))?.to_bytes();
        let login: Login = serde_json::from_slice(&body)
            .map_err(|error| bad(format!("the body is not {{\"token\": \"...\"}}: {error}")))?;
        let Some(role) = self.hub.access.role_of_token(login.token.trim()) else {
            let why = "the access key is not valid for this server; open the address that it printed when it started";
            return Err(HttpRefusal::new(StatusCode::UNAUTHORIZED, why));
        };
        self.set_role(Some(role));
        let body = serde_json::to_vec(&LoggedIn { role }).unwrap_or_default();
        let mut answer = respond(StatusCode::OK, "application/json", body);
        if let Ok(cookie) = self.hub.access.cookie(role, &origin).parse() {
            answer.headers_mut().insert(header::SET_COOKIE, cookie);
        }
        Ok(answer)
    }

    /// The role of the cookie, or why a stream would be refused, which a page cannot see of a
    /// WebSocket.
    fn session(&self, request: &Request<Incoming>) -> Result<HttpResponse, HttpRefusal> {
        let role = self.need(request, Role::Viewer)?;
        let room = self.hub.check_room(role, self.address(request.headers()));
        room.map_err(|why| HttpRefusal::new(StatusCode::SERVICE_UNAVAILABLE, why.to_string()))?;
        let body = serde_json::to_vec(&LoggedIn { role }).unwrap_or_default();
        Ok(respond(StatusCode::OK, "application/json", body))
    }

    async fn export(&self, request: &Request<Incoming>) -> Result<HttpResponse, HttpRefusal> {
        let role = self.need(request, Role::Viewer)?;
        let permit = self.hub.export_permit(role).ok_or_else(|| {
            let why = "too many CSV exports at once; try again later";
            HttpRefusal::new(StatusCode::TOO_MANY_REQUESTS, why)
        })?;
        let bad = |why: ClientRequestError| HttpRefusal::new(StatusCode::BAD_REQUEST, why.to_string());
        let query = csv::Query::parse(request.uri().query().unwrap_or_default()).map_err(bad)?;
        let shown = self.hub.whole_source(query.source).map_err(bad)?;
        let written = tokio::task::spawn_blocking(move || csv::text(&shown, &query)).await;
        let text = written.unwrap_or(Err(ClientRequestError::NotWritten)).map_err(bad)?;
        let text = Bytes::from_owner(PermittedText { text, _permit: permit });
        let mut answer = respond(StatusCode::OK, "text/csv; charset=utf-8", text);
        let name = HeaderValue::from_static("attachment; filename=\"numa.csv\"");
        answer.headers_mut().insert(header::CONTENT_DISPOSITION, name);
        Ok(answer)
    }

    /// Upgrades the connection to a WebSocket.
    fn stream(&self, mut request: Request<Incoming>) -> Result<HttpResponse, HttpRefusal> {
        check_origin(&request)?;
        let role = self.need(&request, Role::Viewer)?;
        let key = socket_key(request.headers())?;
        let entered = self.hub.enter(role, self.address(request.headers()));
        let queue =
            entered.map_err(|why| HttpRefusal::new(StatusCode::SERVICE_UNAVAILABLE, why.to_string()))?;
        let who = self.who(request.headers());
        let client = Client::new(Arc::clone(&self.hub), Arc::clone(&queue), role, who);
        let (hub, upgrade) = (Arc::clone(&self.hub), hyper::upgrade::on(&mut request));
        tokio::spawn(async move {
            let Ok(Ok(stream)) = timeout(PATIENCE, upgrade).await else { return hub.leave(&queue) };
            let socket = WebSocketStream::from_raw_socket(
                TokioIo::new(stream),
                protocol::Role::Server,
                Some(limits()),
            );
            client.serve(socket.await).await;
        });
        let mut answer = respond(StatusCode::SWITCHING_PROTOCOLS, "", Bytes::new());
        let headers = answer.headers_mut();
        headers.remove(header::CONTENT_TYPE);
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
        if let Ok(accept) = derive_accept_key(key.as_bytes()).parse() {
            headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
        }
        Ok(answer)
    }
}

/// Adds the slash to the path of a page: its files are relative to it.
fn redirect(page: &str) -> HttpResponse {
    let mut answer = respond(StatusCode::PERMANENT_REDIRECT, "text/plain; charset=utf-8", Bytes::new());
    if let Ok(page) = page.parse() {
        answer.headers_mut().insert(header::LOCATION, page);
    }
    answer
}

fn limits() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(8 * 1024)
        .write_buffer_size(0)
        .max_message_size(Some(MESSAGE_BYTES))
        .max_frame_size(Some(MESSAGE_BYTES))
}

/// The key of a valid WebSocket upgrade to our protocol.
fn socket_key(headers: &HeaderMap) -> Result<String, HttpRefusal> {
    let has = |name, word: &str| {
        let value = text(headers, name).unwrap_or_default();
        value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word))
    };
    let wrong = |why: &str| HttpRefusal::new(StatusCode::BAD_REQUEST, why);
    if !has(header::CONNECTION, "upgrade") || !has(header::UPGRADE, "websocket") {
        return Err(wrong("/stream accepts only WebSocket upgrades"));
    }
    if !has(header::SEC_WEBSOCKET_VERSION, "13") {
        return Err(wrong("only WebSocket version 13 is supported"));
    }
    if !has(header::SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL) {
        return Err(wrong(
            "the page is from another version of numa (protocol numakit.1 is required); reload it",
        ));
    }
    let key = text(headers, header::SEC_WEBSOCKET_KEY).filter(|key| key.len() == 24);
    key.map(str::to_owned).ok_or_else(|| wrong("Sec-WebSocket-Key is missing or wrong"))
}

/// Refuses pages of other origins.
fn check_origin(request: &Request<Incoming>) -> Result<(), HttpRefusal> {
    let host = text(request.headers(), header::HOST).unwrap_or_default();
    let origin = text(request.headers(), header::ORIGIN).unwrap_or_default();
    if same_origin(origin, host) {
        return Ok(());
    }
    let why = format!(
        "the origin '{origin}' is not http://{host} or https://{host}; a proxy must pass on the Host \
         that the browser sent, with its port"
    );
    Err(HttpRefusal::new(StatusCode::FORBIDDEN, why))
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// A response of this content type.
pub fn respond(status: StatusCode, kind: &str, body: impl Into<Bytes>) -> HttpResponse {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    if let Ok(kind) = HeaderValue::from_str(kind) {
        answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    }
    answer
}

fn protect(headers: &mut HeaderMap) {
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
