//! TLS with the user's certificate.

use numakit_sys::file::open_to_read;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;
use tokio_rustls::TlsAcceptor;

/// Why the certificate cannot be used.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{option} {}: {error}; give a file in PEM form that you may read", path.display())]
    Unreadable {
        /// The option that names it.
        option: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// It contains something else.
    #[error("{option} {} contains no {what} in PEM form, which begins with '-----BEGIN {begin}-----'", path.display())]
    Nothing {
        /// The option that names it.
        option: &'static str,
        /// The file.
        path: PathBuf,
        /// What it should contain.
        what: &'static str,
        /// Its PEM label.
        begin: &'static str,
    },
    /// They do not belong together.
    #[error("--tls-cert {} and --tls-key {} cannot be used together: {error}; give a certificate and its own key", cert.display(), key.display())]
    Unfit {
        /// The certificate.
        cert: PathBuf,
        /// The key.
        key: PathBuf,
        /// The library's error.
        error: rustls::Error,
    },
}

/// Accepts TLS connections.
#[derive(Clone)]
pub struct Tls(pub(crate) TlsAcceptor);

impl Tls {
    /// Reads a certificate chain and its key.
    pub fn read(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let of_cert = |error| refuse("--tls-cert", cert, "certificate", "CERTIFICATE", error);
        let of_key = |error| refuse("--tls-key", key, "private key", "PRIVATE KEY", error);
        let chain: Vec<_> = read_pem(cert)
            .and_then(|text| CertificateDer::pem_slice_iter(&text).collect())
            .and_then(|all: Vec<_>| if all.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(all) })
            .map_err(of_cert)?;
        let secret = read_pem(key).and_then(|text| PrivateKeyDer::from_pem_slice(&text)).map_err(of_key)?;
        let mismatch = |error| TlsError::Unfit { cert: cert.to_owned(), key: key.to_owned(), error };
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(mismatch)?
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(mismatch)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }
}

/// The content of a file; what is not a regular file is an error, so that this never waits.
fn read_pem(path: &Path) -> Result<Vec<u8>, pem::Error> {
    let mut text = Vec::new();
    open_to_read(path).and_then(|mut file| file.read_to_end(&mut text)).map_err(pem::Error::Io)?;
    Ok(text)
}

fn refuse(
    option: &'static str,
    path: &Path,
    what: &'static str,
    begin: &'static str,
    error: pem::Error,
) -> TlsError {
    let path = path.to_owned();
    match error {
        pem::Error::Io(error) => TlsError::Unreadable { option, path, error },
        _ => TlsError::Nothing { option, path, what, begin },
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}
