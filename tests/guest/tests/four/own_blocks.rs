//! Whether the blocks that libnumalloc gives a thread are on the node where it runs, after it moved too, beside the allocators
//! of others.

use numakit_guest::runtimes::{Allocator, allocators};
use numakit_guest::{Failure, Guest, Part, Shape, programs};
use numakit_skips::rounds;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

const OURS: &str = "libnumalloc";
const SETTINGS: [(&str, &str); 2] = [("small", "never"), ("huge", "always")];
/// Of each of 8 threads, four times: usually, and a million in all.
const OPERATIONS: (usize, usize) = (8_000, 32_000);
/// The others only show what the program is worth.
const OPERATIONS_OF_OTHERS: usize = 3_000;
/// Where the C library registers no restartable sequences, which tell a thread's CPU.
const UNREGISTERED: &str = "unregistered";
const OPERATIONS_UNREGISTERED: usize = 3_000;
/// Tests of the library that run on several nodes here: blocks go between the regions of all.
const ELSEWHERE: [(&str, &str); 3] =
    [("fuzz", "four_threads"), ("threads", "threads_move"), ("threads", "blocks_outlive_their_thread")];

/// A program of the library's tests.
fn test_program(name: &str) -> Result<PathBuf, Failure> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native/test/alloc");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-fno-builtin", "-pthread", "-DSANITIZED=1", "-o"]);
    cc.arg(&program).args([sources.join(name).with_extension("c"), sources.join("cases.c")]);
    match cc.status() {
        Ok(status) if status.success() => Ok(program),
        failed => Err(Failure::Request(format!("{name} cannot be built: {failed:?}"))),
    }
}

/// The settings of huge pages with which an allocator runs, and its operations.
fn settings_of(allocator: &str) -> (&'static [(&'static str, &'static str)], usize) {
    if allocator == OURS {
        (&SETTINGS, rounds(OPERATIONS.0, OPERATIONS.1))
    } else {
        (&SETTINGS[..1], OPERATIONS_OF_OTHERS)
    }
}

/// Ours and that of the C library, without which the program would show nothing; thoroughly, those of others too.
static ALLOCATORS: LazyLock<Result<Vec<Allocator>, Failure>> =
    LazyLock::new(|| Ok(allocators()?.into_iter().take(rounds(2, usize::MAX)).collect()));

pub fn guest() -> Result<Guest, Failure> {
    let all = ALLOCATORS.as_ref().map_err(|failure| Failure::Request(failure.to_string()))?;
    let mut guest = Guest::new(Shape::named("four")?)
        .memory_mib(512)
        .timeout(Duration::from_secs(900))
        .program(&programs::compiled("ownblocks")?.unwrap())
        .step("quiet", &["sh", "-c", "echo 0 > /proc/sys/kernel/numa_balancing"]);
    for name in ["fuzz", "threads"] {
        guest = guest.program(&test_program(name)?);
    }
    for Allocator { name, preload, files } in all {
        guest = files.put_into(guest);
        let (settings, operations) = settings_of(name);
        for (pages, setting) in settings {
            let set = format!("echo {setting} > /sys/kernel/mm/transparent_hugepage/enabled");
            let command = format!("{set}; LD_PRELOAD={preload} ownblocks {operations}");
            guest = guest.step(&format!("{pages} {name}"), &["sh", "-c", &command]);
        }
    }
    let ours = &all[0].preload;
    let tunable = "GLIBC_TUNABLES=glibc.pthread.rseq=0";
    let command = format!("{tunable} LD_PRELOAD={ours} ownblocks {OPERATIONS_UNREGISTERED}");
    guest = guest.step(UNREGISTERED, &["sh", "-c", &command]);
    for (program, case) in ELSEWHERE {
        let command = format!("LD_PRELOAD={ours} {program} {case}");
        guest = guest.step(&format!("{program} {case}"), &["sh", "-c", &command]);
    }
    Ok(guest)
}

fn part() -> Option<Part> {
    super::PARTS.part("own_blocks")
}

/// Pages and local pages of a line such as `small pages 7 local 5`; `kind` ends with a blank or is empty.
fn local(text: &str, kind: &str) -> (f64, f64) {
    let start = format!("{kind}pages ");
    let rest = text.lines().find_map(|line| line.strip_prefix(&start)).unwrap();
    let (pages, local) = rest.split_once(" local ").unwrap();
    (pages.parse().unwrap(), local.parse().unwrap())
}

#[test]
fn blocks_are_on_the_node_of_the_thread_that_asked_for_them() {
    let Some(boot) = part() else { return };
    println!("{:<14}{:<8}{:>9}{:>8}{:>10}{:>10}", "", "pages", "moves", "small", "large", "all");
    for Allocator { name, .. } in ALLOCATORS.as_ref().unwrap() {
        for (pages, _) in settings_of(name).0 {
            let step = &boot[format!("{pages} {name}").as_str()];
            let text = step.succeeded();
            assert_eq!(step.errors(), "", "{name}");
            let moves = text.lines().next().unwrap().rsplit(' ').next().unwrap();
            let counts = ["small ", "large ", ""].map(|kind| local(&text, kind));
            let shares = counts.map(|(pages, own)| format!("{:.2} %", 100.0 * own / pages));
            println!("{name:<14}{pages:<8}{moves:>9}{:>10}{:>10}{:>10}", shares[0], shares[1], shares[2]);
            if *name == OURS {
                assert!(counts.iter().all(|(pages, own)| *pages > 1000.0 && *own >= 0.999 * pages), "{text}");
                assert!(moves.parse::<u32>().unwrap() > 100, "{text}");
            } else if *name == "glibc" {
                // Else the program would show nothing.
                assert!(counts[2].1 < 0.95 * counts[2].0, "{text}");
            }
        }
    }
}

/// Small blocks come from a list of the thread, which asks for its node only now and then; large ones ask each time.
#[test]
fn large_blocks_are_on_the_node_of_the_thread_without_restartable_sequences() {
    let Some(boot) = part() else { return };
    let text = boot[UNREGISTERED].succeeded();
    println!("{text}");
    let (pages, own) = local(&text, "large ");
    assert!(pages > 1000.0 && own >= 0.99 * pages, "{text}");
}

#[test]
fn blocks_go_between_the_regions_of_nodes() {
    let Some(boot) = part() else { return };
    for (program, case) in ELSEWHERE {
        let step = &boot[format!("{program} {case}").as_str()];
        step.succeeded();
        assert_eq!(step.errors(), "", "{program} {case}");
    }
}
