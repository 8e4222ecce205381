//! The addresses of the page.

use std::fmt::Write;
use std::net::SocketAddr;

/// Addresses of the page. The tokens are after the `#`, which browsers do not send.
#[derive(Debug, Clone)]
pub struct Urls {
    /// Where the server listens.
    pub listen: SocketAddr,
    /// For controllers.
    pub controller: String,
    /// For viewers.
    pub viewer: String,
    /// Of the guide, which everybody may read.
    pub guide: String,
    /// The same at each trusted host name.
    pub(crate) trusted: Vec<TrustedUrls>,
}

/// Addresses of the page at a trusted host name.
#[derive(Debug, Clone)]
pub(crate) struct TrustedUrls {
    pub host: String,
    pub controller: String,
    pub viewer: String,
}

impl Urls {
    /// The addresses as text, and how to reach a loopback address of the machine `host`.
    pub fn text(&self, host: &str) -> String {
        let mut text = format!("control  {}\nview     {}\n", self.controller, self.viewer);
        for TrustedUrls { host, controller, viewer } in &self.trusted {
            // Writing to a string cannot fail.
            let _ = write!(text, "via {host}:\n  control  {controller}\n  view     {viewer}\n");
        }
        text.push_str(&from_elsewhere(self.listen, host));
        text
    }
}

/// How another host reaches a loopback address of the machine `host`, in a line.
pub fn from_elsewhere(address: SocketAddr, host: &str) -> String {
    let port = address.port();
    match address.ip().is_loopback() {
        true => {
            format!(
                "from another host: run 'ssh -L {port}:{address} {host}' there and open the same address\n"
            )
        }
        false => String::new(),
    }
}
