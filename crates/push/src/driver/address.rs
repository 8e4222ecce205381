//! Addresses of databases: `postgresql://USER@HOST:PORT/DATABASE?key=value`.

use hyper::Uri;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How addresses of a database look.
#[derive(Debug)]
pub(crate) struct DriverEngine {
    /// The port, unless the address has one.
    pub port: u16,
    /// What its path names.
    pub path: &'static str,
    /// Keys that the query of the address may have.
    pub options: &'static [DriverOption],
}

/// A key of the query of an address.
#[derive(Debug)]
pub(crate) struct DriverOption {
    pub key: &'static str,
    /// What may be written there.
    pub values: &'static str,
    pub is_valid: fn(&str) -> bool,
}

/// The parts of an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverAddress {
    /// The user, if it names one.
    pub user: Option<String>,
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The database.
    pub database: String,
    /// The keys of its query.
    pub options: BTreeMap<String, String>,
}

/// Why it is no address.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WrongAddress {
    Password,
    Form(&'static str),
    Missing(&'static str),
    Option { pair: String, values: String },
}

impl DriverAddress {
    /// Reads what follows the scheme and its colon.
    pub(crate) fn parse(engine: &DriverEngine, rest: &str) -> Result<Self, WrongAddress> {
        use WrongAddress::{Form, Missing, Password};
        if !rest.starts_with("//") {
            return Err(Form("its scheme is not followed by //"));
        }
        let escape = Form("it has a character that must be escaped with %");
        let Ok(uri) = format!("http:{rest}").parse::<Uri>() else { return Err(escape) };
        let authority = uri.authority().ok_or(Form("it names no host"))?;
        let user = authority.as_str().rsplit_once('@').map(|(user, _)| user);
        if user.is_some_and(|user| user.contains(':')) {
            return Err(Password);
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        if host.is_empty() {
            return Err(Form("it names no host"));
        }
        let plain =
            |text: &str| plain(text).ok_or(Form("a % in it is not followed by two hexadecimal digits"));
        let database = plain(uri.path().trim_start_matches('/'))?;
        if database.is_empty() {
            return Err(Missing(engine.path));
        }
        if database.contains('/') {
            return Err(Form("its path has more than one part"));
        }
        let mut options = BTreeMap::new();
        for pair in uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = plain(value)?;
            let known = engine.options.iter().find(|option| option.key == key);
            if !known.is_some_and(|option| (option.is_valid)(&value)) {
                let one = |option: &DriverOption| format!("{}={}", option.key, option.values);
                let values: Vec<String> = engine.options.iter().map(one).collect();
                return Err(WrongAddress::Option { pair: pair.to_owned(), values: values.join(", ") });
            }
            options.insert(key.to_owned(), value);
        }
        let user = user.map(plain).transpose()?.filter(|user| !user.is_empty());
        Ok(Self { user, host, port: authority.port_u16().unwrap_or(engine.port), database, options })
    }

    /// Host and port.
    pub fn place(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

/// A text without the escapes of addresses.
fn plain(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte == b'%' {
            let (digits, after) = rest.split_first_chunk::<2>()?;
            rest = after;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        } else {
            bytes.push(*byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: &[DriverOption] =
        &[DriverOption { key: "ttl", values: "TIME", is_valid: |text| text.ends_with('d') }];
    const ENGINE: DriverEngine = DriverEngine { port: 5432, path: "DATABASE", options: OPTIONS };

    #[test]
    fn an_address_has_its_parts() {
        let of = |text| DriverAddress::parse(&ENGINE, text);
        let address = of("//a%40b@[::1]/my%2Dbase?ttl=3d").unwrap();
        assert_eq!(address.user.as_deref(), Some("a@b"));
        assert_eq!((address.place().as_str(), address.database.as_str()), ("[::1]:5432", "my-base"));
        assert_eq!(address.options["ttl"], "3d");
        assert_eq!(of("//h:1/d").unwrap().place(), "h:1");
    }

    #[test]
    fn an_error_says_what_is_wrong() {
        let of = |text| DriverAddress::parse(&ENGINE, text).unwrap_err();
        assert_eq!(of("//u:p@h/d"), WrongAddress::Password);
        assert_eq!(of("//h"), WrongAddress::Missing("DATABASE"));
        assert_eq!(of("//h/"), WrongAddress::Missing("DATABASE"));
        for text in ["h/d", "//", "///d", "//h/d/e", "//h/%zz", "//h/%2", "//h/d e", "//:5/d"] {
            assert!(matches!(of(text), WrongAddress::Form(_)), "{text}");
        }
        for text in ["//h/d?ttl=3", "//h/d?x=1", "//h/d?ttl"] {
            assert!(matches!(of(text), WrongAddress::Option { .. }), "{text}");
        }
    }
}
