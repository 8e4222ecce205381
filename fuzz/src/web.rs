//! Messages and requests of clients of the web page.

use numakit_server::csv::Query;
use numakit_server::wire::ToServer;
use numakit_server::{AccessKeys, ListenOptions, same_origin};

/// A message on the WebSocket.
pub fn message(input: &[u8]) -> bool {
    let message = ToServer::parse(input);
    assert!(message.as_ref().err().is_none_or(|why| !why.to_string().is_empty()));
    message.is_ok()
}

/// A query, then lines that may be a host, its origin and a cookie.
pub fn request(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    let query = Query::parse(&text);
    let Ok(access) = AccessKeys::new(([127, 0, 0, 1], 7077).into(), "host", &ListenOptions::default()) else {
        return false;
    };
    for line in text.lines() {
        assert_eq!(access.role_of_token(line), None, "a guessed token has no role");
        assert_eq!(access.role_of_cookies(line), None, "a guessed cookie has no role");
        let known = access.accepts_host(line, None);
        assert!(!known || !line.contains("evil"), "{line}");
        let _ = same_origin(&format!("http://{line}"), line);
    }
    query.is_ok_and(|query| !query.series.is_empty())
}
