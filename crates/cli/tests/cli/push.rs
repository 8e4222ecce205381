//! Samples in the engines of others, read back.

use crate::runner::{Folder, Rows};
use crate::servers::{Server, own_address, program};
use numakit_model::Series;
use numakit_recording::Recorder;
use numakit_testing::until;
use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::process::Command;

/// An engine: its program, how it is started, and the URL for its address.
struct Engine {
    program: &'static str,
    start: fn(&mut Command, &Folder, SocketAddrV4),
    url: &'static str,
    /// Whether it has written to disk what it acknowledges.
    is_durable: bool,
}

const INFLUX: Engine = Engine {
    program: "influxd",
    start: start_influx,
    url: "influxdb1+http://ADDRESS?db=d",
    is_durable: true,
};
const PROMETHEUS: Engine = Engine {
    program: "prometheus",
    start: start_prometheus,
    url: "prometheus+http://ADDRESS",
    is_durable: true,
};
const VICTORIA: Engine = Engine {
    program: "victoria-metrics",
    start: start_victoria,
    url: "prometheus+http://ADDRESS",
    is_durable: false,
};

fn start_influx(command: &mut Command, folder: &Folder, address: SocketAddrV4) {
    let file = folder.path("influxdb.conf");
    if !file.exists() {
        let at = |name: &str| folder.path(name).display().to_string();
        let settings = format!(
            "reporting-disabled = true\nbind-address = \"{}\"\n[meta]\ndir = {:?}\n[data]\ndir = {:?}\nwal-dir = {:?}\n\
             [http]\nbind-address = \"{address}\"\n[monitor]\nstore-enabled = false\n",
            own_address(),
            at("meta"),
            at("data"),
            at("wal")
        );
        std::fs::write(&file, settings).unwrap();
    }
    command.arg("-config").arg(file);
}

fn start_prometheus(command: &mut Command, folder: &Folder, address: SocketAddrV4) {
    let file = folder.path("prometheus.yml");
    std::fs::write(&file, "global:\n  scrape_interval: 1h\n").unwrap();
    command.arg(format!("--config.file={}", file.display()));
    command.arg(format!("--storage.tsdb.path={}", folder.path("prometheus").display()));
    command.arg(format!("--web.listen-address={address}")).arg("--web.enable-remote-write-receiver");
}

fn start_victoria(command: &mut Command, folder: &Folder, address: SocketAddrV4) {
    command.arg(format!("-storageDataPath={}", folder.path("victoria").display()));
    command.arg(format!("-httpListenAddr={address}"));
}

impl Engine {
    fn start(&self, folder: &Folder, address: SocketAddrV4) -> Option<Server> {
        let mut command = Command::new(program(self.program)?);
        (self.start)(&mut command, folder, address);
        let server = Server::start(&mut command, address);
        if self.program == "influxd" {
            assert_eq!(server.ask("POST /query", b"q=CREATE DATABASE d").0, 200);
        } else if self.program == "prometheus" {
            until!(server.ask("GET /-/ready", b"").0 == 200);
        }
        Some(server)
    }
}

/// Values by time, in units of `resolution` ns, and by name.
fn values(rows: &Rows, resolution: u64) -> BTreeMap<(u64, String), u64> {
    let names: Vec<String> = rows.header.series.iter().map(Series::name).collect();
    let mut values = BTreeMap::new();
    for batch in &rows.batches {
        for row in 0..batch.len() {
            for (name, column) in names.iter().zip(&batch.columns) {
                let value = column.get(row);
                values.extend(value.map(|value| ((batch.time[row] / resolution, name.clone()), value)));
            }
        }
    }
    values
}

/// What was recorded is what comes back.
pub fn comes_back(folder: &Folder, url: &str, resolution: u64) {
    let recorded = folder.read("a.arrows");
    let host = recorded.header.host.clone();
    let (recorded, mut fetched) = (values(&recorded, resolution), BTreeMap::new());
    // VictoriaMetrics shows samples after some seconds.
    until!({
        let done = folder.run(&format!("fetch {url} --host {host} --from 10min -o back.arrows --force"));
        assert!(done.code == 0 || done.err.contains("there is nothing"), "{}", done.err);
        if done.code == 0 {
            fetched = values(&folder.read("back.arrows"), resolution);
        }
        fetched.len() >= recorded.len()
    });
    assert!(recorded.len() > 1000, "{}", recorded.len());
    let differ: Vec<_> =
        recorded.iter().filter(|(key, value)| fetched.get(*key) != Some(value)).take(3).collect();
    assert!(
        differ.is_empty() && fetched.len() == recorded.len(),
        "{url}: {} of {}: {differ:?}",
        fetched.len(),
        recorded.len()
    );
}

/// Durations of samples, and labels: what other engines do not give back.
pub fn durations_and_labels(folder: &Folder, name: &str) -> (Vec<u64>, Vec<String>) {
    let rows = folder.read(name);
    let durations = rows.batches.iter().flat_map(|batch| batch.took.clone()).collect();
    (durations, rows.labels().into_iter().map(str::to_owned).collect())
}

/// The engine is killed while samples are pushed to it, and started again: all arrive.
fn survives_a_kill(name: &str, engine: &Engine, resolution: u64) {
    let folder = Folder::new(name);
    let address = own_address();
    let url = engine.url.replace("ADDRESS", &address.to_string());
    let Some(server) = engine.start(&folder, address) else { return };
    let recording = folder
        .spawn(&format!("record -i 20ms -e vmstat,node --spool spool --to {url} -o a.arrows -- sleep 6"));
    std::thread::sleep(std::time::Duration::from_secs(2));
    drop(server);
    std::thread::sleep(std::time::Duration::from_secs(1));
    let server = engine.start(&folder, address);
    let done = recording.end();
    done.says(0, "rows sent in");
    assert!(done.err.contains("1 outage") && !done.err.contains("not sent"), "{}", done.err);
    if engine.is_durable {
        comes_back(&folder, &url, resolution);
    }
    // Again changes nothing, but for what the engine has lost.
    folder.run(&format!("push a.arrows --to {url}"));
    comes_back(&folder, &url, resolution);
    drop(server);
}

#[test]
fn influxdb_gives_back_what_it_got_although_it_was_killed() {
    survives_a_kill("push-influxdb", &INFLUX, 1);
}

#[test]
fn prometheus_gives_back_what_it_got_although_it_was_killed() {
    survives_a_kill("push-prometheus", &PROMETHEUS, 1_000_000);
}

#[test]
fn victoria_metrics_gives_back_what_it_got_although_it_was_killed() {
    survives_a_kill("push-victoria", &VICTORIA, 1_000_000);
}

/// A field that the engine has with another type is left out with its reason; nothing else is lost.
#[test]
fn a_field_that_the_engine_has_with_another_type_is_left_out() {
    let folder = Folder::new("push-conflict");
    let address = own_address();
    let Some(server) = INFLUX.start(&folder, address) else { return };
    folder.run("record -i 20ms -e vmstat -o a.arrows -- sleep 1").says(0, "");
    let before = format!("vmstat,kind=counter pgfault=1.5 {}", numakit_sys::clock::utc());
    assert_eq!(server.ask("POST /write?db=d", before.as_bytes()).0, 204);
    let url = format!("influxdb1+http://{address}?db=d");
    let done = folder.run(&format!("push a.arrows --to {url}"));
    done.says(1, "");
    assert!(
        done.out.contains("values refused: vmstat.pgfault: status 400: ") && done.out.contains("type"),
        "{}",
        done.out
    );
    let recorded = folder.read("a.arrows");
    let host = recorded.header.host.clone();
    folder.run(&format!("fetch {url} --host {host} --from 10min -o back.arrows")).says(0, "");
    let mut expected = values(&recorded, 1);
    let (all, fetched) = (expected.len(), values(&folder.read("back.arrows"), 1));
    expected.retain(|(_, name), _| name != "vmstat.pgfault");
    assert!(expected.len() < all && fetched == expected, "{} of {all}, {}", expected.len(), fetched.len());
}

/// A label of 90 KB with all that formats quote comes back as it was, but for ends of lines, which line protocol cannot have.
#[test]
fn a_giant_label_comes_back() {
    let folder = Folder::new("push-label");
    let address = own_address();
    let Some(_server) = INFLUX.start(&folder, address) else { return };
    folder.run("record -i 20ms -e vmstat.pgfault -o small.arrows -- sleep 0.3").says(0, "");
    let small = folder.read("small.arrows");
    let recorder = Recorder::create(&folder.path("a.arrows"), &small.header, false).unwrap();
    let (mut row, giant) = (vec![None; small.header.series.len()], "\u{202e}\"\\=,x\n".repeat(10_000));
    for batch in &small.batches {
        for at in (0..batch.len()).filter(|at| batch.label[*at].is_none()) {
            batch.row(at, &mut row);
            recorder.ring().push(batch.time[at], batch.took[at], &row);
        }
    }
    assert!(recorder.ring().push_label(numakit_sys::clock::utc(), &giant));
    recorder.finish().unwrap();
    let host = &small.header.host;
    for (url, label) in [
        (format!("influxdb1+http://{address}?db=d"), giant.replace('\n', " ")),
        ("parquet:fleet".to_owned(), giant.clone()),
    ] {
        folder.run(&format!("push a.arrows --to {url}")).says(0, "");
        folder.run(&format!("fetch {url} --host {host} --from 10min -o back.arrows --force")).says(0, "");
        let back = folder.read("back.arrows");
        assert_eq!(values(&back, 1), values(&small, 1), "{url}");
        let found = back.labels();
        assert!(found == [label.as_str()], "{url}: {:?}", found.first().map(|found| found.get(..100)));
    }
}

#[test]
fn a_folder_of_parquet_gives_back_every_row_and_label() {
    let folder = Folder::new("push-parquet");
    folder.run("record -i 10ms -o a.arrows -- sleep 0.5").says(0, "");
    for _ in 0..2 {
        folder.run("push a.arrows --to parquet:fleet").says(0, "");
        comes_back(&folder, "parquet:fleet", 1);
    }
    assert_eq!(folder.read("a.arrows").labels(), folder.read("back.arrows").labels());
    folder.run("fetch parquet:fleet --host none --from 1h -o x.arrows").says(2, "there are ");
    folder.run("show back.arrows").says(0, "");
}

#[test]
fn what_an_engine_does_not_take_waits_in_the_spool() {
    let folder = Folder::new("push-spool");
    let url = format!("influxdb1+http://{}?db=d", own_address());
    let line = format!("record -i 20ms -e vmstat --spool spool --to {url} -o a.arrows -- sleep 0.5");
    folder.run(&line).says(0, "rows not sent: cannot connect");
    folder.run("push --spool spool --to parquet:fleet").says(0, "");
    comes_back(&folder, "parquet:fleet", 1);
    let done = folder.run(&format!("push a.arrows --retry-for 1s --to {url}"));
    done.says(2, "the engine takes nothing");
    assert!(done.err.contains("trying again"), "{}", done.err);
}

#[test]
fn a_wrong_engine_is_refused_with_the_fix() {
    let folder = Folder::new("push-requests");
    folder.run("record -e pgfault -o a.arrows -- true").says(0, "");
    for (line, says) in [
        ("push a.arrows --to http://h", "influxdb1+http://"),
        ("push a.arrows --to influxdb1+http://h", "add 'db=NAME'"),
        ("push a.arrows --to prometheus+http://u:p@h", "--password-file"),
        ("push --to parquet:p", "required"),
        ("push a.arrows --spool s --to parquet:p", "omit --spool"),
        ("push a.arrows --to parquet:p --token-file none", "cannot use none"),
        ("push a.arrows --to parquet:a.arrows --retry-for 1s", "the engine takes nothing"),
        ("record --spool s -o b.arrows -- true", "give --to URL"),
        ("fetch otlp+http://h:1 --host a --from 1h -o b.arrows", "it reads influxdb1"),
        ("fetch parquet:p --host a --from x -o b.arrows", "2026-11-28T18:00"),
        ("fetch parquet:p --host a --from 1h --to 2h -o b.arrows", "later --to"),
    ] {
        folder.run(line).says(2, says);
    }
}
