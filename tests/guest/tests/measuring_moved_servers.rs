//! Whether servers that are moved to another node and back while they serve answer every request, and keep their contents and pages.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::{Boot, Failure, Guest, Shape, or_skipped, programs};
use std::collections::BTreeMap;
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
