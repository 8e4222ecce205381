//! Floods of connections, and clients that read nothing: a controller always gets in.

use crate::bench::Bench;
use numakit_testing::until;
use numakit_testing::wait::wait_for;
use std::io::Write;
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

/// A request that never ends.
const HALF: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";

/// A connection that starts one; `None` if the system has no port left.
fn half_open(bench: &Bench) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(bench.address()).ok()?;
    let _ = stream.write_all(HALF);
    Some(stream)
}

/// Loads the page, logs in and opens the stream.
fn gets_in(bench: &Bench) {
    bench.is_alive();
    assert_eq!(bench.connect(&bench.urls.controller.clone()).text("hello")["role"], "controller");
}

#[test]
fn half_open_connections_block_nobody() {
    let bench = Bench::new();
    let held: Vec<_> = (0..300).filter_map(|_| half_open(&bench)).collect();
    gets_in(&bench);
    assert_eq!(held.len(), 300);
}

#[test]
fn measuring_a_flood_of_connections_blocks_nobody() {
    let bench = Bench::new();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut held = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    held.extend(half_open(&bench));
                    if held.len() > 300 {
                        held.clear();
                    }
                }
            });
        }
        // A slow request may be among the oldest connections and be closed.
        let comes_in = || catch_unwind(AssertUnwindSafe(|| gets_in(&bench))).is_ok();
        let count = (0..20).filter(|_| comes_in()).count();
        over.store(true, Ordering::Relaxed);
        assert!(count >= 15, "{count} of 20 came in");
    });
}

#[test]
fn connections_of_viewers_leave_room_for_control() {
    let bench = Bench::new();
    let cookie = bench.login(&bench.urls.viewer.clone());
    let ask = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{cookie}\r\n\r\n");
    let mut held = Vec::new();
    for _ in 0..300 {
        let mut stream = TcpStream::connect(bench.address()).unwrap();
        let _ = stream.write_all(ask.as_bytes());
        let _ = stream.write_all(HALF);
        held.push(stream);
    }
    gets_in(&bench);
}

#[test]
fn viewers_do_not_count_as_controllers() {
    let bench = Bench::new();
    let url = bench.urls.viewer.clone();
    let mut viewers: Vec<_> = (0..16).map(|_| bench.connect(&url)).collect();
    viewers.iter_mut().for_each(|viewer| _ = viewer.text("hello"));
    assert_eq!(bench.upgrade(&url, &[]).status, 503);
    let mut controller = bench.connect(&bench.urls.controller.clone());
    controller.send(r#"{"type":"order","id":6,"line":"pause"}"#);
    assert_eq!(controller.text("reply")["ok"], true);
}

#[test]
fn a_client_that_reads_nothing_is_replaced() {
    let bench = Bench::new();
    for (url, limit) in [(bench.urls.viewer.clone(), 16), (bench.urls.controller.clone(), 8)] {
        let stalled: Vec<_> = (0..limit).map(|_| bench.connect(&url)).collect();
        // The server needs time to notice that they do not answer.
        let mut came = wait_for("a free connection", || bench.try_connect(&url));
        assert_eq!(came.text("hello")["limits"]["clients"], 16);
        until!(came.text("state")["clients"] == limit, "one of the stalled has given way");
        drop(stalled);
    }
}

#[test]
fn unread_csv_exports_are_limited_and_leave_some_for_control() {
    let bench = Bench::new();
    bench.rows(0, 100_000);
    let (viewer, controller) = (bench.urls.viewer.clone(), bench.urls.controller.clone());
    let (viewer, controller) = (bench.login(&viewer), bench.login(&controller));
    let line = "GET /export.csv?series=0,1,0,1,0,1,0,1&rows=200000";
    let ask = format!("{line} HTTP/1.1\r\nHost: localhost\r\n{viewer}\r\n\r\n");
    let _unread: Vec<_> = (0..8)
        .map(|_| {
            let mut stream = TcpStream::connect(bench.address()).unwrap();
            stream.write_all(ask.as_bytes()).unwrap();
            stream
        })
        .collect();
    until!(bench.request("GET /export.csv?series=0", &[&viewer], "").status == 429);
    assert_eq!(bench.request("GET /export.csv?series=0", &[&controller], "").status, 200);
}
