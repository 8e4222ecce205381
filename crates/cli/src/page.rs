//! The options of the verbs that serve the web page, and what they say at their start.

use anyhow::Context;
use clap::Args;
use numakit_server::front::{self, BasePath};
use numakit_server::tls::Tls;
use numakit_server::{Front, Listener, Urls, page};
use numakit_session::run_directory;
use numakit_sys::stdio::{OutputError, note, print};
use std::fmt::Write as _;
use std::io::Write;
use std::ops::RangeInclusive;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Options of the verbs that serve the web page.
#[derive(Debug, Args)]
pub struct Serve {
    /// Where the page is served; other hosts reach it by a tunnel, as the start says
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7077")]
    pub listen: String,
    /// A name that the page may also be asked for by, as that of a proxy in front; may be repeated
    #[arg(long, value_name = "NAME", value_parser = trusted_host)]
    pub trusted_host: Vec<String>,
    /// The path that a proxy has the page below; it must pass it on unchanged
    #[arg(long, value_name = "PATH", default_value = "/", value_parser = base_path)]
    pub base_path: BasePath,
    /// Encrypt with this certificate, a file in PEM form with those that vouch for it behind it
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of that certificate, a file in PEM form
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Do not open the page in a browser
    #[arg(long)]
    pub no_open: bool,
    /// Memory for what was sampled, of each source
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = history)]
    pub history: usize,
}

impl Serve {
    /// As the defaults are, at another address if given.
    pub fn at(listen: Option<String>) -> Self {
        let listen = listen.unwrap_or_else(|| "127.0.0.1:7077".into());
        Self {
            listen,
            trusted_host: Vec::new(),
            base_path: BasePath::default(),
            tls_cert: None,
            tls_key: None,
            no_open: false,
            history: 256 << 20,
        }
    }

    /// Listens as the options say.
    pub fn listener(&self, host: &str) -> anyhow::Result<Listener> {
        let files = self.tls_cert.as_ref().zip(self.tls_key.as_ref());
        let tls = files.map(|(cert, key)| Tls::read(cert, key)).transpose()?;
        let front = Front { trusted: self.trusted_host.clone(), base: self.base_path.clone(), tls };
        Ok(Listener::bind(&self.listen, host, front)?)
    }

    /// Says where the page is, and opens it where there is a screen.
    pub fn announce(&self, urls: &Urls, host: &str) -> Result<Option<Launcher>, OutputError> {
        let address = urls.listen;
        // Whoever reads us through a pipe waits for these lines; one who went away misses them.
        print(self.addresses(urls, host))
            .or_else(|error| if error.reader_left() { Ok(()) } else { Err(error) })?;
        if !address.ip().is_loopback() && self.tls_cert.is_none() {
            note(format_args!(
                "others can reach {address}, and what is sent is not encrypted; --listen 127.0.0.1:{port} and a \
                 tunnel are safer, or --tls-cert",
                port = address.port()
            ));
        }
        if let Err(missing) = page::files() {
            note(missing);
        }
        Ok(if self.no_open { None } else { Launcher::open(&urls.controller) })
    }

    fn addresses(&self, urls: &Urls, host: &str) -> String {
        let (address, port) = (urls.listen, urls.listen.port());
        let mut text = format!("control  {}\nview     {}\n", urls.controller, urls.viewer);
        for name in &self.trusted_host {
            // A proxy is at the usual port; where we encrypt, this server itself has the name.
            let at = if name.contains(':') { format!("[{name}]") } else { name.clone() };
            let at = if self.tls_cert.is_some() { format!("{at}:{port}") } else { at };
            let page = |url: &str| {
                format!("https://{at}{}#{}", self.base_path, url.split_once('#').unwrap_or_default().1)
            };
            let (control, view) = (page(&urls.controller), page(&urls.viewer));
            let _ = write!(text, "through {name}:\n  control  {control}\n  view     {view}\n");
        }
        if address.ip().is_loopback() {
            let _ = writeln!(
                text,
                "from another computer: ssh -L {port}:{address} {host}, then open the same address there"
            );
        }
        text
    }
}

/// The file that led a browser to the page. A command line would show the token to all users.
#[derive(Debug)]
pub struct Launcher(PathBuf);

impl Launcher {
    fn open(url: &str) -> Option<Self> {
        let screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
        if !screen {
            return None;
        }
        let path = run_directory::launcher(&run_directory::open().ok()?, std::process::id());
        let mut file =
            std::fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&path).ok()?;
        let launcher = Self(path);
        let text = format!("<!doctype html><meta http-equiv=\"refresh\" content=\"0;url={url}\">\n");
        file.write_all(text.as_bytes()).ok()?;
        let mut open = Command::new("xdg-open");
        open.arg(&launcher.0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Without it, people open the address themselves.
        open.spawn().ok().map(|_| launcher)
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn trusted_host(text: &str) -> Result<String, String> {
    front::host(text).map_err(|error| error.to_string())
}

fn base_path(text: &str) -> Result<BasePath, String> {
    BasePath::parse(text).map_err(|error| error.to_string())
}

/// `256MiB`.
fn history(text: &str) -> Result<usize, String> {
    size(text, "16MiB", 16 << 20..=1 << 40)
}

/// A size within bounds, the lower of which is also given as text.
pub fn size(text: &str, least: &str, bounds: RangeInclusive<usize>) -> Result<usize, String> {
    let wrong = || format!("'{text}' is no size; write it as 64MiB or 1GiB, from {least} on");
    let (number, shift) = [("KiB", 10), ("MiB", 20), ("GiB", 30)]
        .iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)))
        .ok_or_else(wrong)?;
    let number: usize = number.trim().parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).filter(|bytes| bounds.contains(bytes)).ok_or_else(wrong)
}

/// The name of this machine, for its addresses.
pub fn host_name(root: &numakit_sys::SysRoot) -> anyhow::Result<String> {
    let name = root.text("/proc/sys/kernel/hostname").context("the name of the host cannot be read")?;
    Ok(name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(history("256MiB"), Ok(256 << 20));
        assert_eq!(history("1 GiB"), Ok(1 << 30));
        for bad in ["", "256", "1KiB", "x MiB", "-1MiB", "99999999999GiB", "256MB"] {
            assert!(history(bad).is_err(), "{bad}");
        }
    }
}
