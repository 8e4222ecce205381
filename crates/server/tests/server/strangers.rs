//! Requests without access.

use crate::bench::{Bench, UPGRADE};
use numakit_server::wire::OpeningInfo;
use numakit_server::{ListenOptions, Listener};

#[test]
fn the_page_is_public_and_protected() {
    let bench = Bench::new();
    let reply = bench.request("GET /", &[], "");
    assert_eq!(reply.status, 200);
    for line in [
        "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
    ] {
        assert!(reply.head.contains(line), "{}", reply.head);
    }
    assert_eq!(bench.request("GET /../Cargo.toml", &[], "").status, 404);
    assert_eq!(bench.request("DELETE /", &[], "").status, 405);
}

#[test]
fn without_token_or_cookie_nothing_is_sent() {
    let bench = Bench::new();
    let origin = bench.origin();
    let wrong = bench.request("POST /session", &[&origin], r#"{"token":"00000000000000000000000000000000"}"#);
    assert_eq!((wrong.status, wrong.head.contains("set-cookie")), (401, false));
    assert_eq!(bench.request("GET /export.csv?series=0", &[], "").status, 401);
    assert_eq!(bench.request("POST /recordings", &[&origin], "x").status, 401);
    let mut headers = UPGRADE.to_vec();
    headers.push(&origin);
    assert_eq!(bench.request("GET /stream", &headers, "").status, 401);
    headers.push("Cookie: numa-1-00000000=00000000000000000000000000000000");
    assert_eq!(bench.request("GET /stream", &headers, "").status, 401);
}

#[test]
fn a_name_that_merely_resolves_here_is_refused() {
    let bench = Bench::new();
    let cookie = bench.login(&bench.urls.controller.clone());
    for host in ["Host: evil.example:7077", "Host: 127.0.0.1.evil.example", "Host: "] {
        for path in ["GET /", "GET /stream", "GET /export.csv?series=0", "POST /session"] {
            assert_eq!(bench.request(path, &[host, &cookie], "").status, 421, "{host} {path}");
        }
    }
    assert_eq!(bench.request("GET /", &["Host: localhost:9"], "").status, 200, "a tunnel's own port");
    let two =
        format!("GET / HTTP/1.1\r\nHost: {}\r\nHost: evil\r\nConnection: close\r\n\r\n", bench.address());
    assert!([400, 421].contains(&bench.raw(two.as_bytes()).status));
}

#[test]
fn foreign_pages_are_refused() {
    let bench = Bench::new();
    let cookie = bench.login(&bench.urls.controller.clone());
    for origin in
        ["Origin: http://evil.example", "Origin: null", "Origin: http://127.0.0.1:1", "X: no origin"]
    {
        let mut headers = UPGRADE.to_vec();
        headers.extend([origin, &cookie]);
        assert_eq!(bench.request("GET /stream", &headers, "").status, 403, "{origin}");
        assert_eq!(bench.request("POST /session", &[origin], "{}").status, 403, "{origin}");
        assert_eq!(bench.request("POST /recordings", &[origin, &cookie], "x").status, 403, "{origin}");
    }
}

#[test]
fn garbage_is_answered_and_survived() {
    let bench = Bench::new();
    let origin = bench.origin();
    for bytes in [&b"\x16\x03\x01\x02\x00\x01"[..], b"\r\n\r\n\r\n", b"GET\r\n\r\n", b"\0\0\0\0\r\n\r\n"] {
        assert!([0, 400].contains(&bench.raw(bytes).status));
    }
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(1 << 20));
    assert!([0, 400, 414, 431].contains(&bench.raw(long.as_bytes()).status));
    assert_eq!(bench.request("POST /session", &[&origin], "{").status, 400);
    assert_eq!(bench.request("POST /session", &[&origin], &"x".repeat(1 << 16)).status, 400);
    let cookie = bench.login(&bench.urls.controller.clone());
    assert_eq!(bench.request("GET /stream", &[&origin, &cookie], "").status, 400);
    let wrong = bench.request("POST /recordings?name=x", &[&origin, &cookie], "no recording");
    assert_eq!(wrong.status, 422);
    assert!(wrong.body.contains("x is not a recording"), "{}", wrong.body);
    bench.is_alive();
}

#[test]
fn an_upload_takes_no_number_of_a_recording_that_is_being_opened() {
    let bench = Bench::new();
    let origin = bench.origin();
    let cookie = bench.login(&bench.urls.controller.clone());
    let upload = || bench.request("POST /recordings?name=x", &[&origin, &cookie], "no recording");
    bench.opening(vec![OpeningInfo { name: "large.arrows".into(), percent: 40 }]);
    let refused = upload();
    assert_eq!(refused.status, 409);
    assert!(
        refused.body.contains("large.arrows is still being opened, 40 % of it was read"),
        "{}",
        refused.body
    );
    bench.opening(Vec::new());
    assert_eq!(upload().status, 422, "it is read");
}

#[test]
fn a_port_in_use_is_reported_with_the_fix() {
    let bench = Bench::new();
    let error = Listener::bind(&bench.address().to_string(), "host", ListenOptions::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("in use") && error.contains("--listen 127.0.0.1:"), "{error}");
    assert!(
        Listener::bind("nowhere", "host", ListenOptions::default())
            .unwrap_err()
            .to_string()
            .contains("127.0.0.1:7077")
    );
    // If another program has the port, another one is taken where the user asked for none.
    let _taken = std::net::TcpListener::bind(Listener::ADDRESS);
    let listen = Listener::bind_free("host", ListenOptions::default()).unwrap().urls().listen;
    assert!(listen.ip().is_loopback() && listen.to_string() != Listener::ADDRESS, "{listen}");
}
