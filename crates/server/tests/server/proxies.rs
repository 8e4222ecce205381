//! The page behind a proxy, below a path, and encrypted.

use crate::bench::{Bench, UPGRADE};
use numakit_server::ListenOptions;
use numakit_server::listen_options::BasePath;
use numakit_server::tls::Tls;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_tungstenite::tungstenite::{Message, client, client::IntoClientRequest};

const HOST: &str = "Host: numa.example.org";
const ORIGIN: &str = "Origin: https://numa.example.org";

fn proxied() -> Bench {
    Bench::behind(ListenOptions {
        trusted: vec!["numa.example.org".into()],
        base: BasePath::parse("/tools/numa").unwrap(),
        ..ListenOptions::default()
    })
}

fn login(bench: &Bench, url: &str) -> String {
    let body = format!("{{\"token\":\"{}\"}}", url.split_once('#').unwrap().1);
    let reply = bench.request("POST /tools/numa/session", &[HOST, ORIGIN], &body);
    let cookie = reply.head.lines().find_map(|l| l.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.ends_with("; httponly; samesite=strict; path=/tools/numa/; secure"), "{cookie}");
    format!("Cookie: {}", cookie.split(';').next().unwrap())
}

/// Requests the stream through the proxy, for a client with this address; the status and the
/// connection.
fn enter(bench: &Bench, cookie: &str, client: &str) -> (u16, TcpStream) {
    let forwarded = format!("X-Forwarded-For: 6.6.6.6, {client}");
    let lines = [&[HOST, ORIGIN, cookie, &forwarded][..], &UPGRADE].concat().join("\r\n");
    let mut stream = bench.stream();
    stream.write_all(format!("GET /tools/numa/stream HTTP/1.1\r\n{lines}\r\n\r\n").as_bytes()).unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    (String::from_utf8_lossy(&head[9..]).parse().unwrap(), stream)
}

#[test]
fn the_page_is_below_its_path_and_accepts_the_name_of_the_proxy() {
    let bench = proxied();
    assert!(bench.urls.controller.contains("/tools/numa/#"), "{}", bench.urls.controller);
    for host in [HOST, "Host: numa.example.org:8443", "Host: localhost:7077"] {
        assert_eq!(bench.request("GET /tools/numa/", &[host], "").status, 200, "{host}");
    }
    let slash = bench.request("GET /tools/numa", &[HOST], "");
    assert!(slash.status == 308 && slash.head.contains("location: /tools/numa/\r\n"), "{}", slash.head);
    for outside in ["GET /", "GET /stream", "POST /session", "GET /tools/", "GET /tools/numas/"] {
        let reply = bench.request(outside, &[HOST], "");
        assert!(reply.status == 404 && reply.body.contains("open /tools/numa/"), "{outside}: {}", reply.body);
    }
    let strange = bench.request("GET /tools/numa/", &["Host: big.example.org:80"], "");
    assert!(
        strange.body.contains("--trusted-host big.example.org if"),
        "{} {}",
        strange.status,
        strange.body
    );
}

#[test]
fn the_stream_comes_through_the_proxy_for_pages_of_its_name_only() {
    let bench = proxied();
    let cookie = login(&bench, &bench.urls.controller);
    assert_eq!(enter(&bench, &cookie, "10.0.0.1").0, 101);
    for origin in ["Origin: https://evil.example", "Origin: https://numa.example.org:444", "Origin: null"] {
        let headers = [&[HOST, origin, &cookie][..], &UPGRADE].concat();
        let reply = bench.request("GET /tools/numa/stream", &headers, "");
        assert!(reply.status == 403 && reply.body.contains("pass on the Host"), "{origin}: {}", reply.body);
    }
}

#[test]
fn the_address_with_most_clients_gives_way_to_another() {
    let bench = proxied();
    let cookie = login(&bench, &bench.urls.viewer);
    let held: Vec<_> = (0..16).map(|_| enter(&bench, &cookie, "10.0.0.1")).collect();
    assert!(held.iter().all(|(status, _)| *status == 101));
    assert_eq!(enter(&bench, &cookie, "10.0.0.1").0, 503, "one address may use all free slots, but no more");
    let (status, _other) = enter(&bench, &cookie, "10.0.0.2");
    assert_eq!(status, 101, "another address is accepted");
    assert_eq!(enter(&bench, &cookie, "10.0.0.1").0, 503);
    let mut text = Vec::new();
    let _ = (&held[0].1).read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text);
    assert!(
        text.contains("\"bye\"") && text.contains("replaced this one"),
        "the oldest gets a message: {text}"
    );
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/tls").join(name)
}

fn encrypted() -> Bench {
    let tls = Tls::read(&file("localhost.pem"), &file("localhost.key")).unwrap();
    Bench::behind(ListenOptions { tls: Some(tls), ..ListenOptions::default() })
}

fn connect(bench: &Bench) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file("localhost.pem")).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let session = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
    StreamOwned::new(session, bench.stream())
}

#[test]
fn an_encrypted_server_gives_page_key_and_stream() {
    let bench = encrypted();
    let host = bench.address().to_string();
    let url = &bench.urls.controller;
    assert!(url.starts_with(&format!("https://{host}/#")), "{url}");
    let body = format!("{{\"token\":\"{}\"}}", url.split_once('#').unwrap().1);
    let mut stream = connect(&bench);
    let length = body.len();
    write!(stream, "POST /session HTTP/1.1\r\nHost: {host}\r\nOrigin: https://{host}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).unwrap();
    let cookie = answer.lines().find_map(|l| l.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.ends_with("; Path=/; Secure"), "{cookie}");
    let mut request = format!("wss://{host}/stream").into_client_request().unwrap();
    for (name, value) in [
        ("Cookie", cookie.split(';').next().unwrap()),
        ("Origin", &format!("https://{host}")),
        ("Sec-WebSocket-Protocol", "numakit.1"),
    ] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    let (mut socket, _) = client::client(request, connect(&bench)).unwrap();
    let hello = socket.read().unwrap();
    assert!(matches!(&hello, Message::Text(text) if text.contains("\"controller\"")), "{hello}");
}

#[test]
fn a_connection_without_tls_gets_an_answer_and_silent_ones_block_nobody() {
    let bench = encrypted();
    let plain = bench.request("GET /", &[], "");
    assert!(plain.status == 400 && plain.body.contains("https://"), "{}", plain.body);
    let silent: Vec<_> = (0..300).map(|_| TcpStream::connect(bench.address()).unwrap()).collect();
    let mut stream = connect(&bench);
    write!(stream, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.starts_with(b"HTTP/1.1 200"));
    drop(silent);
}

#[test]
fn certificates_that_cannot_be_used_are_refused_with_the_fix() {
    let why = |cert: &str, key: &str| Tls::read(&file(cert), &file(key)).unwrap_err().to_string();
    let none = why("none.pem", "localhost.key");
    assert!(none.contains("--tls-cert") && none.contains("none.pem: No such file"), "{none}");
    let swapped = why("localhost.key", "localhost.key");
    assert!(swapped.contains("-----BEGIN CERTIFICATE-----"), "{swapped}");
    let keyless = why("localhost.pem", "localhost.pem");
    assert!(keyless.contains("--tls-key") && keyless.contains("-----BEGIN PRIVATE KEY-----"), "{keyless}");
    assert!(why("localhost.pem", "other.key").contains("cannot be used together"));
}
