//! Files of a server: where it records, and what remains of it.

use crate::live::Address;
use crate::runner::{Folder, Mounted, Started};
use numakit_testing::until;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

/// A NUMAscope recording: two series of two rows.
const ORIGINAL: &str = "[[\"links\",2,1000],\n[\"bytes:0\",\"bytes:1\"],\n[1,5,6],\n[2,5,6]\n]\n";
const LIVE: &str = "live --no-open --listen 127.0.0.1:0 -i 10ms -e pgfault";

fn names(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn recordings_by_command_stay_below_their_folder() {
    let folder = Folder::new("live-below");
    std::fs::create_dir_all(folder.path("rec/in")).unwrap();
    symlink("..", folder.path("rec/out")).unwrap();
    symlink("../../victim", folder.path("rec/in/z.arrows.tail")).unwrap();
    let started = folder.start(&format!("{LIVE} --recordings rec"));
    let rec = folder.path("rec").canonicalize().unwrap();
    let fix = format!("choose a path below {}", rec.display());
    for outside in
        ["x.arrows", "rec/../x.arrows", "rec/out/x.arrows", "rec/in/../../x.arrows", "/tmp/x.arrows"]
    {
        folder.run(&format!("ctl record {outside}")).says(2, &fix);
    }
    assert_ne!(folder.run("ctl record rec/in/z.arrows").code, 0);
    assert_eq!(names(&folder.0), ["rec", "run"]);
    started.echo("record x.arrows\n");
    until!(rec.join("x.arrows").exists());
    folder.run("ctl record rec/x.arrows").says(2, &format!("{}/x.arrows exists", rec.display()));
    let begun = folder.run("ctl record rec/in/y.arrows");
    assert_eq!(begun.out, format!("recording to {}/in/y.arrows\n", rec.display()), "{}", begun.err);
    assert!(folder.run("ctl status").out.contains(&format!("recording to {}/in/y.arrows,", rec.display())));
    folder.run("ctl stop").says(0, "");
    assert_eq!(started.end().code, 0);
    assert_eq!(names(&rec.join("in")), ["y.arrows", "z.arrows.tail"]);
    assert!(folder.read("rec/x.arrows").damage.is_none() && folder.read("rec/in/y.arrows").damage.is_none());
}

#[test]
fn the_default_folder_is_the_current_one() {
    let folder = Folder::new("live-here");
    let started = folder.start(LIVE);
    folder.run("ctl record ../x.arrows").says(2, "below");
    assert_eq!(folder.run("ctl record x.arrows").code, 0);
    folder.run("ctl stop").says(0, "");
    assert_eq!(started.end().code, 0);
    assert!(folder.read("x.arrows").damage.is_none());
    folder.run(&format!("{LIVE} --recordings none")).says(2, "cannot use --recordings none");
}

/// A server whose temporary folder is this one.
fn serve(folder: &Folder, temporary: &str) -> (Started, Address) {
    let mut command = folder.numa(LIVE);
    command.env("TMPDIR", folder.path(temporary)).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = Started::of(&mut command);
    let address = Address::of(server.child());
    (server, address)
}

fn send(address: &Address, body: &str) -> String {
    let answer = address.ask("POST /session", &format!("{{\"token\":\"{}\"}}", address.key));
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = cookie.split(';').next().unwrap();
    address.ask(&format!("POST /recordings?name=b.json HTTP/1.1\r\nCookie: {cookie}\r\nX:"), body)
}

#[test]
fn nothing_is_left_of_a_killed_server() {
    let folder = Folder::new("live-killed");
    std::fs::create_dir(folder.path("tmp")).unwrap();
    let (server, address) = serve(&folder, "tmp");
    let answer = send(&address, ORIGINAL);
    assert!(answer.ends_with("{\"source\":1}"), "{answer}");
    assert_eq!(names(&folder.path("tmp")), Vec::<String>::new(), "the uploaded file has no name");
    let killed = ["fifo", "sock"].map(|ending| format!("{}.{ending}", server.id()));
    drop(server);
    assert_eq!(names(&folder.path("run/numakit")), killed);
    let started = folder.start(LIVE);
    let own = ["fifo", "sock"].map(|ending| format!("{}.{ending}", started.id()));
    assert_eq!(names(&folder.path("run/numakit")), own, "the next one removes what is left");
    folder.run("ctl stop").says(0, "");
    assert_eq!(started.end().code, 0);
    assert_eq!(names(&folder.path("run/numakit")), Vec::<String>::new());
}

#[test]
fn a_full_temporary_folder_is_reported_and_the_server_continues() {
    let folder = Folder::new("live-full");
    let Some(_mounted) = Mounted::at(&folder, "small", "size=256k") else { return };
    let (server, address) = serve(&folder, "small");
    let answer = send(&address, &" ".repeat(4 << 20));
    let after = send(&address, ORIGINAL);
    server.signal("KILL");
    let done = server.end();
    assert!(answer.starts_with("HTTP/1.1 507") && answer.contains("start numa with TMPDIR"), "{answer}");
    assert!(after.ends_with("{\"source\":1}"), "{after} {}", done.err);
}

#[test]
fn a_low_limit_of_open_files_does_not_block_clients() {
    let folder = Folder::new("live-limit");
    let numa = env!("CARGO_BIN_EXE_numa");
    let mut command = Command::new("sh");
    folder.isolate(&mut command).args(["-c", &format!("ulimit -n 80 && exec {numa} {LIVE}")]);
    let mut server = Started::of(command.stdout(Stdio::piped()).stderr(Stdio::null()));
    let address = Address::of(server.child());
    let held: Vec<_> = (0..200).map(|_| std::net::TcpStream::connect(&address.at).unwrap()).collect();
    let answer = address.ask("GET /", "");
    drop(held);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn unwritable_addresses_are_an_error() {
    let folder = Folder::new("live-stdout");
    std::fs::write(folder.path("b.json"), ORIGINAL).unwrap();
    for line in [&format!("{LIVE} -- true"), "show --page --no-open --listen 127.0.0.1:0 b.json"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let server = Started::of(folder.numa(line).stdout(full).stderr(Stdio::piped()));
        server.end().says(1, "cannot write to standard output");
    }
}

#[test]
fn invalid_names_paths_and_certificates_are_refused() {
    let folder = Folder::new("live-front");
    for (options, says) in [
        ("--trusted-host https://a.example", "write it as in the address of the page"),
        ("--base-path numa", "write it as /numa"),
        ("--base-path /a/../b", "write it as /numa"),
        ("--tls-cert a.pem", "--tls-key"),
        ("--tls-cert a.pem --tls-key a.key", "--tls-cert a.pem: No such file"),
    ] {
        folder.run(&format!("{LIVE} {options}")).says(2, says);
    }
}

#[test]
fn the_addresses_behind_a_proxy_are_printed() {
    let folder = Folder::new("live-proxy");
    let options = "--trusted-host numa.example.org --base-path /numa/";
    let done = folder.run(&format!("{LIVE} {options} -- true"));
    let control = done.out.lines().next().unwrap();
    let (at, key) = control.split_once("/numa/#").unwrap();
    assert!(at.starts_with("control  http://127.0.0.1:"), "{control}");
    let through = format!("via numa.example.org:\n  control  https://numa.example.org/numa/#{key}\n");
    assert!(done.out.contains(&through), "{}", done.out);
}
