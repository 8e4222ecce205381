//! Engines that are too large for the first tier.

use crate::push_otlp::CHECK;
use crate::runner::{Done, Folder};
use crate::scripted::{Scripted, answer};
use crate::servers::{Server, own_address, program};
use numakit_testing::until;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// What `cargo xtask test --thorough` fetches.
fn engines() -> Option<PathBuf> {
    let folder = std::env::var_os("NUMAKIT_ENGINES").map(PathBuf::from);
    if folder.is_none() {
        numakit_skips::ENGINES.skip("NUMAKIT_ENGINES names no folder; 'cargo xtask test --thorough' sets it");
    }
    folder
}

/// An engine has what the recording has.
fn has_all(folder: &Folder, engine: &str, what: &str) {
    let Some(python) = std::env::var_os("NUMAKIT_PYTHON") else {
        return numakit_skips::PYTHON.skip_part("NUMAKIT_PYTHON names no python with the packages");
    };
    let mut command = Command::new(python);
    let packages = std::env::var_os("NUMAKIT_ENGINES").map(|engines| PathBuf::from(engines).join("python"));
    command
        .args([CHECK, engine, "a.arrows", what])
        .current_dir(&folder.0)
        .envs(packages.map(|p| ("PYTHONPATH", p)));
    let done = Done::of(command.output().unwrap());
    assert!(done.code == 0, "{}{}", done.out, done.err);
    println!("{}", done.out.trim_end());
}

fn start_questdb(folder: &Folder, address: SocketAddrV4) -> Option<Server> {
    let (engines, java) = (engines()?, program("java")?);
    std::fs::create_dir_all(folder.path("questdb/conf")).unwrap();
    let settings = format!(
        "http.bind.to={address}\nhttp.min.enabled=false\nline.tcp.enabled=false\npg.enabled=false\n\
         telemetry.enabled=false\nshared.worker.count=1\nhttp.worker.count=1\n"
    );
    std::fs::write(folder.path("questdb/conf/server.conf"), settings).unwrap();
    let mut command = Command::new(java);
    command.arg("-Xmx256m").arg("-p").arg(engines.join("questdb.jar"));
    command.args(["-m", "io.questdb/io.questdb.ServerMain", "-d"]).arg(folder.path("questdb"));
    Some(Server::start(&mut command, address))
}

/// Whether QuestDB shows enough rows. It keeps the connection open after its answer.
fn has_rows(address: SocketAddrV4) -> bool {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let query = "select%20count()%20%3E%2040%20from%20vmstat";
    write!(stream, "GET /exec?query={query} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.find(|line| line.contains("\"query\"")).is_some_and(|line| line.contains("[[true]]"))
}

#[test]
#[ignore = "thorough: QuestDB, started twice, 30 seconds"]
fn questdb_has_every_row_once_although_it_was_killed() {
    let folder = Folder::new("push-questdb");
    let address = own_address();
    let Some(server) = start_questdb(&folder, address) else { return };
    let line = format!("record -i 20ms --spool spool --to questdb+http://{address} -o a.arrows");
    let recording = folder.spawn(&line);
    // QuestDB 9.1 damages a table for good if it is killed while it makes it.
    until!(has_rows(address));
    drop(server);
    std::thread::sleep(Duration::from_secs(1));
    let _server = start_questdb(&folder, address);
    until!(has_rows(address));
    recording.signal("INT");
    let done = recording.end();
    done.says(0, "1 outage");
    assert!(!done.err.contains("not sent"), "{}", done.err);
    has_all(&folder, "questdb", &address.to_string());
    // A second time changes nothing.
    folder.run(&format!("push a.arrows --to questdb+http://{address}")).says(0, "");
    has_all(&folder, "questdb", &address.to_string());
}

#[test]
#[ignore = "thorough: ClickHouse as a library, 10 seconds"]
fn clickhouse_runs_what_it_is_sent_and_has_every_value_once() {
    let folder = Folder::new("push-clickhouse");
    if engines().is_none() {
        return;
    }
    folder.run("record -i 5ms -o a.arrows -- sleep 0.5").says(0, "");
    let server = Scripted::start(|_, _, to| answer(to, "200 OK", b""));
    folder.run(&format!("push a.arrows --to clickhouse+http://{}", server.address)).says(0, "");
    std::fs::create_dir(folder.path("bodies")).unwrap();
    for (number, asked) in server.asked().iter().enumerate() {
        std::fs::write(folder.path(&format!("bodies/{number:04}")), &asked.body).unwrap();
    }
    has_all(&folder, "clickhouse", "bodies");
}

#[test]
#[ignore = "thorough: ClickHouse as a library, 10 seconds"]
fn duckdb_and_clickhouse_read_a_folder_of_parquet() {
    let folder = Folder::new("push-parquet-others");
    if engines().is_none() {
        return;
    }
    folder.run("record -i 5ms -o a.arrows -- sleep 0.5").says(0, "");
    folder.run("push a.arrows --to parquet:fleet").says(0, "");
    for engine in ["duckdb", "chdb"] {
        has_all(&folder, engine, "fleet");
    }
}
