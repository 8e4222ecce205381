//! The listener, and the server's thread.

use crate::access::AccessKeys;
use crate::connections::{ConnectionSlot, Connections};
use crate::examiner::Examiner;
use crate::http::{CLOSED_FOR_NEWER, HttpHandler};
use crate::hub::{ControlSender, Hub};
use crate::ingest::Ingest;
use crate::layout::SeriesLayout;
use crate::listen_options::ListenOptions;
use crate::processes::{ProcessSurveyor, ProcessWatch};
use crate::source::ShownSource;
use crate::tls::Tls;
use crate::urls::{TrustedUrls, Urls};
use crate::wire::{FromServer, Role, SourceKind};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use numakit_formulas::Catalog;
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

/// Maximum wait for the head of a request, and for a TLS handshake.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum size of the head of a request.
const HEAD_BYTES: usize = 32 * 1024;
/// Maximum wait for a client to receive.
const UNREAD: Duration = Duration::from_secs(120);
/// First byte of a TLS connection.
const HANDSHAKE: u8 = 22;
/// The answer to a connection without TLS.
const PLAIN: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n\
    this server uses TLS; open the page with https:// instead of http://\n";
/// Time for clients to receive the last message.
const FAREWELL: Duration = Duration::from_millis(300);

/// Why a server cannot start.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The address cannot be parsed.
    #[error("--listen '{0}' is not an address; write it as 127.0.0.1:7077 or [::1]:7077")]
    Address(String),
    /// Another program listens there.
    #[error("{0} is in use by another program; give another port with --listen, as in --listen {1}:{2}")]
    InUse(SocketAddr, std::net::IpAddr, u16),
    /// The system refuses to listen there.
    #[error("cannot listen on {0}: {1}; give another address with --listen")]
    Listen(SocketAddr, io::Error),
    /// Another system error.
    #[error("cannot start the server: {0}")]
    System(#[from] io::Error),
}

/// A bound socket whose server has not started yet.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    access: AccessKeys,
    tls: Option<Tls>,
}

/// Listens at an address as a user writes it.
fn socket(address: &str) -> Result<TcpListener, ServerError> {
    let requested: SocketAddr = match address.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}").parse(),
        None => address.parse(),
    }
    .map_err(|_| ServerError::Address(address.to_owned()))?;
    TcpListener::bind(requested).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => {
            ServerError::InUse(requested, requested.ip(), requested.port().checked_add(1).unwrap_or(7077))
        }
        _ => ServerError::Listen(requested, error),
    })
}

impl Listener {
    /// Where the page is served unless the user says where.
    pub const ADDRESS: &str = "127.0.0.1:7077";

    /// Binds an address. `host` is the name of this machine.
    pub fn bind(address: &str, host: &str, options: ListenOptions) -> Result<Self, ServerError> {
        Self::new(socket(address)?, host, options)
    }

    /// Binds [`Self::ADDRESS`], or any free port of the same host if another program listens there.
    pub fn bind_free(host: &str, options: ListenOptions) -> Result<Self, ServerError> {
        let socket = match socket(Self::ADDRESS) {
            Err(ServerError::InUse(taken, ..)) => socket(&SocketAddr::new(taken.ip(), 0).to_string()),
            other => other,
        };
        Self::new(socket?, host, options)
    }

    fn new(socket: TcpListener, host: &str, options: ListenOptions) -> Result<Self, ServerError> {
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        Ok(Self { socket, address, access: AccessKeys::new(address, host, &options)?, tls: options.tls })
    }

    /// The addresses of its page.
    pub fn urls(&self) -> Urls {
        let mut shown = self.address;
        if shown.ip().is_unspecified() {
            shown.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let url = |role| self.url(scheme, &shown.to_string(), role);
        Urls {
            listen: self.address,
            controller: url(Role::Controller),
            viewer: url(Role::Viewer),
            guide: format!("{scheme}://{shown}{}guide/", self.access.base.page()),
            trusted: self.access.trusted.iter().map(|host| self.trusted_urls(host)).collect(),
        }
    }

    fn url(&self, scheme: &str, authority: &str, role: Role) -> String {
        format!("{scheme}://{authority}{}#{}", self.access.base.page(), self.access.token(role))
    }

    /// A proxy is at the default port. With TLS, the name is that of this server, at its own port.
    fn trusted_urls(&self, host: &str) -> TrustedUrls {
        let name = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let authority = if self.tls.is_some() { format!("{name}:{}", self.address.port()) } else { name };
        let url = |role| self.url("https", &authority, role);
        TrustedUrls { host: host.to_owned(), controller: url(Role::Controller), viewer: url(Role::Viewer) }
    }

    /// Starts serving, in a thread on these CPUs (empty: any). Each source of its hub may use
    /// `budget` bytes.
    pub fn start(
        self,
        control: Option<ControlSender>,
        formulas: Arc<Catalog>,
        budget: usize,
        cpus: CpuSet,
    ) -> Result<Server, ServerError> {
        let hub = Arc::new(Hub::new(self.access, budget, control));
        let end = Arc::new(Notify::new());
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(4).build()?;
        let accept = Accept { hub: Arc::clone(&hub), formulas, end: Arc::clone(&end), tls: self.tls };
        let socket = self.socket;
        let thread = std::thread::Builder::new().name("server".into()).spawn(move || {
            if !cpus.is_empty() {
                // Without this it is only slower: farther from its memory.
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

/// Accepts connections.
struct Accept {
    hub: Arc<Hub>,
    formulas: Arc<Catalog>,
    end: Arc<Notify>,
    tls: Option<Tls>,
}

impl Accept {
    async fn run(self, socket: TcpListener) -> io::Result<()> {
        let socket = tokio::net::TcpListener::from_std(socket)?;
        let connections = Arc::new(Connections::default());
        loop {
            let accepted = tokio::select! {
                accepted = socket.accept() => accepted,
                () = self.end.notified() => break,
            };
            let Ok((stream, peer)) = accepted else {
                // Most likely there are too many open files: another connection has to end first.
                if let Some(owner) = connections.shed() {
                    self.hub.refusal_log.log(&owner.to_string(), CLOSED_FOR_NEWER);
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            let (slot, closed) = connections.take(peer.ip());
            if let Some(owner) = closed {
                self.hub.refusal_log.log(&owner.to_string(), CLOSED_FOR_NEWER);
            }
            let slot = Arc::new(slot);
            let _ = stream.set_nodelay(true);
            let handler = HttpHandler {
                hub: Arc::clone(&self.hub),
                formulas: Arc::clone(&self.formulas),
                peer,
                local: stream.local_addr().ok(),
                slot: Arc::clone(&slot),
            };
            tokio::spawn(serve(stream, handler, self.tls.clone(), slot));
        }
        self.hub.close("the server ended");
        tokio::time::sleep(FAREWELL).await;
        Ok(())
    }
}

/// Serves a connection until it ends or has to be closed.
async fn serve(stream: TcpStream, handler: HttpHandler, tls: Option<Tls>, slot: Arc<ConnectionSlot>) {
    let served = async {
        match tls {
            None => serve_http(with_timeout(stream), handler).await,
            Some(tls) => serve_tls(stream, handler, &tls).await,
        }
    };
    tokio::select! {
        () = served => {}
        () = slot.closed() => {}
    }
}

/// Fails if the client receives nothing for [`UNREAD`].
fn with_timeout(stream: TcpStream) -> Pin<Box<TimeoutStream<TcpStream>>> {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(UNREAD));
    Box::pin(stream)
}

async fn serve_tls(mut stream: TcpStream, handler: HttpHandler, tls: &Tls) {
    let accepted = timeout(PATIENCE, async {
        let mut first = [HANDSHAKE];
        stream.peek(&mut first).await?;
        if first[0] != HANDSHAKE {
            let _ = stream.write_all(PLAIN).await;
            return Err(io::Error::other("the request is not encrypted; the page is at https://"));
        }
        tls.0.accept(with_timeout(stream)).await
    });
    match accepted.await {
        Ok(Ok(stream)) => serve_http(stream, handler).await,
        // Browsers open spare connections and close them unused.
        Ok(Err(error)) if error.kind() != io::ErrorKind::UnexpectedEof => {
            handler.hub.refusal_log.log(&handler.peer.to_string(), &error.to_string());
        }
        Ok(Err(_)) | Err(_) => {}
    }
}

async fn serve_http(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, handler: HttpHandler) {
    let (hub, peer) = (Arc::clone(&handler.hub), handler.peer);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(HEAD_BYTES);
    let service = service_fn(move |request| handler.clone().answer(request));
    let served = http.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
    if let Err(error) = served
        && error.is_parse()
    {
        hub.refusal_log.log(&peer.to_string(), &error.to_string());
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

    /// Adds a source of live samples with this header, from the ring buffer until it is closed.
    pub fn follow(
        &self,
        header: &Header,
        formulas: &Arc<Catalog>,
        ring: Arc<Ring>,
        cpus: CpuSet,
    ) -> io::Result<JoinHandle<()>> {
        let layout = SeriesLayout::new(header, formulas);
        let history = Arc::new(History::new(layout.series(), self.hub.budget));
        let name = if header.host.is_empty() { "live" } else { &header.host };
        let info = layout.info(SourceKind::Live, name, header);
        let examiner = Examiner::new(header, &layout, formulas);
        let shown = ShownSource::new(info, layout.names().to_vec(), Arc::clone(&history) as _, examiner);
        let source = self.hub.add(shown).map_err(io::Error::other)?;
        let columns = header.series.len();
        let rates = Rates::new(&header.series);
        Ingest { ring, history, hub: Arc::clone(&self.hub), layout, rates, source, columns }.start(cpus)
    }

    /// Shows the processes of the machine to clients that look at them, measured in a thread on these CPUs
    /// (empty: any).
    pub fn show_processes(&self, surveyor: ProcessSurveyor, cpus: CpuSet) {
        self.hub.show_processes(ProcessWatch::new(surveyor, cpus));
    }

    /// Sends a message to all users.
    pub fn notice(&self, text: &str) {
        self.hub.broadcast(&FromServer::Notice { text: text.to_owned() });
    }
}

impl Drop for Server {
    /// Sends the last message to all clients and ends.
    fn drop(&mut self) {
        self.end.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
