//! Whether servers that are moved to another node and back while they serve answer every request, and keep their contents and pages.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::{Boot, Failure, Guest, Shape, or_skipped, programs};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Counts the pages of the processes `$P` with a name for the moment, and moves them to node 2 and back.
const MOVES: &str = "maps() { echo maps $1; for p in $P; do cat /proc/$p/numa_maps; done; }; \
    maps before; numa move --pid $M --nodes 2 --for 10s; echo code $?; maps there; \
    numa move --pid $M --back; echo code $?; maps back";

/// A guest with four nodes and these programs of this machine.
fn guest(names: &[&str]) -> Result<Guest, Failure> {
    let mut guest = Guest::new(Shape::named("four")?)
        .timeout(Duration::from_secs(900))
        .program(&programs::numa()?)
        .step("quiet", &["sh", "-c", "echo 0 >/proc/sys/kernel/numa_balancing"])
        .step("small", &["sh", "-c", "echo never >/sys/kernel/mm/transparent_hugepage/enabled"]);
    for name in names {
        let found = programs::of_host(name).ok_or_else(|| Failure::NotFound((*name).to_owned()))?;
        guest = guest.program(&found);
    }
    Ok(guest)
}

/// Pages by node at a moment.
fn pages(text: &str, moment: &str) -> BTreeMap<u32, u64> {
    let mut nodes = BTreeMap::new();
    let lines = text.lines().skip_while(|line| *line != format!("maps {moment}")).skip(1);
    for line in lines.take_while(|line| !line.starts_with("code ") && !line.starts_with("maps ")) {
        // What is written once and kept: files are in the page cache, whose pages come and go.
        if !line.contains("anon=") {
            continue;
        }
        for (node, count) in line.split(' ').filter_map(|word| word.strip_prefix('N')?.split_once('=')) {
            *nodes.entry(node.parse().unwrap()).or_default() += count.parse::<u64>().unwrap();
        }
    }
    nodes
}

/// What a step printed behind a word.
fn after<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    text.lines().filter_map(|line| line.strip_prefix(word)).map(str::trim).collect()
}

/// No page is lost on the way to node 2 and back, and what moved was on node 0.
fn check_pages(text: &str) {
    let [before, there, back] = ["before", "there", "back"].map(|moment| pages(text, moment));
    println!("{before:?} {there:?} {back:?}");
    let all = |pages: &BTreeMap<u32, u64>| pages.values().sum::<u64>();
    let on = |pages: &BTreeMap<u32, u64>, node: u32| pages.get(&node).copied().unwrap_or(0);
    // A server that serves may take a few more pages.
    assert!(all(&there) >= all(&before) && all(&back) >= all(&there), "pages are lost");
    assert!(all(&back) - all(&before) <= all(&before) / 20, "pages are counted twice");
    assert!(on(&there, 2) > on(&before, 2) + 500, "little moved");
    assert!(on(&back, 0) + 100 > on(&there, 0) + (on(&there, 2) - on(&before, 2)), "some did not come back");
}

#[test]
#[ignore = "thorough: a Redis under load on four nodes, 3 minutes"]
fn a_redis_that_moves_answers_and_keeps_its_contents() {
    let boot = redis();
    let Some(boot) = or_skipped(&boot) else { return };
    let text = boot["redis"].succeeded();
    println!("{text}");
    check_pages(&text);
    let digests = after(&text, "digest ");
    assert!(digests.len() == 3 && digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
    assert!(digests[0].len() == 40 && digests[0] != "0".repeat(40), "{digests:?}");
    let [answers] = after(&text, "answers ")[..] else { panic!("no answers: {text}") };
    let (count, value) = answers.split_once(' ').unwrap();
    assert_eq!(value, "seven", "a reply was something else");
    assert!(count.parse::<u64>().unwrap() > 500, "{answers}");
    let [first, last] = after(&text, "keys ")[..] else { panic!("{text}") };
    assert_eq!(first, last);
    assert!(first.parse::<u64>().unwrap() > 10_000, "{first}");
    assert_eq!(after(&text, "refused "), ["0"]);
    assert!(after(&text, "rounds ")[0].parse::<u64>().unwrap() > 2, "{text}");
}

/// Redis with some 17,000 keys. A client asks for one of them again and again, while others ask for all.
fn redis() -> Result<Boot, Failure> {
    let redis = "export MALLOC_CONF=dirty_decay_ms:-1,muzzy_decay_ms:-1; rm -f stop; r='redis-cli -s /tmp/r'; \
        taskset 1 redis-server --port 0 --unixsocket /tmp/r --save '' --appendonly no --enable-debug-command yes >log & \
        until [ \"$($r ping 2>/dev/null)\" = PONG ]; do sleep 0.2; done; P=$(pidof redis-server); M=$P; \
        redis-benchmark -s /tmp/r -P 16 -n 40000 -r 20000 -d 400 -q -t set >/dev/null 2>&1; $r set seven seven >/dev/null; \
        taskset -ap ff $P >/dev/null; echo digest $($r debug digest); echo keys $($r dbsize); \
        while [ ! -e stop ]; do $r -r 200 get seven; done >answers & \
        while [ ! -e stop ]; do redis-benchmark -s /tmp/r -c 4 -n 4000 -r 20000 -q -t get >>load 2>&1 || echo failed >>load; done & \
        sleep 10; ";
    let end = "; echo digest $($r debug digest); touch stop; sleep 5; echo digest $($r debug digest); \
        echo answers $(sort answers | uniq -c); echo refused $(grep -ciE 'error|failed|refused' load); echo keys $($r dbsize); \
        echo rounds $(grep -c 'requests per second' load); $r shutdown nosave; sleep 1";
    guest(&["redis-server", "redis-cli", "redis-benchmark", "taskset"])?
        .step("redis", &["sh", "-c", &format!("{redis}{MOVES}{end}")])
        .boot()
}

#[test]
#[ignore = "thorough: PostgreSQL under pgbench on four nodes, 5 minutes"]
fn a_postgresql_that_moves_answers_and_keeps_its_contents() {
    let boot = postgresql();
    let Some(boot) = or_skipped(&boot) else { return };
    let text = boot["postgresql"].succeeded();
    println!("{text}");
    check_pages(&text);
    let sums = after(&text, "sum ");
    assert!(sums.len() == 2 && sums[0] == sums[1] && sums[0].starts_with("20000 "), "{sums:?}");
    assert_eq!(after(&text, "number of failed transactions: "), ["0 (0.000%)"]);
    let [asked] = after(&text, "number of transactions actually processed: ")[..] else { panic!("{text}") };
    assert!(asked.parse::<u64>().unwrap() > 200, "{asked}");
    assert_eq!(after(&text, "pgbench ended with "), ["0"]);
}

/// The user of PostgreSQL, which refuses to run as root.
const AS_OWNER: &str = "--reuid 1000 --regid 1000 --clear-groups";

/// The newest version of PostgreSQL of this machine. What is in the search path are scripts, which a guest cannot run.
fn postgresql_folder() -> Result<PathBuf, Failure> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions.map(|version| version.path()).filter(|path| path.join("bin/initdb").exists()).max();
    newest.ok_or_else(|| Failure::NotFound("postgres".to_owned()))
}

/// An archive of a new cluster of databases, made here: a guest lacks most of what that needs, and the time zone of its configuration.
fn cluster(initdb: &Path) -> Result<PathBuf, Failure> {
    let dir = std::env::temp_dir().join(format!("numakit-cluster-{}", std::process::id()));
    let script = format!(
        "mkdir -p {0} && chown 1000:1000 {0} && cd {0} && setpriv {AS_OWNER} {1} -D {0}/data -U owner -A trust --no-sync --no-locale -E UTF8 >/dev/null && : >{0}/data/postgresql.conf && \
         tar cf {0}.tar data; code=$?; rm -rf {0}; exit $code",
        dir.display(),
        initdb.display()
    );
    let made = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Ok(dir.with_extension("tar"))
}

/// PostgreSQL with a table of 20,000 rows, of which two clients read.
fn postgresql() -> Result<Boot, Failure> {
    let mut guest = guest(&["setpriv", "taskset"])?;
    let folder = postgresql_folder()?;
    for name in ["postgres", "psql", "pgbench"] {
        guest = guest.program(&folder.join("bin").join(name));
    }
    let share = Path::new("/usr/share/postgresql").join(folder.file_name().unwrap());
    let cluster = cluster(&folder.join("bin/initdb"))?;
    let step = format!(
        "s() {{ /usr/bin/setpriv {AS_OWNER} \"$@\"; }}; mkdir -p /tmp/pg /usr/lib && tar xf /tmp/cluster.tar -C /tmp/pg; rm /tmp/cluster.tar; \
         chown -R 1000:1000 /tmp/pg; echo 'owner:x:1000:1000::/tmp/pg:/bin/sh' >>/etc/passwd; \
         taskset 1 /usr/bin/setpriv {AS_OWNER} postgres -D /tmp/pg/data -k /tmp/pg -h '' -c timezone=GMT -c log_timezone=GMT \
         -c fsync=off -c autovacuum=off -c shared_buffers=16MB >/tmp/pg-log 2>&1 & \
         q() {{ s psql -h /tmp/pg -U owner -d postgres -Atc \"$1\"; }}; n=0; \
         until q 'select 1' >/dev/null 2>&1; do sleep 1; n=$((n+1)); [ $n -lt 60 ] || {{ cat /tmp/pg-log; exit 1; }}; done; \
         M=$(head -n 1 /tmp/pg/data/postmaster.pid); \
         q 'create table pgbench_accounts(aid int primary key, bid int, abalance int, filler char(84)); \
         insert into pgbench_accounts select i, 1, i * 7, i::text from generate_series(1, 20000) i; \
         create table pgbench_branches(bid int primary key); insert into pgbench_branches values (1)' >/dev/null; \
         sum() {{ echo sum $(q \"select count(*) || chr(32) || md5(string_agg(a::text, chr(10) order by aid)) from pgbench_accounts a\"); }}; \
         sum; echo '\\set aid random(1, 20000)' >/tmp/read.sql; \
         echo 'select abalance from pgbench_accounts where aid = :aid;' >>/tmp/read.sql; \
         s pgbench -h /tmp/pg -U owner -n -c 2 -j 1 -T 60 -f /tmp/read.sql postgres >load 2>&1 & B=$!; sleep 15; \
         taskset -ap ff $M >/dev/null; for p in $(pidof postgres); do taskset -ap ff $p >/dev/null; done; P=$(pidof postgres); "
    );
    let end = "; wait $B; echo pgbench ended with $?; cat load; sum; kill -INT $M; sleep 2";
    let booted = guest
        .file(&cluster, "/tmp/cluster.tar")
        .file(&share, &share.to_string_lossy())
        .step("postgresql", &["sh", "-c", &format!("{step}{MOVES}{end}")])
        .boot();
    std::fs::remove_file(&cluster).unwrap();
    booted
}
