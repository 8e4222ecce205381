//! Programs run as without the library that logs their allocations, and the log has what they allocated.
#![allow(clippy::unwrap_used)]

mod preloaded;

use numakit_launch::preload::Library;
use numakit_sys::allocation_log::{
    AllocationEvent, AllocationFunction, AllocationLog, AllocationRecord, LogThreshold, LoggedProcess,
};
use numakit_sys::sample_ring::RingLosses;
use preloaded::words;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

struct Logged {
    output: Output,
    records: Vec<AllocationRecord>,
    processes: Vec<LoggedProcess>,
    losses: RingLosses,
}

/// Records that the log has room for.
const ROOM: usize = 1 << 15;

fn log_of(command: Command, threshold: LogThreshold) -> Logged {
    log_with_room(command, threshold, ROOM)
}

fn log_with_room(mut command: Command, threshold: LogThreshold, room: usize) -> Logged {
    let mut log = AllocationLog::create(room, threshold).unwrap();
    command.env("LD_PRELOAD", Library::Explain.extract().unwrap()).envs(log.environment());
    let (mut records, mut processes) = (Vec::new(), Vec::new());
    let output = preloaded::run(command, &mut |is_over| {
        log.drain(&mut |record| records.push(record.clone()));
        processes.extend(log.processes().into_iter().filter(|process| process.is_ended));
        if !is_over {
            thread::sleep(Duration::from_millis(2));
        }
    });
    Logged { output, records, processes, losses: log.losses() }
}

/// Runs it with the library and without, and compares.
fn same(line: &[&str]) -> Option<Logged> {
    same_with_room(line, ROOM)
}

fn same_with_room(line: &[&str], room: usize) -> Option<Logged> {
    let Ok(plain) = words(line).output() else {
        numakit_skips::TOOLS.skip_part(format!("there is no {}", line[0]));
        return None;
    };
    let logged = log_with_room(words(line), LogThreshold::default(), room);
    assert_eq!(logged.output.status, plain.status, "{line:?}: {}", text(&logged.output.stderr));
    assert_eq!(text(&logged.output.stdout), text(&plain.stdout), "{line:?}");
    assert_eq!(text(&logged.output.stderr), text(&plain.stderr), "{line:?}");
    assert_eq!(logged.losses, RingLosses { full: logged.losses.full, ..RingLosses::default() });
    Some(logged)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file of the folder of the build that is there as a whole at any time: another run of these tests may be using it.
fn file(name: &str, write: impl FnOnce(&Path)) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let new = file.with_file_name(format!("{}-{name}", std::process::id()));
    write(&new);
    std::fs::rename(new, &file).unwrap();
    file
}

/// Compiles a program; none without the compiler.
fn compiled(compiler: &str, source: &Path, name: &str, flags: &[&str]) -> Option<PathBuf> {
    if let Err(error) = Command::new(compiler).arg("--version").output() {
        numakit_skips::COMPILERS.skip(format_args!("{compiler}: {error}"));
        return None;
    }
    Some(file(name, |program| {
        let built = Command::new(compiler).args(["-O1", "-o"]).arg(program).arg(source).args(flags).output();
        let built = built.unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    }))
}

/// A program that allocates in all ways.
fn blocks(name: &str, flags: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native/test/explain/blocks.c");
    compiled("cc", &source, name, &[&["-std=gnu11", "-pthread"], flags].concat())
}

fn number(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

/// The lines of what the program prints: function, address, size, address of the function that called.
fn printed(output: &Output) -> Vec<(String, Vec<u64>)> {
    let text = text(&output.stdout);
    let line = |line: &str| {
        let (word, rest) = line.split_once(' ').unwrap();
        (word.to_owned(), rest.split(' ').map(number).collect())
    };
    text.lines().map(line).collect()
}

#[test]
fn all_blocks_above_the_threshold_are_in_the_log_in_order() {
    for flags in [&["-fno-omit-frame-pointer"][..], &["-fomit-frame-pointer"]] {
        let Some(program) = blocks("blocks_print", flags) else { return };
        let logged = log_of(
            words(&[program.to_str().unwrap(), "print"]),
            LogThreshold { least: 65_536, period: 0, first: 0 },
        );
        assert_eq!((logged.output.status.code(), logged.losses), (Some(0), RingLosses::default()));
        let lines = printed(&logged.output);
        assert!(lines.len() > 1600, "{}", lines.len());
        let is_call = |record: &&AllocationRecord| record.call.is_some();
        let mut records = logged.records.iter().filter(is_call);
        for (word, values) in &lines {
            let record = records.next().unwrap();
            let call = record.call.unwrap();
            let (address, size) = match record.event {
                AllocationEvent::Allocated { address, size, is_sample: false, .. } => (address, Some(size)),
                AllocationEvent::Mapped { address, size, .. } => (address, Some(size)),
                AllocationEvent::Freed { address } => (address, None),
                event => panic!("{event:?}"),
            };
            assert_eq!((call.function.name(), address), (word.as_str(), values[0]));
            assert_eq!(size, values.get(1).copied());
            if let Some(function) = values.get(2) {
                // The call is in the first bytes of its function, which is short.
                assert!(
                    call.frames()[0].wrapping_sub(*function) < 100,
                    "{:x?} of {values:x?}",
                    call.frames()
                );
                assert!(call.stack().len() > 100 && call.stack_pointer % 16 == 0);
            }
        }
        // What a destructor allocates and frees.
        assert_eq!(records.count(), 2);
        if flags == ["-fno-omit-frame-pointer"] {
            let main = logged
                .records
                .iter()
                .filter_map(|record| record.call)
                .filter(|call| call.frames().len() >= 3);
            assert!(main.count() > 1000);
        }
    }
}

#[test]
fn measuring_the_blocks_that_are_freed_were_allocated() {
    let Some(program) = blocks("blocks_freed", &[]) else { return };
    let logged = log_of(
        words(&[program.to_str().unwrap(), "exchange"]),
        LogThreshold { first: 0, ..LogThreshold::default() },
    );
    assert_eq!((logged.output.status.code(), logged.losses), (Some(0), RingLosses::default()));
    // Of many threads, which free one another's.
    let mut live: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut threads, mut by_another, mut samples) = (BTreeSet::new(), 0, 0);
    let mut records = logged.records;
    records.sort_by_key(|record| record.time);
    for record in &records {
        match record.event {
            AllocationEvent::Allocated { address, size, is_sample, .. } => {
                assert!(is_sample == (size < 65_536));
                samples += u64::from(is_sample);
                let before = live.insert(address, u64::from(record.thread));
                assert_eq!(before, None, "{record:?} is there already");
            }
            AllocationEvent::Freed { address } => {
                let thread = live.remove(&address).unwrap();
                by_another += u64::from(thread != u64::from(record.thread));
            }
            AllocationEvent::ThreadBegan { stack, base, .. } => {
                let (low, high) = stack.unwrap();
                assert!(low < high && high - low <= 1 << 24, "{low:x} {high:x}");
                assert!(base != 0 && threads.insert(record.thread));
            }
            _ => (),
        }
    }
    assert!(
        threads.len() >= 7 && by_another > 100 && samples > 10,
        "{} {by_another} {samples}",
        threads.len()
    );
    assert!(live.len() < 20, "{live:x?}");
}

#[test]
fn small_blocks_of_one_site_become_an_estimate() {
    const NODES: f64 = 1e6;
    let Some(program) = blocks("blocks_nodes", &[]) else { return };
    let threshold = LogThreshold { least: 65_536, period: 64 << 10, first: 0 };
    let logged = log_of(words(&[program.to_str().unwrap(), "nodes"]), threshold);
    assert_eq!((logged.output.status.code(), logged.losses), (Some(0), RingLosses::default()));
    let site = number(text(&logged.output.stdout).trim());
    let (mut estimate, mut samples, mut live) = (0.0, 0, BTreeSet::new());
    for record in &logged.records {
        match (record.event, &record.call) {
            (AllocationEvent::Allocated { address, size: 48, is_sample: true, .. }, Some(call)) => {
                assert!(call.frames()[0].wrapping_sub(site) < 200);
                estimate += threshold.blocks_of_a_sample(48);
                samples += 1;
                live.insert(address);
            }
            (AllocationEvent::Freed { address }, _) => _ = live.remove(&address),
            _ => (),
        }
    }
    // 732 are expected, and chance is within 4 deviations.
    assert!((estimate / NODES - 1.0).abs() < 0.15, "{estimate} of {samples} samples");
    assert!(live.is_empty(), "{live:x?}");
}

#[test]
fn failed_calls_change_nothing() {
    let Some(program) = blocks("blocks_failures", &[]) else { return };
    let logged = log_of(
        words(&[program.to_str().unwrap(), "failures"]),
        LogThreshold { least: 65_536, period: 0, first: 0 },
    );
    assert_eq!((logged.output.status.code(), logged.losses), (Some(0), RingLosses::default()));
    let kept = |record: &&AllocationRecord| matches!(record.event, AllocationEvent::Kept { .. });
    let kept: Vec<_> = logged.records.iter().filter(kept).collect();
    assert!(!kept.is_empty());
    assert!(kept.iter().all(|record| record.call.unwrap().function == AllocationFunction::Realloc));
}

#[test]
fn processes_are_in_the_log() {
    let Some(program) = blocks("blocks_forks", &[]) else { return };
    // Its children log so much that an observer which has no CPU for a while needs more room.
    let Some(logged) = same_with_room(&[program.to_str().unwrap(), "forks"], 4 * ROOM) else { return };
    let began = |record: &&AllocationRecord| matches!(record.event, AllocationEvent::ProcessBegan { .. });
    let first = logged.records.iter().find(began).unwrap().process;
    let children: BTreeSet<u32> = logged
        .records
        .iter()
        .filter(|record| record.event == AllocationEvent::ProcessForked { parent: first })
        .map(|record| record.process)
        .collect();
    assert!(children.len() > 3, "{children:?}");
    // By exec after vfork.
    assert!(logged.records.iter().filter(began).count() >= 2);
    assert!(logged.processes.len() > 3);
}

#[test]
fn programs_end_as_without_it() {
    const PYTHON: &str = "
import threading, subprocess, sys
def work(): kept.append([bytes(100000 + i) for i in range(200)])
kept = []
threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads: t.start()
for t in threads: t.join()
print(sum(len(b) for part in kept for b in part))
print(subprocess.run(['sh', '-c', 'echo below; exit 3'], capture_output=True).returncode)
sys.exit(5)
";
    if let Some(logged) = same(&["python3", "-c", PYTHON]) {
        let large = |record: &&AllocationRecord| match record.event {
            AllocationEvent::Allocated { size, .. } => size >= 100_000,
            _ => false,
        };
        let count = logged.records.iter().filter(large).count();
        assert!(logged.output.status.code() == Some(5) && count >= 600, "{:?} {count}", logged.output);
    }
    same(&["bash", "-c", "for i in 1 2 3; do ls / | wc -l; done; (exit 3); echo $?; exit 6"]);
    same(&[
        "perl",
        "-e",
        "my %h; $h{$_ % 5000} .= 'x' x 100 for 1..300000; print scalar(keys %h), qq(\\n); exit 7",
    ]);
    same(&[
        "node",
        "-e",
        "let m = []; for (let i = 0; i < 300; i++) m.push(Buffer.alloc(100000 + i)); console.log(m.length)",
    ]);
    same(&["sh", "-c", "exec sh -c 'exec true'"]);
    let code = "#include <cstdio>\n#include <map>\n#include <new>\n#include <stdexcept>\n#include <vector>\nint main() {\n\
        std::map<int, std::vector<int>> all; for (int i = 0; i < 300; i++) all[i].assign(30000, i);\n\
        try { std::vector<char> none(size_t(1) << 60); } catch (const std::bad_alloc &) { puts(\"none\"); }\n\
        try { all.at(-1); } catch (const std::out_of_range &) { puts(\"out\"); }\n\
        struct alignas(4096) page { char content[1 << 17]; }; page *aligned = new page;\n\
        printf(\"%d\\n\", int(all.size() + size_t(aligned) % 4096)); delete aligned; return 4; }\n";
    let source = file("several.cpp", |file| std::fs::write(file, code).unwrap());
    let Some(program) = compiled("c++", &source, "several", &[]) else { return };
    if let Some(logged) = same(&[program.to_str().unwrap()]) {
        let large = |record: &&AllocationRecord| {
            matches!(record.event, AllocationEvent::Allocated { size: 120_000, is_sample: false, .. })
        };
        assert_eq!(
            (logged.output.status.code(), logged.records.iter().filter(large).count()),
            (Some(4), 300)
        );
    }
}

#[test]
fn java_is_logged() {
    const CLASS: &str = "class Blocks { public static void main(String[] words) throws Exception {
        Thread[] all = new Thread[3]; int[] sizes = new int[3];
        for (int n = 0; n < 3; n++) { int own = n; all[n] = new Thread(() -> {
            var list = new java.util.ArrayList<byte[]>();
            for (int i = 0; i < 500; i++) list.add(new byte[100000]);
            sizes[own] = list.size(); }); all[n].start(); }
        for (Thread one : all) one.join();
        System.out.println(java.util.Arrays.toString(sizes)); System.exit(4); } }";
    let file = file("Blocks.java", |file| std::fs::write(file, CLASS).unwrap());
    let Some(logged) = same(&["java", file.to_str().unwrap()]) else { return };
    let is_mapped = |record: &AllocationRecord| matches!(record.event, AllocationEvent::Mapped { .. });
    if logged.output.status.code() != Some(4) {
        return numakit_skips::TOOLS
            .skip(format_args!("java runs no source file: {}", text(&logged.output.stderr)));
    }
    assert!(logged.records.iter().any(is_mapped));
}
