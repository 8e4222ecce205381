//! Access: tokens, cookies, and the host names that the server accepts.

use crate::key_file::Keys;
use crate::listen_options::{BasePath, ListenOptions};
use crate::wire::Role;
use numakit_model::numbers::hexadecimal;
use std::hint::black_box;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// The secrets of a running server, which are new with every start unless they are in a file, and its host names.
#[derive(Debug)]
pub struct AccessKeys {
    /// Changes with every start.
    pub instance: String,
    /// Part of the cookies' name, so that servers on one host do not overwrite each other's.
    name: String,
    port: u16,
    names: Vec<String>,
    /// Hosts that a proxy forwards for.
    pub trusted: Vec<String>,
    /// The path of the page.
    pub base: BasePath,
    encrypted: bool,
    controller: Secrets,
    viewer: Secrets,
}

/// The token in the address of the page, and the cookie that it is exchanged for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secrets {
    /// The token.
    pub token: String,
    /// The cookie.
    pub cookie: String,
}

impl Secrets {
    /// New ones.
    pub fn new() -> io::Result<Self> {
        Ok(Self { token: random(16)?, cookie: random(16)? })
    }
}

/// Random bytes in hexadecimal digits.
pub fn random(bytes: usize) -> io::Result<String> {
    let mut buffer = vec![0; bytes];
    getrandom::fill(&mut buffer).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(hexadecimal(&buffer))
}

/// Compares two texts in a time that does not depend on where they differ.
pub(crate) fn constant_time_eq(a: &str, b: &str) -> bool {
    let differ = a.bytes().zip(b.bytes()).fold(0, |all, (a, b)| black_box(all | (a ^ b)));
    a.len() == b.len() && differ == 0
}

impl AccessKeys {
    /// The secrets for a server that listens at this address on the machine `host`.
    pub fn new(listen: SocketAddr, host: &str, options: &ListenOptions) -> io::Result<Self> {
        let mut names = vec![host.to_ascii_lowercase()];
        if !listen.ip().is_unspecified() {
            names.push(listen.ip().to_string());
        }
        names.retain(|name| !name.is_empty() && !listen.ip().is_loopback());
        let Keys { name, controller, viewer } = options.keys.clone().map_or_else(Keys::random, Ok)?;
        Ok(Self {
            instance: random(4)?,
            name,
            port: listen.port(),
            names,
            trusted: options.trusted.clone(),
            base: options.base.clone(),
            encrypted: options.tls.is_some(),
            controller,
            viewer,
        })
    }

    /// The token of a role.
    pub fn token(&self, role: Role) -> &str {
        match role {
            Role::Controller => &self.controller.token,
            Role::Viewer => &self.viewer.token,
        }
    }

    fn roles(&self) -> [(Role, &Secrets); 2] {
        [(Role::Controller, &self.controller), (Role::Viewer, &self.viewer)]
    }

    /// The role of a token.
    pub fn role_of_token(&self, token: &str) -> Option<Role> {
        self.roles()
            .into_iter()
            .filter(|(_, s)| constant_time_eq(&s.token, token))
            .map(|(role, _)| role)
            .next()
    }

    /// The role of a `Cookie` header.
    pub fn role_of_cookies(&self, header: &str) -> Option<Role> {
        let name = self.cookie_name();
        let mut pairs = header.split(';').filter_map(|pair| pair.trim().split_once('='));
        let value = pairs.find(|(key, _)| *key == name).map(|(_, value)| value)?;
        self.roles()
            .into_iter()
            .filter(|(_, s)| constant_time_eq(&s.cookie, value))
            .map(|(role, _)| role)
            .next()
    }

    fn cookie_name(&self) -> String {
        format!("numa-{}-{}", self.port, self.name)
    }

    /// The `Set-Cookie` header for a role and a page of this origin. The origin comes from the
    /// browser, so its scheme is that of the connection to a proxy, if there is one.
    pub fn cookie(&self, role: Role, origin: &str) -> String {
        let value = match role {
            Role::Controller => &self.controller.cookie,
            Role::Viewer => &self.viewer.cookie,
        };
        let secure = if self.encrypted || origin.starts_with("https://") { "; Secure" } else { "" };
        let path = self.base.page();
        format!("{}={value}; HttpOnly; SameSite=Strict; Path={path}{secure}", self.cookie_name())
    }

    /// Whether a `Host` names this server: loopback names on any port, so that tunnels work, and if
    /// other machines can reach it, its own names and the address `local` of the connection. Other
    /// names are refused even if they resolve to this machine.
    pub fn accepts_host(&self, host: &str, local: Option<IpAddr>) -> bool {
        let Some(name) = host_name(host) else { return false };
        let reached = local.filter(|ip| !ip.is_loopback()).map(|ip| ip.to_canonical().to_string());
        is_loopback(&name)
            || self.names.contains(&name)
            || self.trusted.contains(&name)
            || reached.is_some_and(|ip| ip == name)
    }

    /// The address that a request comes from. If a trusted proxy forwards it, the last address of
    /// `X-Forwarded-For`: a client can forge the ones before.
    pub fn origin_of(&self, host: &str, forwarded: Option<&str>, peer: IpAddr) -> IpAddr {
        let proxied = host_name(host).is_some_and(|name| self.trusted.contains(&name));
        let last = forwarded.filter(|_| proxied).and_then(|all| all.rsplit(',').next());
        last.and_then(|address| address.trim().parse().ok()).unwrap_or(peer)
    }
}

/// Whether a page of this origin is ours: it has the same name and port as the request.
pub fn same_origin(origin: &str, host: &str) -> bool {
    let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    rest.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

/// The name in `name:port`, in lower case, without brackets.
pub(crate) fn host_name(host: &str) -> Option<String> {
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

pub(crate) fn is_loopback(name: &str) -> bool {
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(listen: &str) -> AccessKeys {
        AccessKeys::new(listen.parse().unwrap(), "Big", &ListenOptions::default()).unwrap()
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
            assert!(cookie.starts_with(&format!("numa-7077-{}=", access.name)), "{cookie}");
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
        assert_ne!((&one.instance, &one.name), (&two.instance, &two.name));
    }

    #[test]
    fn keys_of_a_file_are_the_same_at_every_start_and_so_are_cookies() {
        let keys = Some(Keys::random().unwrap());
        let [one, two] = [(); 2].map(|()| {
            let options = ListenOptions { keys: keys.clone(), ..ListenOptions::default() };
            AccessKeys::new("127.0.0.1:7077".parse().unwrap(), "Big", &options).unwrap()
        });
        for role in [Role::Viewer, Role::Controller] {
            assert_eq!(one.token(role), two.token(role));
            let cookie = one.cookie(role, "http://localhost:7077");
            assert_eq!(two.role_of_cookies(cookie.split(';').next().unwrap()), Some(role));
        }
        assert_ne!(one.instance, two.instance, "a page still notices the restart");
    }

    #[test]
    fn only_loopback_names_are_accepted_on_any_port() {
        let access = access("127.0.0.1:7077");
        for good in ["localhost", "localhost:9", "LocalHost:7077", "127.0.0.1:80", "127.9.9.9", "[::1]:7077"]
        {
            assert!(access.accepts_host(good, None), "{good}");
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
            assert!(!access.accepts_host(bad, None), "{bad}");
        }
    }

    #[test]
    fn a_server_for_other_machines_accepts_its_own_names() {
        let open = access("0.0.0.0:7077");
        let local = "10.0.0.1".parse().ok();
        assert!(open.accepts_host("big:7077", local) && open.accepts_host("10.0.0.1:7077", local));
        assert!(!open.accepts_host("10.0.0.2:7077", local) && !open.accepts_host("evil.example", local));
        assert!(!open.accepts_host("0.0.0.0:7077", local));
        assert!(access("10.0.0.1:7077").accepts_host("10.0.0.1", None));
    }

    #[test]
    fn a_proxy_gives_names_and_addresses() {
        let options = ListenOptions {
            trusted: vec!["numa.example.org".into()],
            base: BasePath::parse("/numa").unwrap(),
            ..ListenOptions::default()
        };
        let access = AccessKeys::new("127.0.0.1:7077".parse().unwrap(), "big", &options).unwrap();
        for good in ["numa.example.org", "Numa.example.org:8443", "localhost"] {
            assert!(access.accepts_host(good, None), "{good}");
        }
        assert!(
            !access.accepts_host("example.org", None) && !access.accepts_host("x.numa.example.org", None)
        );
        assert!(access.cookie(Role::Viewer, "https://numa.example.org").ends_with("; Path=/numa/; Secure"));
        let peer: IpAddr = "127.0.0.1".parse().unwrap();
        let origin = |host, forwarded| access.origin_of(host, forwarded, peer).to_string();
        assert_eq!(origin("numa.example.org", Some("6.6.6.6, 10.0.0.7")), "10.0.0.7");
        assert_eq!(origin("numa.example.org", Some("2001:db8::1")), "2001:db8::1");
        assert_eq!(origin("numa.example.org", Some("unknown")), "127.0.0.1");
        assert_eq!(origin("localhost", Some("10.0.0.7")), "127.0.0.1", "no proxy forwards for this name");
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
