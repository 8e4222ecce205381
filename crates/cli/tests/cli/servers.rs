//! Exports, imported by the servers that they are for: InfluxDB 1, node_exporter, promtool.

use crate::runner::{Done, Folder};
use numakit_testing::until;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// Another program; `None` if it is not installed.
pub fn program(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("NUMAKIT_PEERS").into_iter().chain(std::env::var_os("PATH"));
    let folders: Vec<PathBuf> = folders.flat_map(|f| std::env::split_paths(&f).collect::<Vec<_>>()).collect();
    let found = folders.into_iter().map(|folder| folder.join(name)).find(|path| path.is_file());
    if found.is_none() {
        numakit_skips::SERVERS
            .skip(format_args!("there is no {name}; 'cargo xtask test' fetches it where there is apt-get"));
    }
    found
}

/// A server, which is killed at the end of the test.
pub struct Server {
    child: Child,
    at: SocketAddrV4,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address that nobody else on this machine uses: that of this process among those of the loopback device.
pub fn own_address() -> SocketAddrV4 {
    static PORT: AtomicU16 = AtomicU16::new(20_000);
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    SocketAddrV4::new(Ipv4Addr::new(127, 100 + high, middle, low), PORT.fetch_add(1, Ordering::Relaxed))
}

impl Server {
    pub fn start(command: &mut Command, at: SocketAddrV4) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let listens = || TcpStream::connect(at).is_ok();
        // Processes of a server that was killed hold its memory until they have seen that, and a new one ends at once.
        until!(
            listens() || {
                if child.try_wait().unwrap().is_some() {
                    child = command.spawn().unwrap();
                }
                false
            }
        );
        Self { child, at }
    }

    /// The status and body of a response.
    pub fn ask(&self, head: &str, body: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        let length = body.len();
        let form = "Content-Type: application/x-www-form-urlencoded";
        let head = format!(
            "{head} HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n{form}\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
    }
}

/// All lines are accepted, as raw values and as rates, and no value is missing.
#[test]
fn influxdb_accepts_raw_values_and_rates_of_the_same_recording() {
    let Some(influxd) = program("influxd") else { return };
    let folder = Folder::new("influxdb");
    folder.run("record -i 2ms -o a.arrows -- sleep 0.3").says(0, "");
    let (address, inner) = (own_address(), own_address());
    let at = |name: &str| folder.path(name).display().to_string();
    let settings = format!(
        "reporting-disabled = true\nbind-address = \"{inner}\"\n[meta]\ndir = {:?}\n[data]\ndir = {:?}\n\
         wal-dir = {:?}\n[http]\nbind-address = \"{address}\"\n[monitor]\nstore-enabled = false\n",
        at("meta"),
        at("data"),
        at("wal")
    );
    std::fs::write(folder.path("influxdb.conf"), settings).unwrap();
    let server =
        Server::start(Command::new(influxd).arg("-config").arg(folder.path("influxdb.conf")), address);
    let (status, answer) = server.ask("POST /query", b"q=CREATE DATABASE d");
    assert_eq!(status, 200, "{answer}");
    for values in ["raw", "rates"] {
        let lines = folder.run(&format!("export a.arrows --to influx --{values}")).out;
        for part in lines.lines().collect::<Vec<_>>().chunks(5000) {
            let (status, answer) = server.ask("POST /write?db=d&precision=ns", part.join("\n").as_bytes());
            assert_eq!(status, 204, "{values}: {answer}");
        }
    }
    let rows = folder.read("a.arrows");
    for (field, expected) in [("pgfault", rows.samples()), ("pgfault_per_second", rows.samples() - 1)] {
        let (_, answer) =
            server.ask("POST /query", format!("db=d&q=SELECT count({field}) FROM vmstat").as_bytes());
        assert!(answer.contains(&format!(",{expected}]")), "{field}, {expected}: {answer}");
    }
    println!("{} samples twice", rows.samples());
}

#[test]
fn promtool_and_the_textfile_collector_accept_exports() {
    let (Some(promtool), Some(exporter)) = (program("promtool"), program("prometheus-node-exporter")) else {
        return;
    };
    let folder = Folder::new("textfile");
    folder.run("record -i 5ms -o a.arrows -- sleep 0.2").says(0, "");
    for values in ["raw", "rates"] {
        let file = format!("{values}/a.prom");
        std::fs::create_dir(folder.path(values)).unwrap();
        folder.run(&format!("export a.arrows --{values} -o {file}")).says(0, "");
        let input = std::fs::File::open(folder.path(&file)).unwrap();
        let checked = Command::new(&promtool).args(["check", "metrics"]).stdin(input).output();
        let checked = Done::of(checked.unwrap());
        assert_eq!((checked.code, checked.out.as_str(), checked.err.as_str()), (0, "", ""), "{values}");

        let address = own_address();
        let mut command = Command::new(&exporter);
        command.args(["--collector.disable-defaults", "--collector.textfile"]);
        command.arg(format!("--web.listen-address={address}"));
        command.arg(format!("--collector.textfile.directory={}", folder.path(values).display()));
        let (status, page) = Server::start(&mut command, address).ask("GET /metrics", b"");
        assert!(status == 200 && page.contains("node_textfile_scrape_error 0"), "{page}");
        let ours = |text: &str| text.lines().filter(|line| line.starts_with("numakit_")).count();
        let written = std::fs::read_to_string(folder.path(&file)).unwrap();
        assert_eq!(ours(&page), ours(&written), "{values}");
        println!("{values}: {} samples", ours(&page));
    }
}
