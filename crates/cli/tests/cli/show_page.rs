//! Recordings in the page: served, and in a standalone file.

use crate::live::Address;
use crate::runner::{Done, Folder, Started};
use numakit_testing::until;

/// A NUMAscope recording: two series of two rows.
const ORIGINAL: &str = "[[\"links\",2,1000],\n[\"bytes:0\",\"bytes:1\"],\n[1,5,6],\n[2,5,6]\n]\n";

fn serve(folder: &Folder, files: &str) -> (Started, Address) {
    let mut server = folder.spawn(&format!("show --page --no-open --listen 127.0.0.1:0 {files}"));
    let address = Address::of(server.child());
    (server, address)
}

/// Ends it like Ctrl-C.
fn interrupt(server: Started) -> Done {
    server.signal("INT");
    server.end()
}

fn record(folder: &Folder, name: &str) {
    folder.run(&format!("record -i 5ms -e pgfault -o {name} -- sleep 0.3")).says(0, "samples");
}

#[test]
fn recordings_are_served_to_those_with_the_key() {
    let folder = Folder::new("view");
    record(&folder, "a.arrows");
    std::fs::write(folder.path("b.json"), ORIGINAL).unwrap();
    let (child, address) = serve(&folder, "a.arrows b.json");
    assert!(address.ask("GET /", "").starts_with("HTTP/1.1 200"));
    assert!(address.ask("GET /export.csv?source=0&series=0", "").starts_with("HTTP/1.1 401"));
    let cookie = address.cookie();
    let values = |source: u32| {
        address.ask(
            &format!("GET /export.csv?source={source}&series=0&rows=9000 HTTP/1.1\r\nCookie: {cookie}\r\nX:"),
            "",
        )
    };
    let own = values(0);
    assert!(own.starts_with("HTTP/1.1 200") && own.contains("time,vmstat.pgfault"), "{own}");
    assert!(own.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).count() > 10, "{own}");
    let original = values(1);
    assert!(original.starts_with("HTTP/1.1 200") && original.contains("\ntime,"), "{original}");
    assert!(values(2).starts_with("HTTP/1.1 400"));
    let done = interrupt(child);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.err.contains("GET /export.csv: 401"), "{}", done.err);
}

#[test]
fn a_large_recording_is_opened_behind_its_page() {
    let folder = Folder::new("view-large");
    let rows: String = (1..=60_000).map(|row| format!("[{row},{row}00000,{row}000]\n,")).collect();
    let text = format!("{}{}\n]\n", &ORIGINAL[..ORIGINAL.find("[1,").unwrap()], rows.trim_end_matches(','));
    assert!(text.len() > 1 << 20);
    std::fs::write(folder.path("large.json"), text).unwrap();
    let (child, address) = serve(&folder, "large.json");
    let answer = address.ask("POST /session", &format!("{{\"token\":\"{}\"}}", address.key));
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = cookie.split(';').next().unwrap();
    let request = format!("GET /export.csv?source=0&series=0&rows=90000 HTTP/1.1\r\nCookie: {cookie}\r\nX:");
    until!(address.ask(&request, "").starts_with("HTTP/1.1 200"));
    let values = address.ask(&request, "");
    assert!(values.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).count() > 50_000);
    let done = interrupt(child);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(!done.err.contains("Opening"), "progress is for terminals only: {}", done.err);
    // It can be ended meanwhile.
    let done = interrupt(serve(&folder, "large.json").0);
    assert_eq!(done.code, 0, "{}", done.err);
}

#[test]
fn unreadable_recordings_are_refused_with_the_fix() {
    let folder = Folder::new("view-wrong");
    record(&folder, "a.arrows");
    std::fs::write(folder.path("text"), "no recording").unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    folder
        .run(&format!("show --page --no-open --listen {address} a.arrows"))
        .says(2, "give another port with --listen");
    for out in ["--listen 127.0.0.1:0", "--html o.html"] {
        let view = |file: &str| folder.run(&format!("show --page --history 16MiB {out} {file}"));
        if view("none.arrows").err.contains("built without its web page") {
            numakit_skips::PAGE.skip_part("show --html: this numa has no page");
            continue;
        }
        view("none.arrows").says(2, "none.arrows");
        view("text").says(2, "text");
        view("a.arrows text").says(2, "text");
    }
    folder.run("show --page").says(2, "give a recording or a result: numa show FILE");
    folder.run("show a.arrows --no-open").says(2, "--page");
    folder.run("show --page a.arrows --size 4MiB").says(2, "--html");
    folder.run("show a.arrows --html o.html --listen :0").says(2, "cannot be used with");
    folder.run("show a.arrows --html o.html --size 1KiB").says(2, "at least 1MiB");
    assert!(!folder.path("o.html").exists());
}

#[test]
fn one_file_contains_page_and_recordings() {
    let folder = Folder::new("view-html");
    record(&folder, "a.arrows");
    std::fs::write(folder.path("b.json"), ORIGINAL).unwrap();
    let done = folder.run("show a.arrows b.json --html o.html");
    if done.err.contains("built without its web page") {
        assert!(done.code == 2 && done.err.contains("cargo xtask build") && !folder.path("o.html").exists());
        return numakit_skips::PAGE.skip("this numa has no page");
    }
    let message = "wrote o.html: ";
    assert!(done.code == 0 && done.out.starts_with(message), "{}{}", done.out, done.err);
    assert!(done.out.ends_with(" MiB, every sample of a.arrows; every sample of b.json\n"), "{}", done.out);
    let html = std::fs::read_to_string(folder.path("o.html")).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.contains("default-src 'none'; script-src 'sha256-"));
    folder.run("show a.arrows --html o.html").says(2, "o.html exists; give another name, or --force");
    assert_eq!(std::fs::read_to_string(folder.path("o.html")).unwrap(), html, "it is unchanged");
    assert_eq!(folder.run("show a.arrows --html o.html --force").code, 0);
    assert_ne!(std::fs::read_to_string(folder.path("o.html")).unwrap(), html);
    folder.run("show a.arrows --html no/such/o.html").says(2, "cannot write no/such/o.html");
    let names = std::fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(
        !names.into_iter().any(|name| name.to_string_lossy().starts_with("o.html.")),
        "no partial file is left"
    );
}

#[test]
fn hosts_of_an_engine_are_served_and_what_was_fetched_is_removed() {
    let folder = Folder::new("view-engine");
    record(&folder, "a.arrows");
    folder.run("view parquet:p").says(2, "cannot read p");
    folder.run("show a.arrows --host x").says(2, "give its URL instead of a file");
    folder.run("show a.arrows parquet:p").says(2, "stands beside other files");
    folder.run("push a.arrows --to parquet:p").says(0, "");
    let view = |options: &str| {
        let mut server = folder.spawn(&format!("view parquet:p --no-open --listen 127.0.0.1:0 {options}"));
        let address = Address::of(server.child());
        (server, address)
    };
    let values = |address: &Address, source: u32| {
        let cookie = address.cookie();
        let query = format!("/export.csv?source={source}&series=0&rows=9000");
        address.ask(&format!("GET {query} HTTP/1.1\r\nCookie: {cookie}\r\nX:"), "")
    };
    let (server, address) = view("");
    assert!(values(&address, 0).contains("time,vmstat.pgfault"));
    assert_eq!(interrupt(server).code, 0);
    // Of several hosts, one must be chosen, or some.
    let host = std::fs::read_dir(folder.path("p")).unwrap().next().unwrap().unwrap().path();
    let copied =
        std::process::Command::new("cp").arg("-r").arg(&host).arg(folder.path("p/host=other")).status();
    assert!(copied.unwrap().success());
    folder.run("view parquet:p").says(2, "2 hosts have rows there; choose with --host NAME");
    folder.run("view parquet:p --host none").says(2, "there are ");
    let text = folder.run("show parquet:p --host other");
    assert!(text.code == 0 && text.err.contains("other: "), "{}", text.err);
    let (server, address) = view("--host other --host other");
    assert!([0, 1].into_iter().all(|source| values(&address, source).contains("time,vmstat.pgfault")));
    assert_eq!(interrupt(server).code, 0);
    let left = std::fs::read_dir(folder.path("state/numakit/fetched")).unwrap().count();
    assert_eq!(left, 0);
}
