//! The listener, and the server's thread.

use crate::accept::accept;
use crate::access::AccessKeys;
use crate::examiner::Examiner;
use crate::http::HttpHandler;
use crate::hub::{ControlSender, Hub};
use crate::ingest::Ingest;
use crate::layout::SeriesLayout;
use crate::listen_options::ListenOptions;
use crate::processes::{ProcessSurveyor, ProcessWatch};
use crate::source::ShownSource;
use crate::tls::Tls;
use crate::urls::{TrustedUrls, Urls};
use crate::wire::{FromServer, Role, SourceKind};
use numakit_formulas::Catalog;
use numakit_history::History;
use numakit_model::CpuSet;
use numakit_recording::{Header, Rates, Ring};
use numakit_sys::sched;
use numakit_sys::stdio::note;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::Notify;

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
pub(crate) fn socket(address: &str) -> Result<TcpListener, ServerError> {
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
        let (socket, tls, shared) = (self.socket, self.tls, Arc::clone(&hub));
        let ending = Arc::clone(&end);
        let thread = std::thread::Builder::new().name("server".into()).spawn(move || {
            if !cpus.is_empty() {
                // Without this it is only slower: farther from its memory.
                let _ = sched::set_affinity(&cpus);
            }
            let served = Arc::clone(&shared);
            let handler = move |peer, local, slot| HttpHandler {
                hub: Arc::clone(&served),
                formulas: Arc::clone(&formulas),
                peer,
                local,
                slot,
            };
            let result = runtime.block_on(async {
                accept(socket, tls, &shared.refusal_log, &ending, handler).await?;
                shared.close("the server ended");
                tokio::time::sleep(FAREWELL).await;
                Ok::<_, io::Error>(())
            });
            runtime.shutdown_timeout(FAREWELL);
            if let Err(error) = result {
                note(format_args!("the server failed: {error}"));
            }
        })?;
        Ok(Server { hub, end, thread: Some(thread) })
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
