//! A server from its socket to its end.

use crate::access::AccessKeys;
use crate::front::Front;
use crate::http::{CROWD, HttpHandler};
use crate::hub::{Hub, Orders};
use crate::keeper::Ingest;
use crate::layout::SeriesLayout;
use crate::places::{ConnectionSlot, Places};
use crate::tls::Tls;
use crate::wire::{FromServer, Role, SourceKind};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use numakit_derived::Catalog;
use numakit_history::History;
use numakit_model::CpuSet;
use numakit_recording::{Header, Rates, Ring};
use numakit_sys::sched;
use numakit_sys::stdio::note;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;

/// Longest wait for the head of a request, and for the greeting of an encrypted connection.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest head of a request.
const HEAD_BYTES: usize = 32 * 1024;
/// Longest wait for a client to take what is sent.
const UNREAD: Duration = Duration::from_secs(120);
/// The first byte of an encrypted connection.
const HANDSHAKE: u8 = 22;
/// The answer to one that is not.
const PLAIN: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n\
    this server uses TLS; open the page with https:// instead of http://\n";
/// What clients that are told of the end may take to read it.
const FAREWELL: Duration = Duration::from_millis(300);

/// A server that cannot begin.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The address is no address.
    #[error("--listen '{0}' is not an address; write it as 127.0.0.1:7077 or [::1]:7077")]
    Address(String),
    /// Somebody else listens there.
    #[error("{0} is in use by another program; give another port with --listen, as in --listen {1}:{2}")]
    InUse(SocketAddr, std::net::IpAddr, u16),
    /// It may not listen there.
    #[error("cannot listen on {0}: {1}; give another address with --listen")]
    Listen(SocketAddr, io::Error),
    /// Something of the system.
    #[error("cannot start the server: {0}")]
    System(#[from] io::Error),
}

/// A socket that nobody is served at yet.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    access: AccessKeys,
    tls: Option<Tls>,
}

/// Addresses of the page. They hold the tokens behind the `#`, which browsers send to nobody.
#[derive(Debug, Clone)]
pub struct Urls {
    /// Where the server listens.
    pub listen: SocketAddr,
    /// For those who may give orders.
    pub controller: String,
    /// For those who may look.
    pub viewer: String,
}

impl Listener {
    /// Listens at an address. `host` is the name of this machine.
    pub fn bind(address: &str, host: &str, front: Front) -> Result<Self, ServerError> {
        let wanted: SocketAddr = match address.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}").parse(),
            None => address.parse(),
        }
        .map_err(|_| ServerError::Address(address.to_owned()))?;
        let socket = TcpListener::bind(wanted).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => {
                ServerError::InUse(wanted, wanted.ip(), wanted.port().checked_add(1).unwrap_or(7077))
            }
            _ => ServerError::Listen(wanted, error),
        })?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        Ok(Self { socket, address, access: AccessKeys::new(address, host, &front)?, tls: front.tls })
    }

    /// Where its page is found.
    pub fn urls(&self) -> Urls {
        let mut shown = self.address;
        if shown.ip().is_unspecified() {
            shown.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
        let (scheme, page) = (if self.tls.is_some() { "https" } else { "http" }, self.access.base.page());
        let url = |role| format!("{scheme}://{shown}{page}#{}", self.access.token(role));
        Urls { listen: self.address, controller: url(Role::Controller), viewer: url(Role::Viewer) }
    }

    /// Serves from now on, in a thread on these CPUs (none: anywhere). Sources are added to its
    /// hub; each keeps what it needs in `budget` bytes.
    pub fn start(
        self,
        orders: Option<Orders>,
        formulas: Arc<Catalog>,
        budget: usize,
        cpus: CpuSet,
    ) -> Result<Server, ServerError> {
        let hub = Arc::new(Hub::new(self.access, budget, orders));
        let end = Arc::new(Notify::new());
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(4).build()?;
        let accept = Accept { hub: Arc::clone(&hub), formulas, end: Arc::clone(&end), tls: self.tls };
        let socket = self.socket;
        let thread = std::thread::Builder::new().name("server".into()).spawn(move || {
            if !cpus.is_empty() {
                // Elsewhere it works too, only farther from its memory.
                let _ = sched::set_affinity(&cpus);
            }
            let result = runtime.block_on(accept.run(socket));
            runtime.shutdown_timeout(FAREWELL);
            if let Err(error) = result {
                note(format_args!("the server failed: {error}"));
            }
        })?;
        Ok(Server { hub, end, thread: Some(thread) })
    }
}

/// Takes connections.
struct Accept {
    hub: Arc<Hub>,
    formulas: Arc<Catalog>,
    end: Arc<Notify>,
    tls: Option<Tls>,
}

impl Accept {
    async fn run(self, socket: TcpListener) -> io::Result<()> {
        let socket = tokio::net::TcpListener::from_std(socket)?;
        let places = Arc::new(Places::default());
        loop {
            let accepted = tokio::select! {
                accepted = socket.accept() => accepted,
                () = self.end.notified() => break,
            };
            let Ok((stream, peer)) = accepted else {
                // Too many open files, most likely: others have to end first.
                if let Some(owner) = places.shed() {
                    self.hub.refusals.tell(&owner.to_string(), CROWD);
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            let (place, gone) = places.take(peer.ip());
            if let Some(owner) = gone {
                self.hub.refusals.tell(&owner.to_string(), CROWD);
            }
            let place = Arc::new(place);
            let _ = stream.set_nodelay(true);
            let door = HttpHandler {
                hub: Arc::clone(&self.hub),
                formulas: Arc::clone(&self.formulas),
                peer,
                local: stream.local_addr().ok(),
                place: Arc::clone(&place),
            };
            tokio::spawn(attend(stream, door, self.tls.clone(), place));
        }
        self.hub.close("the server ended");
        tokio::time::sleep(FAREWELL).await;
        Ok(())
    }
}

/// Serves a connection until it ends or its place is wanted.
async fn attend(stream: TcpStream, door: HttpHandler, tls: Option<Tls>, place: Arc<ConnectionSlot>) {
    let served = async {
        match tls {
            None => converse(patient(stream), door).await,
            Some(tls) => encrypted(stream, door, &tls).await,
        }
    };
    tokio::select! {
        () = served => {}
        () = place.wanted() => {}
    }
}

/// Ends where nobody takes what is sent.
fn patient(stream: TcpStream) -> Pin<Box<TimeoutStream<TcpStream>>> {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(UNREAD));
    Box::pin(stream)
}

async fn encrypted(mut stream: TcpStream, door: HttpHandler, tls: &Tls) {
    let greeted = timeout(PATIENCE, async {
        let mut first = [HANDSHAKE];
        stream.peek(&mut first).await?;
        if first[0] != HANDSHAKE {
            let _ = stream.write_all(PLAIN).await;
            return Err(io::Error::other("the request is not encrypted; the page is at https://"));
        }
        tls.0.accept(patient(stream)).await
    });
    match greeted.await {
        Ok(Ok(stream)) => converse(stream, door).await,
        // Browsers open connections that they may need, and close them.
        Ok(Err(error)) if error.kind() != io::ErrorKind::UnexpectedEof => {
            door.hub.refusals.tell(&door.peer.to_string(), &error.to_string());
        }
        Ok(Err(_)) | Err(_) => {}
    }
}

async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, door: HttpHandler) {
    let (hub, peer) = (Arc::clone(&door.hub), door.peer);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(HEAD_BYTES);
    let service = service_fn(move |request| door.clone().answer(request));
    let served = http.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
    if let Err(error) = served
        && error.is_parse()
    {
        hub.refusals.tell(&peer.to_string(), &error.to_string());
    }
}

/// A running server.
pub struct Server {
    hub: Arc<Hub>,
    end: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// What all clients share.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// Adds live samples of this header: rows come out of the ring until it is closed.
    pub fn follow(
        &self,
        header: &Header,
        formulas: &Catalog,
        ring: Arc<Ring>,
        cpus: CpuSet,
    ) -> io::Result<JoinHandle<()>> {
        let layout = SeriesLayout::new(header, formulas);
        let history = Arc::new(History::new(layout.series(), self.hub.budget));
        let name = if header.host.is_empty() { "live" } else { &header.host };
        let info = layout.info(SourceKind::Live, name, header);
        let source = self
            .hub
            .add(info, layout.names().to_vec(), Arc::clone(&history) as _)
            .map_err(io::Error::other)?;
        let columns = header.series.len();
        let rates = Rates::new(&header.series);
        Ingest { ring, history, hub: Arc::clone(&self.hub), layout, rates, source, columns }.start(cpus)
    }

    /// Tells everybody something.
    pub fn notice(&self, text: &str) {
        self.hub.tell(&FromServer::Notice { text: text.to_owned() });
    }
}

impl Drop for Server {
    /// Says good-bye to the clients and ends.
    fn drop(&mut self) {
        self.end.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
