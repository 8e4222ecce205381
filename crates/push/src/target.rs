//! Where samples go: an address as the user writes it.

use crate::driver::{DriverAddress, WrongAddress};
use crate::emitters::{self, Emitter, Transport};
use hyper::Uri;
use numakit_sys::file::named_text;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why an address cannot be used.
#[derive(Debug, Error)]
pub enum TargetError {
    /// Its scheme is unknown.
    #[error("'{0}' begins with none of the known engines; write one of {known}", known = emitters::examples())]
    Scheme(String),
    /// It is not an address.
    #[error("'{text}' is no address: {why}; write it like {example}")]
    Form {
        /// The address.
        text: String,
        /// What is wrong.
        why: &'static str,
        /// A correct one.
        example: &'static str,
    },
    /// Something that the engine needs is missing.
    #[error("'{text}' does not say {key}; add '{key}=NAME' to its query, as in {example}")]
    Missing {
        /// The address.
        text: String,
        /// What is missing.
        key: &'static str,
        /// A correct one.
        example: &'static str,
    },
    /// A key of its query is unknown, or its value cannot be used.
    #[error("'{pair}' is no option of this engine; write {values}, or omit it")]
    Option {
        /// The key and its value.
        pair: String,
        /// What may be written.
        values: String,
    },
    /// Its path is missing.
    #[error("'{text}' names no {key}; add '/{key}', as in {example}")]
    Path {
        /// The address.
        text: String,
        /// What is missing.
        key: &'static str,
        /// A correct one.
        example: &'static str,
    },
    /// It has a password.
    #[error(
        "the address has a user or a password, which other users see in the list of processes; write USER:PASSWORD into a file \
         and give it with --password-file"
    )]
    Password,
    /// A file with a secret cannot be used.
    #[error("cannot use {path}: {error}; give a file that you may read with {content} in one line")]
    Secret {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
        /// What should be in it.
        content: &'static str,
    },
}

/// How to authenticate.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Credentials {
    /// Not at all.
    #[default]
    None,
    /// `USER:PASSWORD`.
    Password(String),
    /// A token.
    Token(String),
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Password(_) => "Password",
            Self::Token(_) => "Token",
        })
    }
}

/// A secret is a line of at most this length.
const MAX_SECRET: u64 = 4096;

impl Credentials {
    /// Reads `USER:PASSWORD` from the first line of a file.
    pub fn password(path: &Path) -> Result<Self, TargetError> {
        let content = "USER:PASSWORD";
        let line = secret(path, content)?;
        let wrong = || {
            let error = io::Error::new(io::ErrorKind::InvalidData, "it has no colon");
            TargetError::Secret { path: path.to_owned(), error, content }
        };
        if line.contains(':') { Ok(Self::Password(line)) } else { Err(wrong()) }
    }

    /// Reads a token from the first line of a file.
    pub fn token(path: &Path) -> Result<Self, TargetError> {
        Ok(Self::Token(secret(path, "the token")?))
    }
}

fn secret(path: &Path, content: &'static str) -> Result<String, TargetError> {
    let fail = |error| TargetError::Secret { path: path.to_owned(), error, content };
    let text = named_text(path, MAX_SECRET).map_err(fail)?;
    let line = text.lines().next().unwrap_or_default().trim();
    if line.is_empty() || !line.chars().all(|c| c.is_ascii_graphic() || c == ' ') {
        let why = "its first line is empty or has characters that a header cannot have";
        return Err(fail(io::Error::new(io::ErrorKind::InvalidData, why)));
    }
    Ok(line.to_owned())
}

/// An engine and its address.
#[derive(Debug, Clone)]
pub struct PushTarget {
    /// Its entry of the table.
    pub emitter: &'static Emitter,
    /// The address as the user wrote it.
    pub text: String,
    /// How to authenticate.
    pub credentials: Credentials,
    /// A file with the certificate authority of the engine, instead of those of the system.
    pub authority: Option<PathBuf>,
    pub(crate) place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Http(Address),
    Folder(PathBuf),
    Driver(DriverAddress),
}

/// The parts of an address of HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub tls: bool,
    pub host: String,
    pub port: u16,
    /// Path and query.
    pub path: String,
}

impl Address {
    /// The name of the server in requests.
    pub fn authority(&self) -> String {
        let colon = self.host.contains(':');
        let host = if colon { format!("[{}]", self.host) } else { self.host.clone() };
        format!("{host}:{}", self.port)
    }
}

impl PushTarget {
    /// Whether a text begins with the scheme of an engine, whatever follows.
    pub fn has_scheme(text: &str) -> bool {
        text.contains(':') && Self::scheme(text).0.is_some()
    }

    /// The engine and the protocol of a scheme, and what follows it.
    fn scheme(text: &str) -> (Option<&'static Emitter>, &str, &str) {
        let (scheme, rest) = text.split_once(':').unwrap_or((text, ""));
        let (name, protocol) = scheme.split_once('+').unwrap_or((scheme, ""));
        (emitters::EMITTERS.iter().find(|emitter| emitter.scheme == name), protocol, rest)
    }

    /// Reads an address.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let (emitter, protocol, rest) = Self::scheme(text);
        let emitter = emitter.ok_or_else(|| TargetError::Scheme(text.chars().take(80).collect()))?;
        let form = |why| TargetError::Form { text: text.to_owned(), why, example: emitter.example };
        let place = match &emitter.transport {
            Transport::Folder if protocol.is_empty() && !rest.is_empty() => {
                Place::Folder(rest.strip_prefix("//").unwrap_or(rest).into())
            }
            Transport::Folder => return Err(form("it names no folder")),
            Transport::Driver(_) if !protocol.is_empty() => return Err(form("it has a +")),
            Transport::Driver(engine) => {
                Place::Driver(DriverAddress::parse(engine, rest).map_err(|wrong| match wrong {
                    WrongAddress::Password => TargetError::Password,
                    WrongAddress::Form(why) => form(why),
                    WrongAddress::Missing(key) => {
                        TargetError::Path { text: text.to_owned(), key, example: emitter.example }
                    }
                    WrongAddress::Option { pair, values } => TargetError::Option { pair, values },
                })?)
            }
            Transport::Http(http) => {
                let tls = match protocol {
                    "http" => false,
                    "https" => true,
                    _ => return Err(form("it has neither +http: nor +https:")),
                };
                let mut address = address(tls, rest).map_err(|why| match why {
                    Why::Password => TargetError::Password,
                    Why::Form(why) => form(why),
                })?;
                for key in http.needs {
                    if value(&address.path, key).is_none() {
                        return Err(TargetError::Missing {
                            text: text.to_owned(),
                            key,
                            example: emitter.example,
                        });
                    }
                }
                complete(&mut address.path, http.path, http.query);
                Place::Http(address)
            }
        };
        Ok(Self { emitter, text: text.to_owned(), credentials: Credentials::None, authority: None, place })
    }
}

impl PushTarget {
    /// The value of a key in the query of the address, as it is written.
    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        match &self.place {
            Place::Http(address) => value(&address.path, key),
            Place::Folder(_) | Place::Driver(_) => None,
        }
    }

    /// The default folder of its spool; `None` where this user has no folder for such files.
    pub fn spool_folder(&self) -> Option<PathBuf> {
        let name = format!("{}-{:08x}", self.emitter.scheme, crc32fast::hash(self.text.as_bytes()));
        Some(numakit_sys::cache::state_folder()?.join("push").join(name))
    }
}

enum Why {
    Password,
    Form(&'static str),
}

fn address(tls: bool, rest: &str) -> Result<Address, Why> {
    if !rest.starts_with("//") {
        return Err(Why::Form("its scheme is not followed by //"));
    }
    let uri: Uri = format!("http:{rest}")
        .parse()
        .map_err(|_| Why::Form("it has a character that must be escaped with %"))?;
    let authority = uri.authority().ok_or(Why::Form("it names no host"))?;
    if authority.as_str().contains('@') {
        return Err(Why::Password);
    }
    let host = authority.host().trim_matches(['[', ']']).to_owned();
    if host.is_empty() {
        return Err(Why::Form("it names no host"));
    }
    let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
    let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    Ok(Address { tls, host, port, path })
}

/// The value of a key of the query, as it is written; not an empty one.
fn value<'a>(path: &'a str, key: &str) -> Option<&'a str> {
    let (_, query) = path.split_once('?')?;
    let found = query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
    found.filter(|value| !value.is_empty())
}

/// The path of the engine if the user gave none, and what its query must have.
fn complete(path: &mut String, default: &str, query: &[(&str, &str)]) {
    let (own, rest) = match path.split_once('?') {
        Some((own, rest)) => (own, format!("?{rest}")),
        None => (path.as_str(), String::new()),
    };
    let own = if matches!(own, "" | "/") { default } else { own };
    let mut whole = format!("{own}{rest}");
    for (key, text) in query {
        if value(&whole, key).is_none() {
            let sign = if whole.contains('?') { '&' } else { '?' };
            whole.push_str(&format!("{sign}{key}={text}"));
        }
    }
    *path = whole;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http(text: &str) -> (String, String) {
        match PushTarget::parse(text).unwrap().place {
            Place::Http(address) => (address.authority(), address.path),
            place => panic!("{place:?}"),
        }
    }

    #[test]
    fn an_address_gets_the_path_and_the_query_of_its_engine() {
        let of = |text| http(text);
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        assert_eq!(of("influxdb1+http://h:8086?db=numa"), pair("h:8086", "/write?db=numa&precision=ns"));
        assert_eq!(
            of("influxdb2+https://[::1]/x/?org=a&bucket=b&precision=us"),
            pair("[::1]:443", "/x/?org=a&bucket=b&precision=us")
        );
        assert_eq!(of("prometheus+http://h:9090"), pair("h:9090", "/api/v1/write"));
        let folder = PushTarget::parse("parquet:/var/lib/fleet").unwrap();
        assert_eq!(folder.place, Place::Folder("/var/lib/fleet".into()));
        assert_eq!(PushTarget::parse("parquet:a b").unwrap().place, Place::Folder("a b".into()));
    }

    #[test]
    fn an_error_says_what_to_write() {
        let error = |text| PushTarget::parse(text).unwrap_err().to_string();
        assert!(error("http://h").contains("influxdb1+http://"), "{}", error("http://h"));
        assert!(error("influxdb1+http://h:8086").contains("add 'db=NAME'"));
        assert!(error("influxdb1:h").contains("+https:"));
        assert!(error("prometheus+http://u:p@h").contains("--password-file"));
        assert!(error("prometheus+http://").contains("address"));
        assert!(error("parquet:").contains("names no folder"));
        for text in ["", ":", "+", "prometheus+http:", "prometheus+http:///", "prometheus+http://a b"] {
            assert!(PushTarget::parse(text).is_err(), "{text}");
        }
    }
}
