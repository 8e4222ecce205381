//! Who may come in: tokens, cookies, and the names that the server answers to.

use crate::front::{BasePath, Front};
use crate::wire::Role;
use std::fmt::Write;
use std::hint::black_box;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// The secrets of a running server and the names that it goes by. All are new with every start.
#[derive(Debug)]
pub struct AccessKeys {
    /// Part of the cookie's name, so that servers on one host do not disturb each other.
    pub instance: String,
    port: u16,
    names: Vec<String>,
    /// Hosts that a proxy forwards for.
    trusted: Vec<String>,
    /// Where the page is.
    pub base: BasePath,
    encrypted: bool,
    controller: Secrets,
    viewer: Secrets,
}

/// What is in the address of the page, and what it is exchanged for.
#[derive(Debug)]
struct Secrets {
    token: String,
    cookie: String,
}

impl Secrets {
    fn new() -> io::Result<Self> {
        Ok(Self { token: random(16)?, cookie: random(16)? })
    }
}

fn random(bytes: usize) -> io::Result<String> {
    let mut buffer = vec![0; bytes];
    getrandom::fill(&mut buffer).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(buffer.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// Compares in a time that does not tell where the texts differ.
fn same(a: &str, b: &str) -> bool {
    let differ = a.bytes().zip(b.bytes()).fold(0, |all, (a, b)| black_box(all | (a ^ b)));
    a.len() == b.len() && differ == 0
}

impl AccessKeys {
    /// New secrets for a server that listens there, on a machine of that name, and is reached so.
    pub fn new(listen: SocketAddr, host: &str, front: &Front) -> io::Result<Self> {
        let mut names = vec![host.to_ascii_lowercase()];
        if !listen.ip().is_unspecified() {
            names.push(listen.ip().to_string());
        }
        names.retain(|name| !name.is_empty() && !listen.ip().is_loopback());
        let (controller, viewer) = (Secrets::new()?, Secrets::new()?);
        Ok(Self {
            instance: random(4)?,
            port: listen.port(),
            names,
            trusted: front.trusted.clone(),
            base: front.base.clone(),
            encrypted: front.tls.is_some(),
            controller,
            viewer,
        })
    }

    /// The token for that role.
    pub fn token(&self, role: Role) -> &str {
        match role {
            Role::Controller => &self.controller.token,
            Role::Viewer => &self.viewer.token,
        }
    }

    fn roles(&self) -> [(Role, &Secrets); 2] {
        [(Role::Controller, &self.controller), (Role::Viewer, &self.viewer)]
    }

    /// What a token allows.
    pub fn role_of_token(&self, token: &str) -> Option<Role> {
        self.roles().into_iter().filter(|(_, s)| same(&s.token, token)).map(|(role, _)| role).next()
    }

    /// What the cookies of a request allow.
    pub fn role_of_cookies(&self, header: &str) -> Option<Role> {
        let name = self.cookie_name();
        let mut pairs = header.split(';').filter_map(|pair| pair.trim().split_once('='));
        let value = pairs.find(|(key, _)| *key == name).map(|(_, value)| value)?;
        self.roles().into_iter().filter(|(_, s)| same(&s.cookie, value)).map(|(role, _)| role).next()
    }

    fn cookie_name(&self) -> String {
        format!("numa-{}-{}", self.port, self.instance)
    }

    /// The cookie for a role, as `Set-Cookie` has it, for a page of this origin. The origin is
    /// what the browser says, so it tells also of a proxy whether the way to it is encrypted.
    pub fn cookie(&self, role: Role, origin: &str) -> String {
        let value = match role {
            Role::Controller => &self.controller.cookie,
            Role::Viewer => &self.viewer.cookie,
        };
        let secure = if self.encrypted || origin.starts_with("https://") { "; Secure" } else { "" };
        let path = self.base.page();
        format!("{}={value}; HttpOnly; SameSite=Strict; Path={path}{secure}", self.cookie_name())
    }

    /// Whether a `Host` names this server: loopback names on any port, so that tunnels work; of
    /// a server that others reach, also its own names and the address `local` that they came to.
    /// A name that merely resolves to it does not.
    pub fn knows_host(&self, host: &str, local: Option<IpAddr>) -> bool {
        let Some(name) = host_name(host) else { return false };
        let reached = local.filter(|ip| !ip.is_loopback()).map(|ip| ip.to_canonical().to_string());
        is_loopback(&name)
            || self.names.contains(&name)
            || self.trusted.contains(&name)
            || reached.is_some_and(|ip| ip == name)
    }

    /// The address that a request comes from: of one that a proxy forwards, as its last word on
    /// it says. What others wrote before is no proof.
    pub fn origin_of(&self, host: &str, forwarded: Option<&str>, peer: IpAddr) -> IpAddr {
        let proxied = host_name(host).is_some_and(|name| self.trusted.contains(&name));
        let last = forwarded.filter(|_| proxied).and_then(|all| all.rsplit(',').next());
        last.and_then(|address| address.trim().parse().ok()).unwrap_or(peer)
    }
}

/// Whether a page of this origin is one of ours: the same name and port as the request went to.
pub fn same_origin(origin: &str, host: &str) -> bool {
    let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    rest.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

/// The name in `name:port`, in small letters, without brackets.
fn host_name(host: &str) -> Option<String> {
    if let Some(rest) = host.strip_prefix('[') {
        let (name, port) = rest.split_once(']')?;
        return (port.is_empty() || is_port(port.strip_prefix(':')?)).then(|| name.to_ascii_lowercase());
    }
    match host.split_once(':') {
        None => Some(host.to_ascii_lowercase()),
        Some((name, port)) => is_port(port).then(|| name.to_ascii_lowercase()),
    }
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_loopback(name: &str) -> bool {
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(listen: &str) -> AccessKeys {
        AccessKeys::new(listen.parse().unwrap(), "Big", &Front::default()).unwrap()
    }

    #[test]
    fn tokens_and_cookies_give_their_role() {
        let access = access("127.0.0.1:7077");
        for role in [Role::Viewer, Role::Controller] {
            assert_eq!(access.token(role).len(), 32);
            assert_eq!(access.role_of_token(access.token(role)), Some(role));
            let cookie = access.cookie(role, "http://localhost:7077");
            let pair = cookie.split(';').next().unwrap();
            assert_eq!(access.role_of_cookies(&format!("a=b; {pair}; c=d")), Some(role));
            assert_eq!(access.role_of_cookies(&pair[..pair.len() - 1]), None);
            assert!(!cookie.contains(access.token(role)), "{cookie}");
            assert!(cookie.starts_with(&format!("numa-7077-{}=", access.instance)), "{cookie}");
            assert!(cookie.ends_with("; Path=/"), "{cookie}");
            assert!(access.cookie(role, "https://localhost").ends_with("; Path=/; Secure"));
        }
        for bad in ["", "x", &"0".repeat(32)] {
            assert_eq!((access.role_of_token(bad), access.role_of_cookies(bad)), (None, None));
        }
    }

    #[test]
    fn every_start_has_new_secrets() {
        let [one, two] = [access("127.0.0.1:1"), access("127.0.0.1:1")];
        assert_ne!(one.token(Role::Viewer), two.token(Role::Viewer));
        assert_ne!(one.instance, two.instance);
    }

    #[test]
    fn loopback_names_are_known_on_any_port_and_no_others() {
        let access = access("127.0.0.1:7077");
        for good in ["localhost", "localhost:9", "LocalHost:7077", "127.0.0.1:80", "127.9.9.9", "[::1]:7077"]
        {
            assert!(access.knows_host(good, None), "{good}");
        }
        for bad in [
            "",
            "evil.example",
            "localhost.evil.example:7077",
            "127.0.0.1.evil.example",
            "10.0.0.1:7077",
            "localhost:",
            "localhost:x",
            "localhost:1:2",
            "[::1",
            "[::1]x",
            "big",
            "user@localhost",
            "localhost:+1",
        ] {
            assert!(!access.knows_host(bad, None), "{bad}");
        }
    }

    #[test]
    fn a_server_for_others_knows_its_own_names() {
        let open = access("0.0.0.0:7077");
        let local = "10.0.0.1".parse().ok();
        assert!(open.knows_host("big:7077", local) && open.knows_host("10.0.0.1:7077", local));
        assert!(!open.knows_host("10.0.0.2:7077", local) && !open.knows_host("evil.example", local));
        assert!(!open.knows_host("0.0.0.0:7077", local));
        assert!(access("10.0.0.1:7077").knows_host("10.0.0.1", None));
    }

    #[test]
    fn a_proxy_gives_names_and_addresses() {
        let front = Front {
            trusted: vec!["numa.example.org".into()],
            base: BasePath::parse("/numa").unwrap(),
            tls: None,
        };
        let access = AccessKeys::new("127.0.0.1:7077".parse().unwrap(), "big", &front).unwrap();
        for good in ["numa.example.org", "Numa.example.org:8443", "localhost"] {
            assert!(access.knows_host(good, None), "{good}");
        }
        assert!(!access.knows_host("example.org", None) && !access.knows_host("x.numa.example.org", None));
        assert!(access.cookie(Role::Viewer, "https://numa.example.org").ends_with("; Path=/numa/; Secure"));
        let peer: IpAddr = "127.0.0.1".parse().unwrap();
        let origin = |host, forwarded| access.origin_of(host, forwarded, peer).to_string();
        assert_eq!(origin("numa.example.org", Some("6.6.6.6, 10.0.0.7")), "10.0.0.7");
        assert_eq!(origin("numa.example.org", Some("2001:db8::1")), "2001:db8::1");
        assert_eq!(origin("numa.example.org", Some("unknown")), "127.0.0.1");
        assert_eq!(origin("localhost", Some("10.0.0.7")), "127.0.0.1", "nobody forwards for this name");
    }

    #[test]
    fn an_origin_is_that_of_the_request() {
        assert!(same_origin("http://localhost:9000", "localhost:9000"));
        assert!(same_origin("https://localhost", "localhost"));
        for bad in [
            "null",
            "",
            "http://evil.example",
            "http://localhost:1",
            "ftp://localhost:9000",
            "localhost:9000",
        ] {
            assert!(!same_origin(bad, "localhost:9000"), "{bad}");
        }
    }
}
