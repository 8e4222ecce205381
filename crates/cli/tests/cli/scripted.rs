//! An engine that does as a test says: it answers late, wrongly, in part or not at all.

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// What an engine was asked.
#[derive(Clone, Default)]
pub struct Asked {
    /// The first line and the headers.
    pub head: String,
    pub body: Vec<u8>,
}

/// Writes the answer to a request, which has this number; an error ends the connection.
type Script = dyn Fn(usize, &Asked, &mut dyn Write) -> io::Result<()> + Send + Sync;

/// An engine on a port of its own, until it is dropped.
pub struct Scripted {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A complete answer.
pub fn answer(to: &mut dyn Write, status: &str, body: &[u8]) -> io::Result<()> {
    write!(to, "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len())?;
    to.write_all(body)
}

/// The end of a connection.
pub fn cut() -> io::Result<()> {
    Err(io::ErrorKind::ConnectionAborted.into())
}

/// A file of `tests/tls`.
pub fn tls_file(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/tls", name].iter().collect()
}

impl Scripted {
    pub fn start(
        script: impl Fn(usize, &Asked, &mut dyn Write) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self::listen(None, script)
    }

    /// With TLS and this certificate of `tests/tls`.
    pub fn with_tls(
        certificate: &str,
        script: impl Fn(usize, &Asked, &mut dyn Write) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let chain = vec![CertificateDer::from_pem_file(tls_file(certificate)).unwrap()];
        let key = PrivateKeyDer::from_pem_file(tls_file("engine.key")).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap();
        Self::listen(
            Some(Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap())),
            script,
        )
    }

    fn listen(
        tls: Option<Arc<ServerConfig>>,
        script: impl Fn(usize, &Asked, &mut dyn Write) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, is_over): (Arc<Mutex<Vec<Asked>>>, Arc<AtomicBool>) = Default::default();
        let (log, end) = (Arc::clone(&asked), Arc::clone(&is_over));
        let script: Arc<Script> = Arc::new(script);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if end.load(Ordering::Relaxed) {
                    return;
                }
                let (tls, log, script) = (tls.clone(), Arc::clone(&log), Arc::clone(&script));
                let stream = stream.unwrap();
                // A client that leaves is no error.
                std::thread::spawn(move || match tls {
                    None => drop(serve(stream, &log, &*script)),
                    Some(tls) => {
                        let connection = ServerConnection::new(tls).unwrap();
                        drop(serve(StreamOwned::new(connection, stream), &log, &*script));
                    }
                });
            }
        });
        Self { address, asked, is_over, thread: Some(thread) }
    }

    /// All requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // It waits for a connection.
        let _ = TcpStream::connect(self.address);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn serve(stream: impl Read + Write, log: &Mutex<Vec<Asked>>, script: &Script) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut asked = Asked::default();
        if stream.fill_buf()?.first().is_some_and(|first| !first.is_ascii_uppercase()) {
            // It is no HTTP.
            return answer(stream.get_mut(), "400 Bad Request", b"");
        }
        while !asked.head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut asked.head)? == 0 {
                return Ok(());
            }
        }
        let length = asked.head.lines().find_map(|line| line.strip_prefix("content-length: "));
        asked.body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        stream.read_exact(&mut asked.body)?;
        let number = {
            let mut log = log.lock().unwrap();
            log.push(asked.clone());
            log.len() - 1
        };
        script(number, &asked, stream.get_mut())?;
        stream.get_mut().flush()?;
    }
}
