//! `numa file` on four nodes: where it says that the pages of a file are, the kernel's numa_maps of another process says too,
//! and the nodes have as much more or less; and what may be moved by whom.

use numakit_guest::{Failure, Guest, Part, Shape, programs};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Bytes of a file.
const SIZE: u64 = 16 << 20;

/// Pages of a file.
const PAGES: u64 = SIZE / 4096;

/// Commands that all steps know: a line with a name and what a command prints.
const WORDS: &str = r#"
tell() { name=$1; shift; echo "$name $("$@" 2>&1; echo " status $?")" | tr '\n' ' '; echo; }
cached() { sed -n 's/^Node [0-9]* FilePages: *\([0-9]*\) kB/\1/p' /sys/devices/system/node/node$1/meminfo; }
nobody() { su nobody -c "$*"; }
hold() { mapped $1 --hold 600 > /tmp/held & until grep -q N /tmp/held; do usleep 20000; done; held=$!; }
"#;

const SETUP: &str = "echo never > /sys/kernel/mm/transparent_hugepage/enabled
echo 0 > /proc/sys/kernel/numa_balancing
echo nobody:x:65534:65534::/tmp:/bin/sh > /etc/passwd
chmod 755 /; chmod 777 /tmp
mkdir -p /huge && mount -t tmpfs -o huge=always tmpfs /huge";

/// Moves, spreads, and asks a process that maps the file where it is. The pages are dirty at first.
const MOVED: &str = "taskset 1 dd if=/dev/zero of=$F bs=64k count=256 2>/dev/null
tell first numa file show --json $F; tell first-maps mapped $F
tell before-0 cached 0; tell before-1 cached 1
tell moved numa file move --node 1 --json $F
tell after-0 cached 0; tell after-1 cached 1; tell moved-maps mapped $F
tell spread numa file spread --json $F; tell spread-maps mapped $F; tell spread-show numa file show --json $F
tell two numa file spread --nodes 2-3 --json $F; tell two-maps mapped $F";

/// The same while a process maps it: as nobody, then as root.
const HELD: &str = "chmod 644 $F; numa file move --node 2 $F > /dev/null; hold $F
tell held-show numa file show --json $F
tell refused nobody numa file move --node 3 --json $F; tell refused-text nobody numa file move --node 3 $F
tell forced numa file move --node 3 --json $F; grep $F /proc/$held/numa_maps | sed 's/^/forced-maps /'
tell held-evict numa file evict --json $F
kill $held; wait $held 2>/dev/null
tell untold nobody numa file show --json $F
tell nobody nobody numa file move --node 0 --json $F; tell nobody-maps mapped $F";

/// Removing and reading again, by policies and where calls are refused.
const LOADED: &str = "tell evicted numa file evict --json $F; tell evicted-show numa file show --json $F
tell bound numa file load --policy bind:2 --json $F; tell bound-maps mapped $F
numa file evict $F > /dev/null; tell turns numa file load --policy interleave:1,3 --json $F; tell turns-maps mapped $F
tell filtered-show filtered numa file show --json $F
tell filtered-move filtered numa file move --node 1 --json $F; tell filtered-maps mapped $F
hold $F; tell filtered-held filtered numa file move --node 0 --json $F; kill $held; wait $held 2>/dev/null
tell filtered-after mapped $F";

/// Huge pages of tmpfs, which move as a whole.
const HUGE: &str = "taskset 1 dd if=/dev/zero of=/huge/data bs=2M count=8 2>/dev/null
tell huge numa file show --json /huge/data; tell huge-spread numa file spread --json /huge/data
tell huge-maps mapped /huge/data";

/// A file of more than 1 GiB on node 0, mapped by threads on all nodes, before and after it is spread.
const LARGE: &str = "F=/dev/shm/large; taskset 1 dd if=/dev/zero of=$F bs=1M count=1030 2>/dev/null
hold $F; tell tasks numa top --once -i 10ms -p $held; tell doctor numa doctor
tell spread numa file spread --json $F; tell after numa top --once -i 10ms -p $held; kill $held; rm $F";

pub fn guest() -> Result<Guest, Failure> {
    let mut guest = Guest::new(Shape::named("four")?)
        .memory_mib(1536)
        .timeout(Duration::from_secs(400))
        .program(&programs::numa()?)
        .program(&programs::compiled("mapped")?.unwrap())
        .program(&programs::compiled("filtered")?.unwrap())
        .step("setup", &["sh", "-c", SETUP]);
    for (kind, file) in [("ext4", "/out/files/data"), ("tmpfs", "/dev/shm/data")] {
        for (name, script) in [("moved", MOVED), ("held", HELD), ("loaded", LOADED)] {
            let script = format!("{WORDS}\nF={file}\n{script}");
            guest = guest.step(&format!("{kind} {name}"), &["sh", "-c", &script]);
        }
    }
    let run = "numa file evict /out/files/data >/dev/null
        numa run -c 8 --busy off --spread-files '/out/files/dat[a]' -- mapped /out/files/data; echo status $?
        numa run -c 8 --busy off --spread-files '/out/files/none*' -- mapped /out/files/data; echo status $?";
    let times = "dd if=/dev/zero of=/out/files/large bs=1M count=64 2>/dev/null; sync; numa file move --node 0 /out/files/large >/dev/null
        time numa file show /out/files/data; time numa file show /out/files/large; time numa file move --node 1 /out/files/large
        rm /out/files/large /out/files/data";
    Ok(guest
        .step("huge", &["sh", "-c", &format!("{WORDS}\n{HUGE}")])
        .step("run", &["sh", "-c", run])
        .step("times", &["sh", "-c", times])
        .step("large", &["sh", "-c", &format!("{WORDS}\n{LARGE}")]))
}

fn part() -> Option<Part> {
    super::LATER.part("files")
}

#[test]
fn a_large_file_on_one_node_is_found_until_it_is_spread() {
    let Some(boot) = part() else { return };
    let told = told(&boot, "large");
    let sentence = "/dev/shm/large (1.01 GiB) is cached on node 0, and ";
    assert!(told["tasks"].0.contains(sentence), "{}", told["tasks"].0);
    assert!(told["tasks"].0.contains("numa file spread '/dev/shm/large'"), "{}", told["tasks"].0);
    assert!(told["doctor"].0.contains("page cache on one node: ") && told["doctor"].0.contains(sentence));
    assert_eq!(file(&told, "spread")["complete"], true);
    assert!(!told["after"].0.contains("is cached on node"), "{}", told["after"].0);
}

#[test]
fn a_run_spreads_files_before_its_start() {
    let Some(boot) = part() else { return };
    let (text, errors) = (boot["run"].text(), boot["run"].errors());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(maps(lines[0]), [Q, Q, Q, Q], "{text} {errors}");
    assert_eq!((lines[1], lines[2]), ("status 0", "status 2"), "{text}");
    assert!(errors.contains("--spread-files /out/files/none*: no file matches"), "{errors}");
}

/// What the commands of a step printed, by name: the text and the status.
fn told(boot: &Part, step: &str) -> BTreeMap<String, (String, i32)> {
    let text = boot[step].succeeded();
    let line = |line: &str| {
        let (name, rest) = line.split_once(' ')?;
        let (rest, status) = rest.rsplit_once(" status ").unwrap_or((rest, "0"));
        Some((name.to_owned(), (rest.trim().to_owned(), status.trim().parse().unwrap())))
    };
    text.lines().filter_map(line).collect()
}

fn file(told: &BTreeMap<String, (String, i32)>, name: &str) -> Value {
    let (text, _) = &told[name];
    let all: Value = serde_json::from_str(text).unwrap_or_else(|_| panic!("{name}: {text}"));
    all["files"][0].clone()
}

/// Pages by node as numa_maps says it, in bytes.
fn maps(text: &str) -> [u64; 4] {
    let mut nodes = [0; 4];
    for (node, count) in text.split_whitespace().filter_map(|word| word.strip_prefix('N')?.split_once('=')) {
        nodes[node.parse::<usize>().unwrap()] = count.parse::<u64>().unwrap() * 4096;
    }
    nodes
}

fn on(residence: &Value) -> [u64; 4] {
    serde_json::from_value(residence["on"].clone()).unwrap_or_else(|_| panic!("{residence}"))
}

const Q: u64 = SIZE / 4;

#[test]
fn shown_moved_and_spread_as_another_process_sees_it() {
    let Some(boot) = part() else { return };
    boot["setup"].succeeded();
    for kind in ["ext4", "tmpfs"] {
        let told = told(&boot, &format!("{kind} moved"));
        let same = |name: &str, residence: &Value, expected: [u64; 4]| {
            assert_eq!(on(residence), expected, "{kind} {name}");
            assert_eq!(maps(&told[&format!("{name}-maps")].0), expected, "{kind} {name}");
        };
        let first = file(&told, "first");
        same("first", &first, [SIZE, 0, 0, 0]);
        assert_eq!((&first["cached"], &first["huge"]), (&SIZE.into(), &0.into()), "{kind} {first}");
        assert!(first["pieces"].as_array().unwrap().iter().all(|piece| *piece == 0), "{kind} {first}");
        let moved = file(&told, "moved");
        same("moved", &moved["after"], [0, SIZE, 0, 0]);
        assert_eq!((&moved["pages"]["moved"], &moved["way"]), (&PAGES.into(), &"in-place".into()), "{moved}");
        let kib = |name: &str| told[name].0.parse::<i64>().unwrap();
        let change = [kib("after-0") - kib("before-0"), kib("after-1") - kib("before-1")];
        println!("{kind}: FilePages of nodes 0 and 1 changed by {change:?} KiB");
        // The programs themselves are files on the disk of the guest.
        assert!(change[0] < -12_000 && change[1] > 12_000, "{kind} {change:?}");
        let spread = file(&told, "spread");
        same("spread", &spread["after"], [Q, Q, Q, Q]);
        assert_eq!((&spread["block"], &spread["complete"]), (&4096.into(), &true.into()), "{spread}");
        assert!(file(&told, "spread-show")["pieces"].as_array().unwrap().iter().all(|p| p == "mixed"));
        same("two", &file(&told, "two")["after"], [0, 0, 2 * Q, 2 * Q]);
    }
}

#[test]
fn pages_that_another_process_maps_move_for_root_alone() {
    let Some(boot) = part() else { return };
    for kind in ["ext4", "tmpfs"] {
        let told = told(&boot, &format!("{kind} held"));
        let mapper = &file(&told, "held-show")["mapped_by"][0];
        assert_eq!((&mapper["command"], &mapper["mapped"]), (&"mapped".into(), &SIZE.into()), "{kind}");
        let threads: u64 = mapper["threads"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum();
        assert_eq!(threads, 9, "{kind} {mapper}");
        let refused = file(&told, "refused");
        assert_eq!((&refused["pages"]["mapped"], told["refused"].1), (&PAGES.into(), 1), "{kind} {refused}");
        let text = &told["refused-text"].0;
        let fix =
            "4,096 pages stayed on other nodes: processes that you may not examine map it. Run as root, or ";
        assert!(text.contains(fix), "{kind} {text}");
        let forced = file(&told, "forced");
        assert_eq!((&forced["pages"]["moved"], told["forced"].1), (&PAGES.into(), 0), "{kind} {forced}");
        assert_eq!(maps(&told["forced-maps"].0), [0, 0, 0, SIZE], "{kind}");
        let evicted = file(&told, "held-evict");
        assert_eq!(
            (&evicted["after"]["cached"], told["held-evict"].1),
            (&SIZE.into(), 1),
            "{kind} {evicted}"
        );
        let untold = file(&told, "untold");
        assert!(untold["cached"].is_null() && untold["on"].is_null(), "{kind} {untold}");
        assert!(untold["why"]["cached"].as_str().unwrap().contains("mincore tells only owners"), "{untold}");
        let moved = file(&told, "nobody");
        assert_eq!((&moved["pages"]["moved"], told["nobody"].1), (&PAGES.into(), 0), "{kind} {moved}");
        assert_eq!(maps(&told["nobody-maps"].0), [SIZE, 0, 0, 0], "{kind}");
    }
}

#[test]
fn evicted_files_are_read_again_where_the_policy_says() {
    let Some(boot) = part() else { return };
    let told = told(&boot, "ext4 loaded");
    let evicted = file(&told, "evicted");
    assert_eq!((&evicted["after"]["cached"], told["evicted"].1), (&0.into(), 0), "{evicted}");
    assert_eq!(file(&told, "evicted-show")["cached"], 0);
    assert_eq!(on(&file(&told, "bound")["after"]), [0, 0, SIZE, 0]);
    assert_eq!(maps(&told["bound-maps"].0), [0, 0, SIZE, 0]);
    let turns = on(&file(&told, "turns")["after"]);
    assert_eq!(turns, maps(&told["turns-maps"].0));
    assert!(turns[0] == 0 && turns[2] == 0 && turns[1] + turns[3] == SIZE, "{turns:?}");
    assert!(turns[1].abs_diff(turns[3]) < SIZE / 16, "{turns:?}");
    // Where move_pages is refused, one's own numa_maps says the same.
    let filtered = file(&told, "filtered-show");
    assert_eq!((on(&filtered), &filtered["cached"]), (turns, &SIZE.into()), "{filtered}");
    let moved = file(&told, "filtered-move");
    assert_eq!((&moved["way"], told["filtered-move"].1), (&"read-again".into(), 0), "{moved}");
    assert_eq!((on(&moved["after"]), maps(&told["filtered-maps"].0)), ([0, SIZE, 0, 0], [0, SIZE, 0, 0]));
    let held = file(&told, "filtered-held");
    assert_eq!((&held["way"], told["filtered-held"].1), (&"refused".into(), 1), "{held}");
    assert_eq!(maps(&told["filtered-after"].0), [0, SIZE, 0, 0]);
}

#[test]
fn files_in_memory_stay_there() {
    let Some(boot) = part() else { return };
    let told = told(&boot, "tmpfs loaded");
    let evicted = file(&told, "evicted");
    assert_eq!((&evicted["after"]["cached"], told["evicted"].1), (&SIZE.into(), 1), "{evicted}");
    assert!(evicted["notes"][0].as_str().unwrap().contains("(tmpfs)"), "{evicted}");
}

#[test]
fn huge_pages_are_told_and_spread_as_a_whole() {
    let Some(boot) = part() else { return };
    let told = told(&boot, "huge");
    assert_eq!(file(&told, "huge")["huge"], SIZE);
    let spread = file(&told, "huge-spread");
    assert_eq!((on(&spread["after"]), &spread["block"]), ([Q, Q, Q, Q], &(2u64 << 20).into()), "{spread}");
    assert_eq!(maps(&told["huge-maps"].0), [Q, Q, Q, Q]);
    println!("{}{}", boot["times"].text(), boot["times"].errors());
}
