//! The page of a running observation, with a client that uses plain HTTP.

use crate::runner::{Done, Folder, numascopes_fifo};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Longer than a server takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// Where a server listens, and the controller's token.
pub struct Address {
    pub at: String,
    pub key: String,
}

impl Address {
    /// Parses what it prints at its start.
    pub fn of(child: &mut Child) -> Self {
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let (sender, found) = channel();
        std::thread::spawn(move || sender.send(lines.find(|line| line.starts_with("control"))));
        let line = found.recv_timeout(LIMIT).unwrap().unwrap();
        let (at, key) = line.split_once("http://").unwrap().1.split_once("/#").unwrap();
        Self { at: at.to_owned(), key: key.to_owned() }
    }

    /// The cookie of a session with the key.
    pub fn cookie(&self) -> String {
        let answer = self.ask("POST /session", &format!("{{\"token\":\"{}\"}}", self.key));
        let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    pub fn ask(&self, head: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.at).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let length = body.len();
        let text = format!(
            "{head} HTTP/1.1\r\nHost: {at}\r\nOrigin: http://{at}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}",
            at = self.at
        );
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

#[test]
fn a_page_is_served_until_a_command_ends_it() {
    let folder = Folder::new("live");
    let mut started = folder.start("live --no-open --listen 127.0.0.1:0 -i 10ms -e pgfault");
    let address = Address::of(started.child());
    assert!(address.ask("GET /", "").starts_with("HTTP/1.1 200"));
    assert!(address.ask("GET /export.csv?source=0&series=0", "").starts_with("HTTP/1.1 401"));
    let login = format!("{{\"token\":\"{}\"}}", address.key);
    let answer = address.ask("POST /session", &login);
    assert!(answer.contains("HttpOnly") && answer.ends_with("{\"role\":\"controller\"}"), "{answer}");
    assert!(address.ask("POST /session", "{\"token\":\"none\"}").starts_with("HTTP/1.1 401"));
    folder.run("ctl stop").says(0, "");
    let done = started.end();
    assert_eq!(done.code, 0);
    assert!(done.err.contains("GET /export.csv: 401"), "{}", done.err);
}

#[test]
fn a_port_in_use_and_a_wrong_address_are_refused_with_the_fix() {
    let folder = Folder::new("live-port");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let fix = format!(
        "in use by another program; give another port with --listen, as in --listen {}",
        address.ip()
    );
    folder.run(&format!("live --no-open --listen {address}")).says(2, &fix);
    folder.run("live --no-open --listen here").says(2, "write it as 127.0.0.1:7077");
    folder.run("live --no-open --history 1KiB").says(2, "at least 16MiB");
    folder.run("live --no-open -i 10us").says(2, "100us to 1h");
}

#[test]
fn the_status_is_that_of_the_command() {
    let folder = Folder::new("live-command");
    for (command, code) in [("true", 0), ("false", 1), ("no-such-command", 127)] {
        let done =
            folder.run(&format!("live --no-open --listen 127.0.0.1:0 -i 10ms -e pgfault -- {command}"));
        assert_eq!(done.code, code, "{}", done.err);
    }
}

/// A viewer of the page.
fn viewer(address: &Address) -> TcpStream {
    let answer = address.ask("POST /session", &format!("{{\"token\":\"{}\"}}", address.key));
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = cookie.split(';').next().unwrap();
    let mut stream = TcpStream::connect(&address.at).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let head = format!(
        "GET /stream HTTP/1.1\r\nHost: {at}\r\nOrigin: http://{at}\r\nCookie: {cookie}\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Protocol: numakit.1\r\n\r\n",
        at = address.at
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// Reads until the text appears.
fn read_until(stream: &mut TcpStream, text: &str) {
    let (mut all, mut part) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&all).contains(text) {
        let count = stream.read(&mut part).unwrap();
        assert!(count > 0, "{text}: {}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&part[..count]);
    }
}

#[test]
fn after_its_command_a_page_stays_until_the_last_viewer_leaves() {
    let folder = Folder::new("live-stays");
    let script = folder.script("wait", "#!/bin/sh\nwhile ! test -e end; do sleep 0.05; done\nexit 3\n");
    let line = format!("live --no-open --listen 127.0.0.1:0 -i 10ms -e pgfault -- {}", script.display());
    let mut started = folder.spawn(&line);
    let address = Address::of(started.child());
    let mut page = viewer(&address);
    read_until(&mut page, "\"type\":\"hello\"");
    std::fs::write(folder.path("end"), "").unwrap();
    read_until(&mut page, "the command ended with status 3");
    assert!(address.ask("GET /", "").starts_with("HTTP/1.1 200"));
    let mut other = viewer(&address);
    read_until(&mut other, "\"ended\":true");
    drop(page);
    assert!(address.ask("GET /", "").starts_with("HTTP/1.1 200"));
    drop(other);
    let done = started.end();
    assert_eq!(done.code, 3, "{}", done.err);
    assert!(done.err.contains("the page stays until its last viewer leaves or Ctrl-C"), "{}", done.err);
}

#[test]
fn numascope_live_serves_too() {
    let (folder, _fifo) = (Folder::new("live-original"), numascopes_fifo());
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_numa"), folder.path("numascope")).unwrap();
    let mut command = std::process::Command::new(folder.path("numascope"));
    folder.isolate(&mut command).args(["-listenAddr", ":0", "live", "true"]);
    let done = Done::of(command.output().unwrap());
    assert!(done.code == 0 && done.out.contains("control  http://127.0.0.1:"), "{} {}", done.out, done.err);
}
