//! Accepts connections and serves HTTP on them, with limits on their number, time and bytes.

use crate::connections::{ConnectionSlot, Connections};
use crate::http::{CLOSED_FOR_NEWER, HttpResponse};
use crate::refusal_log::RefusalLog;
use crate::tls::Tls;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
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
    this server uses TLS; use https:// instead of http://\n";

/// Answers the requests of one connection.
pub(crate) trait ConnectionHandler: Clone + Send + Sync + 'static {
    /// Writes a line on a connection that was refused.
    fn refuse(&self, why: &str);

    /// Answers a request.
    fn answer(
        self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<HttpResponse, Infallible>> + Send;
}

/// Serves each connection with a handler of its own, until `end` is notified.
pub(crate) async fn accept<H: ConnectionHandler>(
    socket: TcpListener,
    tls: Option<Tls>,
    log: &RefusalLog,
    end: &Notify,
    handler: impl Fn(SocketAddr, Option<SocketAddr>, Arc<ConnectionSlot>) -> H,
) -> io::Result<()> {
    let socket = tokio::net::TcpListener::from_std(socket)?;
    let connections = Arc::new(Connections::default());
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            () = end.notified() => return Ok(()),
        };
        let Ok((stream, peer)) = accepted else {
            // Most likely there are too many open files: another connection has to end first.
            if let Some(owner) = connections.shed() {
                log.log(&owner.to_string(), CLOSED_FOR_NEWER);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let (slot, closed) = connections.take(peer.ip());
        if let Some(owner) = closed {
            log.log(&owner.to_string(), CLOSED_FOR_NEWER);
        }
        let slot = Arc::new(slot);
        let _ = stream.set_nodelay(true);
        let handler = handler(peer, stream.local_addr().ok(), Arc::clone(&slot));
        tokio::spawn(serve(stream, handler, tls.clone(), slot));
    }
}

/// Serves a connection until it ends or has to be closed.
async fn serve(
    stream: TcpStream,
    handler: impl ConnectionHandler,
    tls: Option<Tls>,
    slot: Arc<ConnectionSlot>,
) {
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

async fn serve_tls(mut stream: TcpStream, handler: impl ConnectionHandler, tls: &Tls) {
    let accepted = timeout(PATIENCE, async {
        let mut first = [HANDSHAKE];
        stream.peek(&mut first).await?;
        if first[0] != HANDSHAKE {
            let _ = stream.write_all(PLAIN).await;
            return Err(io::Error::other("the request is not encrypted; use https://"));
        }
        tls.0.accept(with_timeout(stream)).await
    });
    match accepted.await {
        Ok(Ok(stream)) => serve_http(stream, handler).await,
        // Browsers open spare connections and close them unused.
        Ok(Err(error)) if error.kind() != io::ErrorKind::UnexpectedEof => handler.refuse(&error.to_string()),
        Ok(Err(_)) | Err(_) => {}
    }
}

async fn serve_http(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    handler: impl ConnectionHandler,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(HEAD_BYTES);
    let answering = handler.clone();
    let service = service_fn(move |request| answering.clone().answer(request));
    let served = http.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
    if let Err(error) = served
        && error.is_parse()
    {
        handler.refuse(&error.to_string());
    }
}
