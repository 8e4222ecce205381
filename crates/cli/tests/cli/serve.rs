//! `numa serve`, asked as a Prometheus asks.

use crate::runner::{Done, Folder, Started};
use crate::scripted::{Scripted, answer};
use crate::servers::program;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A server, ended by a signal at the end of the test.
pub struct Serving {
    server: Started,
    pub address: String,
}

impl Serving {
    pub fn start(folder: &Folder, options: &str) -> Self {
        let mut command = folder.numa(&format!("serve --listen 127.0.0.1:0 -i 50ms {options}"));
        let mut server = Started::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let mut line = String::new();
        BufReader::new(server.child().stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit("://").next().and_then(|url| url.strip_suffix("/metrics"));
        let address = address.unwrap_or_else(|| panic!("it printed '{line}'")).to_owned();
        let serving = Self { server, address };
        numakit_testing::until!(serving.ask("/-/ready", "").0 == 200);
        serving
    }

    /// The status, and the headers with the body.
    fn ask(&self, path: &str, headers: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}\r\n", self.address)
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
    }

    fn metrics(&self, headers: &str) -> String {
        let (status, answer) = self.ask("/metrics", headers);
        assert_eq!(status, 200, "{answer}");
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    /// Ends it as systemd does.
    pub fn end(self) -> Done {
        self.server.signal("TERM");
        self.server.end()
    }
}

#[test]
fn scrapes_are_answered_until_a_signal_ends_it() {
    let folder = Folder::new("serve");
    let serving = Serving::start(&folder, "-e vmstat.pgfault");
    let first = serving.metrics("");
    for name in ["numakit_node_memory_bytes{node=\"", "numakit_build_info{", "numakit_vmstat_pgfault_total "]
    {
        assert!(first.contains(&format!("\n{name}")), "{name}: {first}");
    }
    let open = serving.metrics("Accept: application/openmetrics-text; version=1.0.0\r\n");
    assert!(open.ends_with("\n# EOF\n"), "{open}");
    let samples = |text: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix("numakit_samples_total "));
        line.unwrap().parse::<u64>().unwrap()
    };
    numakit_testing::until!(samples(&serving.metrics("")) > samples(&first));
    serving.end().says(0, "");
}

#[test]
fn promtool_finds_nothing_to_say() {
    let Some(promtool) = program("promtool") else { return };
    let folder = Folder::new("serve-lint");
    let serving = Serving::start(&folder, "");
    std::fs::write(folder.path("page"), serving.metrics("")).unwrap();
    serving.end().says(0, "");
    let input = std::fs::File::open(folder.path("page")).unwrap();
    let checked = Done::of(Command::new(promtool).args(["check", "metrics"]).stdin(input).output().unwrap());
    assert_eq!((checked.code, checked.out.as_str(), checked.err.as_str()), (0, "", ""));
}

/// What is scraped is sent to an engine too; an outage is counted, and loses nothing.
#[test]
fn the_samples_of_a_server_are_pushed_too() {
    let folder = Folder::new("serve-push");
    let engine = Scripted::start(|number, _, to| match number {
        2..5 => answer(to, "503 Unavailable", b""),
        _ => answer(to, "204 No Content", b""),
    });
    std::fs::write(folder.path("token"), "s3cr3t\n").unwrap();
    let options = format!(
        "--no-jobs --spool spool --to-token-file token --to influxdb1+http://{}?db=d",
        engine.address
    );
    let serving = Serving::start(&folder, &options);
    let value = |name: &str| {
        let text = serving.metrics("");
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("numakit_push_{name} ")));
        line.unwrap_or_else(|| panic!("{name}: {text}")).parse::<f64>().unwrap()
    };
    numakit_testing::until!(value("outages_total") == 1.0 && value("rows_total") > 60.0);
    assert!(value("down_seconds_total") > 0.1 && value("requests_total") >= 6.0);
    for name in ["refused_values_total", "lost_rows_total"] {
        assert_eq!(value(name), 0.0, "{name}");
    }
    let text = serving.metrics("");
    if let Some(promtool) = program("promtool") {
        std::fs::write(folder.path("page"), &text).unwrap();
        let input = std::fs::File::open(folder.path("page")).unwrap();
        let checked =
            Done::of(Command::new(promtool).args(["check", "metrics"]).stdin(input).output().unwrap());
        assert_eq!((checked.code, checked.out.as_str(), checked.err.as_str()), (0, "", ""));
    }
    let done = serving.end();
    done.says(0, "1 outage");
    assert!(!done.err.contains("not sent") && !done.err.contains("s3cr3t"), "{}", done.err);
    let asked = engine.asked();
    assert!(
        asked.iter().all(|asked| asked.head.contains("authorization: Bearer s3cr3t\r\n")),
        "{}",
        asked[0].head
    );
    let taken = asked.iter().enumerate().filter(|(number, _)| !(2..5).contains(number));
    let text: Vec<String> = taken.map(|(_, asked)| String::from_utf8(asked.body.clone()).unwrap()).collect();
    let lines = text.iter().flat_map(|body| body.lines());
    // A tick that was missed is a row too, with a label.
    let is_row = |line: &&str| {
        line.starts_with("label,") || line.starts_with("vmstat,") && line.contains("kind=counter")
    };
    let rows = lines.filter(is_row).count();
    let sent = done.err.split(" rows sent").next().unwrap().rsplit(' ').next().unwrap().replace(',', "");
    assert_eq!(rows, sent.parse::<usize>().unwrap(), "{}", done.err);
}

#[test]
fn a_wrong_request_to_serve_says_what_to_do() {
    let folder = Folder::new("serve-wrong");
    std::fs::write(folder.path("token"), "0123456789abcdef\n").unwrap();
    let mode = |mode| {
        std::fs::set_permissions(folder.path("token"), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o644);
    for (line, says) in [
        ("serve --listen 0.0.0.0:0", "--insecure if a firewall protects it"),
        ("serve --listen here", "write it as 127.0.0.1:"),
        ("serve --listen 127.0.0.1:0 -e nonsense", "unknown event 'nonsense'"),
        ("serve --listen 127.0.0.1:0 --token-file none", "No such file"),
        ("serve --listen 127.0.0.1:0 --token-file token", "chmod o="),
        ("serve --listen 127.0.0.1:0 --tls-cert x", "--tls-key"),
        ("serve --listen 127.0.0.1:0 -i 0", "interval"),
    ] {
        folder.run(line).says(2, says);
    }
    mode(0o600);
    let serving = Serving::start(&folder, "--token-file token");
    assert_eq!(serving.ask("/metrics", "").0, 401);
    serving.metrics("Authorization: Bearer 0123456789abcdef\r\n");
    let taken = folder.run(&format!("serve --listen {}", serving.address));
    taken.says(2, "in use by another program");
    serving.end().says(0, "refused");
}
