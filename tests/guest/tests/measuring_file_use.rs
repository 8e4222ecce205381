//! `numa file spread --by-use` on four nodes, beside what the simulator counts: lines of far memory before and after.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::{Boot, Failure, Guest, Lines, Shape, Simulation, or_skipped, programs};
use serde_json::Value;
use std::sync::LazyLock;
use std::time::Duration;

/// Kilobytes of a file, and how many times its threads read it while they are observed.
const KIB: u64 = 20 << 10;
const ROUNDS: u64 = 400;
/// Bytes of the file that all threads read whole.
const WHOLE: u64 = 64 << 20;

/// A new file in memory, all of it on node 0.
fn file(name: &str, kib: u64) -> String {
    format!("taskset 1 dd if=/dev/zero of=/dev/shm/{name} bs=1k count={kib} 2>/dev/null; F=/dev/shm/{name}")
}

/// Each step, and its regions.
fn steps() -> [(&'static str, String, usize); 6] {
    let data = file("data", KIB);
    // The regions: before and after.
    let around = |kind: &str, observed: &str| {
        format!(
            "{data}; readers $F {kind} && {observed} && readers $F {kind}; status=$?; rm -f $F; exit $status"
        )
    };
    let command = format!("numa file spread --by-use --json $F -- readers $F parts {ROUNDS} unmarked");
    let process = "{ readers $F rows 100000 unmarked >/dev/null & reader=$!
        until grep -q $F /proc/$reader/maps; do usleep 20000; done
        numa file spread --by-use --for 5s --json $F --pid $reader; status=$?
        kill $reader; wait $reader; [ $status = 0 ]; }";
    let saved = format!(
        "{data}; chmod 644 $F; readers $F parts
        numa file spread --by-use --dry-run --save /tmp/plan --json $F -- readers $F parts {ROUNDS} unmarked; echo
        su nobody -c \"numa file spread --plan /tmp/plan --json $F\"; readers $F parts; rm $F"
    );
    let refused = format!(
        "{data}; chmod 644 $F; readers $F parts 100000 unmarked & reader=$!
        until grep -q $F /proc/$reader/maps; do usleep 20000; done
        numa file spread --by-use --json /bin/busybox --pid $reader; echo \"status $?\"
        numa file spread --by-use --json $F -- true; echo \"status $?\"
        su nobody -c \"numa file spread --plan /tmp/plan $F\"; echo \"status $?\"
        kill $reader; wait $reader; rm $F"
    );
    let kib = WHOLE >> 10;
    let whole = format!(
        "{}; readers $F whole 1; numa file spread $F; readers $F whole 1; rm $F
        for node in 0 1 2 3; do {}; numa file move --node $node $F; readers $F $node 1; rm $F; done",
        file("data", kib),
        file("copy", kib)
    );
    [
        ("parts", around("parts", &command), 2),
        ("rows", around("rows", process), 2),
        ("saved", saved, 2),
        ("refused", refused, 0),
        ("whole", whole, 6),
        ("end", "true".to_owned(), 0),
    ]
}

const SETUP: &str = "echo never > /sys/kernel/mm/transparent_hugepage/enabled
echo nobody:x:65534:65534::/tmp:/bin/sh > /etc/passwd
chmod 755 /; chmod 777 /tmp";

static BOOT: LazyLock<Result<Boot, Failure>> = LazyLock::new(|| {
    let mut guest = Guest::new(Shape::named("four")?)
        .simulate(Simulation::new())
        .program(&programs::numa()?)
        .program(&programs::compiled("readers")?.unwrap())
        .timeout(Duration::from_secs(900))
        .step("setup", &["sh", "-c", SETUP]);
    for (name, script, _) in steps() {
        guest = guest.step(name, &["sh", "-c", &script]);
    }
    guest.boot()
});

/// The regions of a step; nothing where the test is skipped.
fn regions(step: &str) -> Option<(&'static Boot, &'static [Lines])> {
    let boot = or_skipped(&BOOT)?;
    let steps = steps();
    // A step that failed has fewer regions, and the later ones would be taken for others.
    let before = steps.iter().take_while(|(name, ..)| *name != step);
    let first: usize =
        before.inspect(|(name, ..)| _ = boot[*name].succeeded()).map(|(.., count)| count).sum();
    let count = steps.iter().find(|(name, ..)| *name == step).unwrap().2;
    boot[step].succeeded();
    Some((boot, &boot.traffic.as_ref().unwrap().each[first..first + count]))
}

fn far(lines: &Lines) -> u64 {
    lines.local_and_remote().1
}

fn remote_share(lines: &Lines) -> f64 {
    let (near, far) = lines.local_and_remote();
    100.0 * far as f64 / (near + far) as f64
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// What is printed of a run: far lines, and what the plan promised.
fn show(name: &str, before: &Lines, after: &Lines, used: &Value) {
    println!(
        "{name}: far lines {} ({:.1} %), after {} ({:.1} %); {} samples, far {}, then {}, {} ranges",
        far(before),
        remote_share(before),
        far(after),
        remote_share(after),
        used["samples"],
        used["remote"],
        used["then"],
        used["ranges"].as_array().unwrap().len()
    );
}

#[test]
#[ignore = "thorough: samples of reads in the simulator, 4 minutes"]
fn parts_go_to_their_readers_and_what_all_read_is_shared() {
    let Some((boot, lines)) = regions("parts") else { return };
    let file = &json(&boot["parts"].text())["files"][0];
    let used = &file["use"];
    show("parts", &lines[0], &lines[1], used);
    println!("{}", used["ranges"]);
    let ranges = used["ranges"].as_array().unwrap();
    let fifth = KIB / 4 / 5;
    // Pages of each part that have a single node, its own, and of the last part those that have several.
    for part in 0..5 {
        let of = |range: &Value| {
            let number = |name: &str| range[name].as_u64().unwrap();
            let (first, last) = (number("first"), number("first") + number("pages"));
            let there = last.min((part + 1) * fifth).saturating_sub(first.max(part * fifth));
            let to: Vec<u64> = serde_json::from_value(range["to"].clone()).unwrap();
            if (part < 4 && to == [part]) || (part == 4 && to.len() > 1) { there } else { 0 }
        };
        let right: u64 = ranges.iter().map(of).sum();
        assert!(right * 10 >= fifth * 9, "part {part}: {right} of {fifth} pages: {}", used["ranges"]);
    }
    assert_eq!(file["complete"], true, "{}", file["notes"]);
    // Half of the reads are of the part that all read, of which one in four is near wherever it lies.
    let shared = far(&lines[0]) / 2;
    assert!(far(&lines[1]) * 10 < shared * 12, "{} of {}", far(&lines[1]), far(&lines[0]));
}

#[test]
#[ignore = "thorough: samples of reads in the simulator, 4 minutes"]
fn rows_of_matrices_go_to_their_readers_while_they_are_read() {
    let Some((boot, lines)) = regions("rows") else { return };
    let file = &json(&boot["rows"].text())["files"][0];
    show("rows", &lines[0], &lines[1], &file["use"]);
    assert_eq!(file["complete"], true, "{}", file["notes"]);
    assert!(remote_share(&lines[0]) > 70.0, "{:?}", lines[0]);
    assert!(far(&lines[1]) * 3 <= far(&lines[0]), "{} of {}", far(&lines[1]), far(&lines[0]));
}

#[test]
#[ignore = "thorough: samples of reads in the simulator, 4 minutes"]
fn a_saved_plan_moves_pages_without_rights_when_nobody_maps_them() {
    let Some((boot, lines)) = regions("saved") else { return };
    let text = boot["saved"].text();
    let [planned, moved] = [0, 1].map(|at| json(text.lines().filter(|line| line.len() > 1).nth(at).unwrap()));
    show("saved", &lines[0], &lines[1], &planned["files"][0]["use"]);
    assert!(planned["files"][0]["way"].is_null(), "nothing moves with --dry-run: {planned}");
    let pages = &moved["files"][0]["pages"];
    assert_eq!((&moved["files"][0]["complete"], &pages["mapped"]), (&true.into(), &0.into()), "{pages}");
    assert!(pages["moved"].as_u64().unwrap() > KIB / 4 / 2, "{pages}");
    assert!(remote_share(&lines[1]) < 50.0, "{}", remote_share(&lines[1]));
}

#[test]
#[ignore = "thorough: samples of reads in the simulator, 4 minutes"]
fn what_cannot_be_done_is_said() {
    let Some((boot, _)) = regions("refused") else { return };
    let (text, errors) = (boot["refused"].text(), boot["refused"].errors());
    let statuses: Vec<&str> = text.lines().filter(|line| line.starts_with("status")).collect();
    assert_eq!(statuses, ["status 2", "status 2", "status 1"], "{text} {errors}");
    for said in ["/bin/busybox: process ", " does not map it", "no sample was of it"] {
        assert!(errors.contains(said), "{said}: {errors}");
    }
    assert!(text.contains("pages stayed on other nodes: "), "{text}");
}

#[test]
#[ignore = "thorough: samples of reads in the simulator, 4 minutes"]
fn what_all_read_is_far_for_all_but_one_unless_each_process_has_a_copy() {
    let Some((_, lines)) = regions("whole") else { return };
    let shares: Vec<f64> = lines.iter().map(remote_share).collect();
    println!("64 MiB read by four threads on node 0, spread; by processes with copies: {shares:.1?} % far");
    for share in &shares[..2] {
        assert!((72.0..78.0).contains(share), "{shares:?}");
    }
    let counted = lines.iter().map(|lines| lines.local_and_remote()).map(|(near, far)| near + far);
    assert!(counted.take(2).all(|all| all * 64 >= 4 * WHOLE * 95 / 100), "every thread reads every line");
    for share in &shares[2..] {
        assert!(*share < 1.0, "{shares:?}");
    }
}
