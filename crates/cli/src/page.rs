//! The options of the verbs that serve the web page.

use anyhow::Context;
use clap::Args;
use numakit_server::key_file::Keys;
use numakit_server::listen_options::{self, BasePath};
use numakit_server::tls::Tls;
use numakit_server::{BrowserFile, Hub, ListenOptions, Listener, Urls, page};
use numakit_sys::poll;
use numakit_sys::proc::machine;
use numakit_sys::signal::{self, Signals};
use numakit_sys::stdio::{OutputError, note, print};
use std::ops::RangeInclusive;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Options of the verbs that serve the web page.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Address to listen on; the message at the start shows how to reach it from other hosts [default: 127.0.0.1:7077, or another
    /// port if that is in use]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    /// Also accept requests for this host name, such as that of a reverse proxy; may be repeated
    #[arg(long, value_name = "NAME", value_parser = trusted_host)]
    pub trusted_host: Vec<String>,
    /// Path prefix of the page behind a reverse proxy, which must not strip it
    #[arg(long, value_name = "PATH", default_value = "/", value_parser = base_path)]
    pub base_path: BasePath,
    /// Use TLS with this certificate: a PEM file, with the intermediate certificates after it
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of the certificate: a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Keep the access keys in this file, so that addresses and open pages work after a restart; created if it
    /// does not exist
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Do not open the page in a browser
    #[arg(long)]
    pub no_open: bool,
    /// Memory for the samples of each source
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = history)]
    pub history: usize,
}

/// How often it is checked whether somebody looks at the page.
const LOOK: Duration = Duration::from_millis(250);
/// A page that is reloaded is back sooner.
const RELOAD: Duration = Duration::from_secs(3);

/// Serves the page after its observation has ended, until the last viewer has left or a signal arrives. Without a viewer it ends
/// at once, so that no script waits.
pub fn stay(hub: &Hub, why: &str) -> anyhow::Result<()> {
    if hub.clients() == 0 {
        return Ok(());
    }
    let signals = Signals::collect(&[signal::INTERRUPT, signal::TERMINATE, signal::HANGUP])
        .context("cannot collect signals")?;
    note(format_args!("{why}; the page stays until its last viewer leaves or Ctrl-C"));
    hub.set_ended(format!(
        "Nothing is sampled any more: {why}. The page stays until its last viewer leaves."
    ));
    let mut seen = Instant::now();
    while signals.next().is_none() && seen.elapsed() < RELOAD {
        poll::readable(&[signals.as_fd()], Some(LOOK)).context("cannot wait")?;
        if hub.clients() > 0 {
            seen = Instant::now();
        }
    }
    Ok(())
}

impl ServeArgs {
    /// Opens the listening socket.
    pub fn listener(&self, host: &str) -> anyhow::Result<Listener> {
        let files = self.tls_cert.as_ref().zip(self.tls_key.as_ref());
        let tls = files.map(|(cert, key)| Tls::read(cert, key)).transpose()?;
        let keys = self.key_file.as_deref().map(Keys::open).transpose()?;
        let options =
            ListenOptions { trusted: self.trusted_host.clone(), base: self.base_path.clone(), tls, keys };
        let Some(address) = &self.listen else {
            let listener = Listener::bind_free(host, options)?;
            let address = listener.urls().listen;
            if address.to_string() != Listener::ADDRESS {
                note(format_args!(
                    "another program listens at {}; the page is at {address}",
                    Listener::ADDRESS
                ));
            }
            return Ok(listener);
        };
        Ok(Listener::bind(address, host, options)?)
    }

    /// Prints the addresses of the page, and opens it in a browser unless the user declined.
    pub fn announce(&self, urls: &Urls, host: &str) -> Result<Option<BrowserFile>, OutputError> {
        let address = urls.listen;
        // It is not an error if the reader of a pipe has read these lines and left.
        print(urls.text(host))
            .or_else(|error| if error.is_closed_by_reader() { Ok(()) } else { Err(error) })?;
        if !address.ip().is_loopback() && self.tls_cert.is_none() {
            note(format_args!(
                "other hosts can reach {address}, and the connection is not encrypted; --listen 127.0.0.1:{port} \
                 with an SSH tunnel, or --tls-cert, is safer",
                port = address.port()
            ));
        }
        if let Err(missing) = page::files() {
            note(missing);
        }
        Ok(if self.no_open { None } else { BrowserFile::open(&urls.controller) })
    }
}

fn trusted_host(text: &str) -> Result<String, String> {
    listen_options::host(text).map_err(|error| error.to_string())
}

fn base_path(text: &str) -> Result<BasePath, String> {
    BasePath::parse(text).map_err(|error| error.to_string())
}

/// Parses a size such as `256MiB`.
fn history(text: &str) -> Result<usize, String> {
    size(text, "16MiB", 16 << 20..=1 << 40)
}

/// Parses a size within bounds; `min` is the lower one as text.
pub fn size(text: &str, min: &str, bounds: RangeInclusive<usize>) -> Result<usize, String> {
    let error = || format!("'{text}' is not a valid size; use a form such as 64MiB or 1GiB, at least {min}");
    let (number, shift) = [("KiB", 10), ("MiB", 20), ("GiB", 30)]
        .iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)))
        .ok_or_else(error)?;
    let number: usize = number.trim().parse().map_err(|_| error())?;
    number.checked_mul(1 << shift).filter(|bytes| bounds.contains(bytes)).ok_or_else(error)
}

/// The name of this machine.
pub fn host_name(root: &numakit_sys::SysRoot) -> anyhow::Result<String> {
    machine::host_name(root).context("cannot read the host name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed() {
        assert_eq!(history("256MiB"), Ok(256 << 20));
        assert_eq!(history("1 GiB"), Ok(1 << 30));
        for bad in ["", "256", "1KiB", "x MiB", "-1MiB", "99999999999GiB", "256MB"] {
            assert!(history(bad).is_err(), "{bad}");
        }
    }
}
