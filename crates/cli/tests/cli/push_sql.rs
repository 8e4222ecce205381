//! Samples in PostgreSQL, read back.

use crate::push::{comes_back, durations_and_labels};
use crate::runner::{Done, Folder};
use crate::servers::{Server, own_address, program};
use numakit_recording::Recorder;
use numakit_testing::until;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A database that is running, with its data in the folder of the test.
struct Postgres {
    folder: Folder,
    programs: PathBuf,
    address: SocketAddrV4,
    server: Option<Server>,
}

/// The folder with PostgreSQL's programs, which Debian keeps out of PATH.
fn programs() -> Option<PathBuf> {
    let versions =
        |root: &Path| std::fs::read_dir(root.join("usr/lib/postgresql")).into_iter().flatten().flatten();
    let roots = std::env::var_os("NUMAKIT_DATABASES").map(|peers| PathBuf::from(peers).join("postgresql"));
    let roots = roots.into_iter().chain([PathBuf::from("/")]);
    let mut found =
        roots.flat_map(|root| versions(&root).map(|version| version.path().join("bin")).collect::<Vec<_>>());
    found
        .find(|folder| folder.join("postgres").is_file())
        .or_else(|| program("postgres")?.parent().map(Path::to_owned))
}

/// A program of PostgreSQL. None runs as root: for root, it runs as another user of a user namespace, who may do the same.
fn command(programs: &Path, name: &str) -> Command {
    let path = programs.join(name);
    let mut command = match numakit_sys::user::id() {
        0 => Command::new("unshare"),
        _ => Command::new(&path),
    };
    if numakit_sys::user::id() == 0 {
        command.args(["--user", "--map-user=1000", "--map-group=1000"]).arg(&path);
    }
    command.envs(libraries(programs)).env("LC_ALL", "C");
    command
}

/// The variable for the libraries of a package that is unpacked beside its programs.
fn libraries(programs: &Path) -> Option<(&'static str, PathBuf)> {
    let libraries = programs.ancestors().nth(3)?.join("x86_64-linux-gnu");
    (!programs.starts_with("/usr") && libraries.is_dir()).then_some(("LD_LIBRARY_PATH", libraries))
}

impl Postgres {
    /// With one database, d, and one user, numa, who has a password.
    fn new(name: &str) -> Option<Self> {
        let programs = programs()?;
        let folder = Folder::new(name);
        std::fs::write(folder.path("pw"), "right\n").unwrap();
        std::fs::write(folder.path("numa.password"), "numa:right\n").unwrap();
        let mut init = command(&programs, "initdb");
        init.args(["--auth=scram-sha-256", "--username=numa", "--no-sync", "--encoding=UTF8", "--pwfile"]);
        let made = Done::of(init.arg(folder.path("pw")).arg(folder.path("data")).output().unwrap());
        if made.code != 0 && made.err.contains("unshare") {
            numakit_skips::PRIVILEGES.skip(format_args!("PostgreSQL refuses root: {}", made.err.trim()));
            return None;
        }
        made.says(0, "");
        let mut new = Self { folder, programs, address: own_address(), server: None };
        new.start();
        new.sql("postgres", "create database d");
        Some(new)
    }

    /// Starts it; after a kill, it waits for what its processes have left.
    fn start(&mut self) {
        let mut server = command(&self.programs, "postgres");
        server.arg("-D").arg(self.folder.path("data")).args(["-k", "", "-c", "fsync=off", "-c", "jit=off"]);
        server.args(["-h", &self.address.ip().to_string(), "-p", &self.address.port().to_string()]);
        self.server = Some(Server::start(&mut server, self.address));
        until!(self.psql("postgres", "select 1").code == 0);
    }

    /// Kills it, as the kernel does.
    fn kill(&mut self) {
        drop(self.server.take());
    }

    fn url(&self, rest: &str) -> String {
        format!("postgresql://{}/{rest}", self.address)
    }

    fn psql(&self, database: &str, query: &str) -> Done {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.envs(libraries(&self.programs)).env("PGPASSWORD", "right");
        psql.args(["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "numa", "-d", database, "-c", query]);
        psql.args(["-h", &self.address.ip().to_string(), "-p", &self.address.port().to_string()]);
        Done::of(psql.output().unwrap())
    }

    /// What a query prints.
    fn sql(&self, database: &str, query: &str) -> String {
        let done = self.psql(database, query);
        done.says(0, "");
        done.out.trim().to_owned()
    }

    fn push(&self, words: &str) -> Done {
        self.folder.run(&format!("push {words} --to {}", self.url("d")))
    }
}

/// The examples of the guide.
fn queries_of_the_guide() -> impl Iterator<Item = &'static str> {
    let guide = include_str!("../../../../docs/guide/push.md");
    let block = guide.split("<!-- sql -->\n```sql\n").nth(1).unwrap().split("```").next().unwrap();
    let queries: Vec<_> = block.split(';').map(str::trim).filter(|query| !query.is_empty()).collect();
    assert!(queries.len() >= 3, "{queries:?}");
    queries.into_iter()
}

const PASSWORD: &str = "--password-file numa.password";

#[test]
fn postgresql_gives_back_what_it_got_although_it_was_killed() {
    let Some(mut postgres) = Postgres::new("push-postgresql") else { return };
    let to = format!("{} {PASSWORD}", postgres.url("d"));
    let recording = postgres
        .folder
        .spawn(&format!("record -i 20ms -e vmstat,node --spool spool --to {to} -o a.arrows -- sleep 6"));
    std::thread::sleep(Duration::from_secs(2));
    postgres.kill();
    std::thread::sleep(Duration::from_secs(1));
    postgres.start();
    let done = recording.end();
    done.says(0, "rows sent in");
    assert!(done.err.contains("1 outage") && !done.err.contains("not sent"), "{}", done.err);
    comes_back(&postgres.folder, &to, 1);
    let folder = &postgres.folder;
    assert!(durations_and_labels(folder, "a.arrows") == durations_and_labels(folder, "back.arrows"));
    for query in queries_of_the_guide() {
        let rows = postgres.sql("d", query);
        assert!(rows.lines().any(|row| row.contains('|') && !row.ends_with('|')), "{query}: {rows}");
    }
    let count = || postgres.sql("d", "select count(*), sum(bits) from numa_values");
    let before = count();
    postgres.push(&format!("a.arrows {PASSWORD}")).says(0, "");
    assert_eq!(count(), before, "sending again changes nothing");
}

/// The process of the drivers that this one has started.
fn drivers_of(process: u32) -> Option<u32> {
    std::fs::read_dir(format!("/proc/{process}/task")).ok()?.flatten().find_map(|task| {
        let text = std::fs::read_to_string(task.path().join("children")).ok()?;
        let is_driver = |child: &&str| {
            std::fs::read_to_string(format!("/proc/{child}/comm"))
                .is_ok_and(|name| name.trim() == "numa-drivers")
        };
        text.split_whitespace().find(is_driver)?.parse().ok()
    })
}

/// Where nothing was stopped, the program of the drivers is started again; and it ends when numa does.
#[test]
fn drivers_are_started_again_and_end_with_numa() {
    let Some(postgres) = Postgres::new("push-drivers") else { return };
    let to = format!("{} {PASSWORD}", postgres.url("d"));
    let line = format!("record -i 20ms -e vmstat --spool spool --to {to} -o a.arrows --force -- sleep");
    let recording = postgres.folder.spawn(&format!("{line} 4"));
    let mut first = None;
    until!({
        first = drivers_of(recording.id());
        first.is_some() && postgres.sql("d", "select to_regclass('numa_values') is not null") == "t"
    });
    let first = first.unwrap();
    for file in ["cmdline", "environ"] {
        let text = std::fs::read(format!("/proc/{first}/{file}")).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains("right"), "the password is in {file}");
    }
    assert!(Command::new("kill").args(["-9", &first.to_string()]).status().unwrap().success());
    let done = recording.end();
    done.says(0, "numa-drivers has ended (signal: 9 (SIGKILL)); trying again");
    assert!(done.err.contains("1 outage") && !done.err.contains("not sent"), "{}", done.err);
    comes_back(&postgres.folder, &to, 1);

    let recording = postgres.folder.spawn(&format!("{line} 60"));
    let mut second = None;
    until!({
        second = drivers_of(recording.id());
        second.is_some()
    });
    recording.signal("KILL");
    until!(!Path::new(&format!("/proc/{}", second.unwrap())).exists());
}

#[test]
fn what_postgresql_refuses_has_its_reason_and_the_fix() {
    let Some(postgres) = Postgres::new("push-refused") else { return };
    let folder = &postgres.folder;
    folder.run("record -e vmstat -o a.arrows -- true").says(0, "");
    std::fs::write(folder.path("wrong"), "numa:wrong\n").unwrap();
    let push = |database: &str, words: &str| {
        folder.run(&format!("push a.arrows --to {} {words}", postgres.url(database)))
    };
    push("d", "--password-file wrong").says(2, "password authentication failed for user \"numa\"");
    push("d", "").says(2, "--password-file");
    push("none", PASSWORD).says(2, "database \"none\" does not exist");
    push("d?sslmode=verify-full", PASSWORD).says(2, "server does not support TLS");
    push("d?sslmode=prefer", PASSWORD).says(2, "write sslmode=disable or verify-full");
    push("", PASSWORD).says(2, "names no DATABASE");
    let user = format!("postgresql://numa:right@{}/d", postgres.address);
    folder.run(&format!("push a.arrows --to {user}")).says(2, "--password-file");
    std::fs::write(folder.path("token"), "right\n").unwrap();
    let user = format!("postgresql://numa@{}/d", postgres.address);
    folder.run(&format!("push a.arrows --to {user} --token-file token")).says(0, "");

    postgres
        .sql("d", "create role reader login password 'right'; revoke create on schema public from public");
    std::fs::write(folder.path("reader"), "reader:right\n").unwrap();
    push("d", "--password-file reader")
        .says(2, "permission denied for table numa_schema (42501); as a superuser of this database");

    for (change, says) in [
        ("alter table numa_values alter bits type numeric", "'numa_values.bits bigint not null' is missing"),
        (
            "alter table numa_values drop constraint numa_values_pkey",
            "'numa_values PRIMARY KEY (series, \"time\")' is missing",
        ),
        (
            "alter table numa_series add note text not null default ''; alter table numa_series alter note drop default",
            "was added",
        ),
        ("insert into numa_schema (version, content) values (2, '{}')", "its tables have version 2"),
        ("drop table numa_schema", "no table numa_schema"),
    ] {
        postgres.sql("postgres", "drop database if exists e");
        postgres.sql("postgres", "create database e");
        push("e", PASSWORD).says(0, "");
        // What users add in their way does no harm.
        postgres.sql("e", "alter table numa_series add colour text; create index on numa_values (time)");
        push("e", PASSWORD).says(0, "");
        postgres.sql("e", &format!("drop view numa; {change}"));
        push("e", PASSWORD).says(2, says);
    }
}

/// A certificate authority in `NAME.crt` and `NAME.key`; false where there is no openssl.
fn authority(folder: &Folder, name: &str) -> bool {
    let line = format!(
        "req -x509 -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.crt -days 2 -subj /CN={name}"
    );
    openssl(folder, &format!("{line} -addext basicConstraints=critical,CA:TRUE"))
}

fn openssl(folder: &Folder, line: &str) -> bool {
    let done = Command::new("openssl").args(line.split_whitespace()).current_dir(&folder.0).output();
    done.is_ok_and(|output| output.status.success())
}

#[test]
fn postgresql_with_tls_is_verified() {
    let Some(mut postgres) = Postgres::new("push-postgresql-tls") else { return };
    let folder = &postgres.folder;
    if !authority(folder, "ca") || !authority(folder, "other") {
        return numakit_skips::TOOLS.skip("there is no openssl");
    }
    std::fs::write(folder.path("names"), format!("subjectAltName=IP:{}", postgres.address.ip())).unwrap();
    assert!(openssl(
        folder,
        "req -newkey rsa:2048 -nodes -keyout data/server.key -out server.csr -subj /CN=db"
    ));
    let signed = "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -extfile names";
    assert!(openssl(folder, &format!("{signed} -days 2 -out data/server.crt")));
    postgres.sql("d", "alter system set ssl = on");
    folder.run("record -e vmstat -o a.arrows -- true").says(0, "");
    postgres.kill();
    postgres.start();
    let push = |rest: &str| postgres.push(&format!("a.arrows {PASSWORD} {rest}"));
    push("--ca ca.crt").says(0, "");
    assert_eq!(postgres.sql("d", "select count(*) from numa_recordings"), "1");
    push("--ca other.crt").says(2, "invalid peer certificate");
    push("--ca none.crt").says(2, "give a file in PEM form with --ca");
    let plain = format!("push a.arrows --to {}?sslmode=disable {PASSWORD} --ca ca.crt", postgres.url("d"));
    postgres.folder.run(&plain).says(2, "omit one of both");
}

/// Values that are larger than PostgreSQL's integers, and labels with what SQL has a meaning for.
#[test]
fn postgresql_keeps_the_largest_values_and_odd_labels() {
    let Some(postgres) = Postgres::new("push-large") else { return };
    let folder = &postgres.folder;
    folder.run("record -e pgfault -o small.arrows -- true").says(0, "");
    let mut header = folder.read("small.arrows").header;
    header.started = 1_795_000_000_000_000_000;
    let values = [0, 1, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX];
    let recorder = Recorder::create(&folder.path("a.arrows"), &header, true).unwrap();
    for (row, value) in (0u64..).zip(values) {
        let time = header.started + row * 1_000_001;
        recorder.ring().push(time, row + 7, &vec![Some(value); header.series.len()]);
        assert!(recorder.ring().push_label(time, "it's {a,\"b\"} \\ NULL \u{1f40d}"));
    }
    // Two samples in one microsecond: the second is refused, and counted.
    let time = header.started + 10_000_000;
    for ns in [0, 1] {
        recorder.ring().push(time + ns, 1, &vec![Some(9); header.series.len()]);
    }
    recorder.finish().unwrap();
    postgres.push(&format!("a.arrows {PASSWORD}")).says(1, "");
    assert_eq!(
        postgres.sql(
            "d",
            "select string_agg(value::text, ' ' order by time) from numa where metric = 'vmstat.pgfault'"
        ),
        "0 1 9223372036854775807 9223372036854775808 18446744073709551615 9"
    );
    let line = format!(
        "fetch {} {PASSWORD} --host {} --from 2026-11-01T00:00 --to 2026-12-01T00:00 -o b.arrows",
        postgres.url("d"),
        header.host
    );
    folder.run(&line).says(0, "");
    let (sent, got) = (folder.read("a.arrows"), folder.read("b.arrows"));
    assert_eq!(got.values("vmstat.pgfault"), sent.values("vmstat.pgfault")[..6]);
    assert_eq!(got.labels(), sent.labels());
    let times = |rows: &crate::runner::Rows| {
        rows.batches.iter().flat_map(|batch| batch.time.clone()).collect::<Vec<_>>()
    };
    let expected = times(&sent);
    assert_eq!(times(&got), expected[..expected.len() - 1]);
}

#[test]
fn without_the_program_of_drivers_the_error_says_where_it_belongs() {
    let folder = Folder::new("push-no-drivers");
    folder.run("record -e vmstat -o a.arrows -- true").says(0, "");
    let numa = folder.program(Path::new(env!("CARGO_BIN_EXE_numa")), "bin-numa", 0o755);
    let mut command = Command::new(numa);
    folder.isolate(&mut command).args(["push", "a.arrows", "--to", "postgresql://h/d"]);
    let done = Done::of(command.output().unwrap());
    done.says(2, "numa-drivers, which is neither");
    assert!(done.err.contains("libexec/numakit/numa-drivers"), "{}", done.err);
}
