//! `numa alloc --pid` with programs of `numa run --alloc`.

use crate::homes::nobody;
use crate::run::{compiled, numa};
use crate::runner::{Folder, Started};
use numakit_testing::until;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

const MIB: u64 = 1 << 20;

/// After each line of input, does the next of: allocate 64 MiB, free them, allocate them again, end.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char *blocks[64];
static void say(const char *what) { printf("%s %d\n", what, (int)getpid()); fflush(stdout); getchar(); }
static void take(void) { for (int i = 0; i < 64; i++) memset(blocks[i] = malloc(1 << 20), i, 1 << 20); }
int main(void)
{
    take();
    say("taken");
    for (int i = 0; i < 64; i++)
        free(blocks[i]);
    say("freed");
    take();
    say("again");
    return 0;
}
"#;

/// The program, step by step.
struct Steps {
    started: Started,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Steps {
    fn start(folder: &Folder, words: &[&str]) -> Option<Self> {
        let program = compiled(folder, "steps", PROGRAM, &["-O0"])?;
        let words = [&["-c", "1", "--busy", "off"], words, &["--", program.to_str().unwrap()]].concat();
        let mut command = numa(folder, &words);
        command.env("NUMALLOC_KEEP", "128").env("NUMALLOC_OFFER", "256");
        let mut started = Started::of(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let (input, output) = (started.child().stdin.take(), started.child().stdout.take().unwrap());
        Some(Self { started, input, output: BufReader::new(output).lines() })
    }

    /// Waits for a step, and returns the process ID of the program.
    fn did(&mut self, what: &str) -> u32 {
        let line = self.output.next().unwrap().unwrap();
        line.strip_prefix(what).unwrap_or_else(|| panic!("{line}")).trim().parse().unwrap()
    }

    fn next(&mut self) {
        self.input.as_mut().unwrap().write_all(b"\n").unwrap();
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        // It ends at the end of its input, and then what started it.
        self.input = None;
        if !std::thread::panicking() {
            self.started.wait();
        }
    }
}

/// The sums over the nodes of one reading.
fn sums(line: &str) -> impl Fn(&str) -> u64 + use<> {
    let reading: Value = serde_json::from_str(line).unwrap();
    move |name| reading["nodes"].as_array().unwrap().iter().map(|node| node[name].as_u64().unwrap()).sum()
}

#[test]
fn memory_is_in_use_then_cached_then_recycled() {
    let folder = Folder::new("alloc-stats");
    let Some(mut program) = Steps::start(&folder, &["--alloc", "numa"]) else { return };
    let pid = program.did("taken");
    let read = || {
        let done = folder.run(&format!("alloc --pid {pid} --json"));
        done.says(0, "");
        sums(&done.out)
    };
    let taken = read();
    assert!(taken("local") >= 64 * MIB && taken("local") <= taken("mapped") && taken("spilled") == 0);
    assert!(taken("in_use") >= 64 * MIB && taken("cached") < MIB && taken("mapped") >= taken("in_use"));
    program.next();
    program.did("freed");
    let freed = read();
    assert!(freed("in_use") < 16 * MIB && freed("cached") >= 64 * MIB && freed("reclaimable") == 0);
    program.next();
    program.did("again");
    let again = read();
    assert!(again("in_use") >= 64 * MIB && again("cached") < freed("cached"));
    assert!(again("recycled") >= freed("recycled") + 64 * MIB);
    let page = numakit_sys::sched::page_size();
    assert_eq!(again("page_faults_avoided"), again("recycled") / page);
    let table = folder.run(&format!("alloc --pid {pid}"));
    assert!(table.out.starts_with("NODE ") && table.out.contains("MiB"), "{}", table.out);
    // It repeats until the process ends.
    let mut repeated = folder.spawn(&format!("alloc --pid {pid} --json --interval 5ms"));
    let mut lines = BufReader::new(repeated.child().stdout.take().unwrap()).lines();
    for _ in 0..3 {
        assert!(sums(&lines.next().unwrap().unwrap())("in_use") >= 64 * MIB);
    }
    program.next();
    program.started.wait();
    assert!(lines.all(|line| line.is_ok_and(|line| line.starts_with('{'))));
    repeated.end().says(0, "");
    folder.run(&format!("alloc --pid {pid}")).says(2, &format!("there is no process {pid};"));
}

#[test]
fn a_profile_without_nodes_has_one_line() {
    let folder = Folder::new("alloc-stats-uma");
    let Some(mut program) = Steps::start(&folder, &["--alloc", "uma"]) else { return };
    let pid = program.did("taken");
    let json: Value = serde_json::from_str(&folder.run(&format!("alloc --pid {pid} --json")).out).unwrap();
    assert_eq!((&json["pid"], json["nodes"].as_array().unwrap().len()), (&pid.into(), 1));
    assert!(json["nodes"][0]["node"].is_null() && json["nodes"][0]["spilled"].is_null(), "{json}");
    assert_eq!(json["spilled_unknown"], "with the profiles uma and lowmem memory has no node");
    let table = folder.run(&format!("alloc --pid {pid}")).out;
    assert!(
        table.lines().nth(1).unwrap().starts_with("all ") && table.contains("SPILLED are unknown:"),
        "{table}"
    );
}

/// The values of a series of the recording.
fn recorded(folder: &Folder, name: &str) -> Vec<u64> {
    let table = folder.run("export --to csv --raw r.arrows").out;
    let column = table.lines().next().unwrap().split(',').position(|known| known == name);
    let column = column.unwrap_or_else(|| panic!("no {name} in {table}"));
    table.lines().skip(1).filter_map(|line| line.split(',').nth(column)?.parse().ok()).collect()
}

#[test]
fn a_recording_finds_the_library_in_a_child_of_the_command() {
    let folder = Folder::new("alloc-stats-recorded");
    let Some(program) = compiled(&folder, "steps", PROGRAM, &["-O0"]) else { return };
    let orders = folder.path("orders");
    assert!(Command::new("mkfifo").arg(&orders).status().unwrap().success());
    // The program is a child that begins after the recording.
    let run = format!(
        "exec < {}; read begin; {} run -c 1 --busy off --alloc numa -- {}",
        orders.display(),
        env!("CARGO_BIN_EXE_numa"),
        program.display(),
    );
    // Open for both, so that it does not wait for the shell, which finds its end when this test has ended.
    let mut orders = File::options().read(true).write(true).open(orders).unwrap();
    let mut record = folder.numa("record -i 20ms -e task.alloc_* -o r.arrows -- sh -c");
    record.arg(run).env("NUMALLOC_KEEP", "128").env("NUMALLOC_OFFER", "256");
    let record = folder.ready(Started::of(record.stdout(Stdio::piped()).stderr(Stdio::piped())));
    let last = |name: &str| folder.read("r.arrows").values(name).last().copied().unwrap_or(0);
    let mut next = |name: &str| {
        orders.write_all(b"\n").unwrap();
        until!(last(name) >= 64 * MIB, "{name}");
    };
    next("task.alloc_in_use@node0");
    // Pages are searched less often than the allocator's table is read.
    until!(last("task.alloc_local@node0") >= 64 * MIB);
    next("task.alloc_cached@node0");
    next("task.alloc_in_use@node0");
    orders.write_all(b"\n").unwrap();
    record.end().says(0, "");
    let in_use = recorded(&folder, "task.alloc_in_use@node0");
    assert!(in_use.iter().any(|bytes| *bytes >= 64 * MIB) && in_use.iter().any(|bytes| *bytes < 16 * MIB));
    assert!(recorded(&folder, "task.alloc_cached@node0").iter().any(|bytes| *bytes >= 64 * MIB));
    let recycled = recorded(&folder, "task.alloc_recycled@node0");
    assert!(recycled.last().unwrap() - recycled[0] >= 64 * MIB, "{recycled:?}");
    assert!(recorded(&folder, "task.alloc_local@node0").iter().any(|bytes| *bytes >= 64 * MIB));
}

#[test]
fn a_process_of_another_user_is_refused() {
    let folder = Folder::new("alloc-stats-user");
    let Some(mut program) = Steps::start(&folder, &["--alloc", "numa"]) else { return };
    let pid = program.did("taken").to_string();
    let Some(done) = nobody(&folder, &folder.0, &["alloc", "--pid", &pid]) else { return };
    done.says(2, "its memory cannot be read: it belongs to user 0; run as root, or as the user");
}

#[test]
fn other_processes_are_refused() {
    let folder = Folder::new("alloc-stats-none");
    let Some(mut program) = Steps::start(&folder, &["--alloc", "none"]) else { return };
    let pid = program.did("taken");
    let done = folder.run(&format!("alloc --pid {pid}"));
    done.says(2, &format!("process {pid} (steps) has not loaded libnumalloc.so; start the program with"));
    assert!(done.out.is_empty() && done.err.contains("'numa run --alloc numa -- CMD'"), "{}", done.err);
    folder.run("alloc --pid 4194305").says(2, "there is no process 4194305;");
    folder.run("alloc --pid 0").says(2, "'0'");
    folder.run("alloc --pid x").says(2, "'x'");
    folder.run("alloc --pid 1 --interval 3").says(2, "'3'");
}
