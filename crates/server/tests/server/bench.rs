//! A server with one live source, and clients that use raw TCP.

use numakit_formulas::Catalog;
use numakit_model::{CpuSet, Instance, Kind, Metric, Scope, Series, Unit};
use numakit_observation::ObservationStatus;
use numakit_recording::{Header, Ring};
use numakit_server::wire::OpeningInfo;
use numakit_server::{ControlSender, ListenOptions, Listener, Server, Urls};
use numakit_testing::until;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

/// Within this time a server answers, also on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub const START: u64 = 1_700_000_000_000_000_000;

/// What a page sends to open the stream, in addition to cookie and origin.
pub const UPGRADE: [&str; 5] = [
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    "Sec-WebSocket-Protocol: numakit.1",
];

pub struct Bench {
    pub urls: Urls,
    pub ring: Arc<Ring>,
    server: Option<Server>,
    ingest: Option<JoinHandle<()>>,
}

pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Bench {
    /// Serves gauges `test.a` and `test.b`; every command is answered with itself.
    pub fn new() -> Self {
        Self::behind(ListenOptions::default())
    }

    /// The same with these options.
    pub fn behind(options: ListenOptions) -> Self {
        let listener = Listener::bind("127.0.0.1:0", "host", options).unwrap();
        let urls = listener.urls();
        let formulas = Arc::new(Catalog::default());
        let control: ControlSender = Box::new(|order, answer| answer(Ok(format!("{order:?}"))));
        let server = listener.start(Some(control), Arc::clone(&formulas), 32 << 20, CpuSet::new()).unwrap();
        let header = Header { series: ["test.a", "test.b"].map(series).to_vec(), ..Header::default() };
        let ring = Arc::new(Ring::in_memory(2, 5000).unwrap());
        let ingest = server.follow(&header, &formulas, Arc::clone(&ring), CpuSet::new()).unwrap();
        Self { urls, ring, server: Some(server), ingest: Some(ingest) }
    }

    /// Adds rows, one per millisecond, from row `from` on.
    pub fn rows(&self, from: u64, count: u64) {
        for row in from..from + count {
            until!(self.ring.pending_rows() < 4000);
            self.ring.push(START + row * 1_000_000, 0, &[Some(row % 1000), None]);
        }
    }

    /// Sets the state of the observation.
    pub fn status(&self, status: &ObservationStatus) {
        self.server.as_ref().unwrap().hub().set_status(status);
    }

    /// Sets which recordings are being opened.
    pub fn opening(&self, opening: Vec<OpeningInfo>) {
        self.server.as_ref().unwrap().hub().set_opening(opening);
    }

    pub fn address(&self) -> SocketAddr {
        self.urls.listen
    }

    /// A connection whose reads fail after some time.
    pub fn stream(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends bytes and reads all that comes until the server closes.
    pub fn raw(&self, bytes: &[u8]) -> Reply {
        let mut stream = self.stream();
        // The server may answer and close before it has read everything.
        let _ = stream.write_all(bytes);
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        let text = String::from_utf8_lossy(&all).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
        Reply { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    /// A request with these additional header lines.
    pub fn request(&self, line: &str, headers: &[&str], body: &str) -> Reply {
        let host = format!("Host: {}", self.address());
        let own = if headers.iter().any(|h| h.starts_with("Host:")) { "" } else { &host };
        let mut lines: Vec<&str> = headers.to_vec();
        lines.extend(Some(own).filter(|h| !h.is_empty()));
        let text = format!(
            "{line} HTTP/1.1\r\n{}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            lines.join("\r\n"),
            body.len()
        );
        self.raw(text.as_bytes())
    }

    pub fn origin(&self) -> String {
        format!("Origin: http://{}", self.address())
    }

    /// Exchanges the token of an address for a cookie.
    pub fn login(&self, url: &str) -> String {
        let token = url.split_once('#').unwrap().1;
        let body = format!("{{\"token\":\"{token}\"}}");
        let reply = self.request("POST /session", &[&self.origin()], &body);
        assert_eq!(reply.status, 200, "{}", reply.body);
        let cookie = reply.head.lines().find_map(|l| l.strip_prefix("set-cookie: ")).unwrap().to_owned();
        assert!(cookie.ends_with("; httponly; samesite=strict; path=/"), "{cookie}");
        format!("Cookie: {}", cookie.split(';').next().unwrap())
    }

    /// Requests the stream, and reads only the response.
    pub fn upgrade(&self, url: &str, headers: &[&str]) -> Reply {
        let (origin, cookie) = (self.origin(), self.login(url));
        let mut all = vec![origin.as_str(), &cookie];
        all.extend(UPGRADE);
        all.extend(headers);
        self.request("GET /stream", &all, "")
    }

    /// Opens the stream.
    pub fn connect(&self, url: &str) -> Page {
        self.try_connect(url).unwrap()
    }

    /// Opens the stream, unless the server refuses.
    pub fn try_connect(&self, url: &str) -> Option<Page> {
        let cookie = self.login(url);
        let mut request = format!("ws://{}/stream", self.address()).into_client_request().unwrap();
        for (name, value) in [
            ("Cookie", cookie.strip_prefix("Cookie: ").unwrap()),
            ("Origin", self.origin().strip_prefix("Origin: ").unwrap()),
            ("Sec-WebSocket-Protocol", "numakit.1"),
        ] {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        client::client(request, self.stream()).ok().map(|(socket, _)| Page(socket))
    }

    /// Checks that the server still answers.
    pub fn is_alive(&self) {
        assert_eq!(self.request("GET /", &[], "").status, 200);
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.ring.close();
        self.ingest.take().map(JoinHandle::join);
        drop(self.server.take());
    }
}

pub struct Page(pub WebSocket<TcpStream>);

impl Page {
    pub fn send(&mut self, text: &str) {
        self.0.send(Message::text(text)).unwrap();
    }

    /// The next message of that type.
    pub fn text(&mut self, kind: &str) -> Value {
        self.next(kind, |message| {
            let Message::Text(text) = message else { return None };
            let value: Value = serde_json::from_str(&text).unwrap();
            (value["type"] == kind).then_some(value)
        })
    }

    /// The header of the next frame.
    pub fn frame(&mut self) -> Value {
        self.next("a frame", |message| {
            let Message::Binary(bytes) = message else { return None };
            let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
            Some(serde_json::from_slice(&bytes[4..4 + length]).unwrap())
        })
    }

    /// The next of the messages that this accepts; others, such as the state of each second, do not prolong the wait.
    fn next(&mut self, what: &str, accept: impl Fn(Message) -> Option<Value>) -> Value {
        let late = Instant::now() + PATIENCE;
        loop {
            if let Some(value) = accept(self.0.read().unwrap()) {
                return value;
            }
            assert!(Instant::now() < late, "only other messages than {what}");
        }
    }
}

fn series(name: &str) -> Series {
    let metric = Metric {
        name: name.into(),
        unit: Unit::Count,
        kind: Kind::Gauge,
        scope: Scope::Machine,
        help: String::new(),
        source: String::new(),
        resolution: Duration::ZERO,
        confidence: None,
        maximum: None,
    };
    Series::new(&Arc::new(metric), Instance::Machine)
}
