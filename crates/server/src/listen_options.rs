//! Options of a listener: trusted host names, base path, encryption.

use crate::key_file::Keys;
use crate::tls::Tls;
use std::net::IpAddr;
use thiserror::Error;

/// An invalid name or path.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ListenOptionError {
    /// The name of a host.
    #[error(
        "'{0}' is not a host name; write it as in the address of the page, without scheme, port and path: numa.example.org"
    )]
    Name(String),
    /// The path.
    #[error(
        "'{0}' is not a path for the page; write it as /numa, with letters, digits, '-', '_', '.' and '/'"
    )]
    Path(String),
}

/// Options of a listener.
#[derive(Default)]
pub struct ListenOptions {
    /// Hosts that a proxy forwards for.
    pub trusted: Vec<String>,
    /// The path of the page.
    pub base: BasePath,
    /// Certificate and key.
    pub tls: Option<Tls>,
    /// Its secrets; without them new ones.
    pub keys: Option<Keys>,
}

/// The path of the page, without a slash at its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BasePath(String);

/// What a requested path names.
#[derive(Debug, PartialEq, Eq)]
pub enum Below<'a> {
    /// This path below the base path, with its slash.
    Path(&'a str),
    /// The page, without its slash.
    Page,
    /// Something outside of the base path.
    Outside,
}

impl std::fmt::Display for BasePath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.page())
    }
}

impl BasePath {
    /// Parses the value of `--base-path`.
    pub fn parse(text: &str) -> Result<Self, ListenOptionError> {
        let error = || ListenOptionError::Path(text.to_owned());
        let path = text.strip_suffix('/').unwrap_or(text);
        if path.is_empty() && !text.is_empty() {
            return Ok(Self::default());
        }
        let plain = |part: &str| {
            let known = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
            !part.is_empty() && part.bytes().all(known) && !part.bytes().all(|b| b == b'.')
        };
        let parts = path.strip_prefix('/').ok_or_else(error)?;
        if parts.split('/').all(plain) { Ok(Self(path.to_owned())) } else { Err(error()) }
    }

    /// The path of the page, with its slash.
    pub fn page(&self) -> String {
        format!("{}/", self.0)
    }

    /// What a requested path names.
    pub fn below<'a>(&self, path: &'a str) -> Below<'a> {
        match path.strip_prefix(&self.0) {
            Some("") => Below::Page,
            Some(rest) if rest.starts_with('/') => Below::Path(rest),
            _ => Below::Outside,
        }
    }
}

/// Parses the value of `--trusted-host`: a name or an address.
pub fn host(text: &str) -> Result<String, ListenOptionError> {
    let name = text.strip_suffix('.').unwrap_or(text);
    let label = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    if name.parse::<IpAddr>().is_ok() || name.split('.').all(label) {
        return Ok(name.to_ascii_lowercase());
    }
    Err(ListenOptionError::Name(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_below_the_base_or_outside() {
        let base = BasePath::parse("/a/numa/").unwrap();
        assert_eq!(base, BasePath::parse("/a/numa").unwrap());
        assert_eq!(base.page(), "/a/numa/");
        assert_eq!(base.below("/a/numa/stream"), Below::Path("/stream"));
        assert_eq!((base.below("/a/numa/"), base.below("/a/numa")), (Below::Path("/"), Below::Page));
        for outside in ["/", "", "/stream", "/a/numas", "/a", "/b/a/numa/"] {
            assert_eq!(base.below(outside), Below::Outside, "{outside}");
        }
        let root = BasePath::parse("/").unwrap();
        assert_eq!((root.page().as_str(), root.below("/stream")), ("/", Below::Path("/stream")));
        for bad in ["", "numa", "//", "/a//b", "/..", "/a/./b", "/a?b", "/a b", "/a%2f", "/;Path=/", "/ä"] {
            assert!(BasePath::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_name_has_no_scheme_port_or_path() {
        for good in ["big", "Numa.Example.ORG", "10.0.0.1", "2001:db8::1", "a-b.c"] {
            assert_eq!(host(good), Ok(good.to_ascii_lowercase()));
        }
        assert_eq!(host("numa.example.org.").as_deref(), Ok("numa.example.org"));
        for bad in ["", "https://a", "a:80", "a/b", "*", "*.example.org", "a..b", "a b", "[::1]"] {
            assert!(host(bad).is_err(), "{bad}");
        }
    }
}
