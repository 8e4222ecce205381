//! `numa alloc`: what it counts of known programs, and what it refuses.

use crate::run::compiled;
use crate::runner::{Done, Folder};
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::Stdio;

/// Allocates 500 blocks of 3,000 bytes and frees them; keeps 8 MiB, and copies its input.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile last;
__attribute__((noinline)) static void many(void)
{
    for (int i = 0; i < 500; i++) {
        last = malloc(3000);
        free(last);
    }
}
int main(int count, char **arguments)
{
    char line[64];
    many();
    for (int i = 0; i < 8; i++)
        last = memset(malloc(1 << 20), 1, 1 << 20);
    ssize_t got = read(0, line, sizeof line);
    if (got > 0 && write(1, line, got) != got)
        return 9;
    if (count > 1 && strcmp(arguments[1], "fork") == 0) {
        if (fork() == 0) {
            many();
            _exit(0);
        }
        wait(NULL);
    }
    if (count > 1 && strcmp(arguments[1], "kill") == 0)
        kill(getpid(), 9);
    return count > 1 ? atoi(arguments[1]) : 0;
}
"#;

fn program(folder: &Folder) -> Option<String> {
    let program = compiled(folder, "known", PROGRAM, &["-O0", "-g", "-fno-builtin", "-include", "signal.h"])?;
    Some(program.to_str().unwrap().to_owned())
}

/// The runs that a command line writes as JSON to standard output.
fn runs(done: &Done) -> Vec<Value> {
    let from = done.out.find("{\n").unwrap_or_else(|| panic!("{} {}", done.out, done.err));
    let json: Value = serde_json::from_str(&done.out[from..]).unwrap();
    assert_eq!(json["version"], 1);
    json["runs"].as_array().unwrap().clone()
}

/// Blocks of sizes from 2,560 to 3,071.
fn blocks_of_3000(run: &Value) -> u64 {
    let sizes = run["sizes"].as_array().unwrap();
    sizes.iter().find(|size| size["from"] == 2560).unwrap()["blocks"].as_u64().unwrap()
}

#[test]
fn each_allocator_counts_the_same() {
    let folder = Folder::new("alloc-profile");
    let Some(program) = program(&folder) else { return };
    let done = folder.run(&format!("alloc --every 1 --json - -- {program}"));
    done.says(0, "");
    let runs = runs(&done);
    let names: Vec<&str> = runs.iter().map(|run| run["allocator"].as_str().unwrap()).collect();
    assert_eq!(names, ["none", "lowmem", "uma", "numa"]);
    for run in &runs {
        let number = |name: &str| run[name].as_u64().unwrap();
        assert_eq!(blocks_of_3000(run), 500, "{run}");
        assert_eq!((number("process_count"), number("threads"), number("failed")), (1, 1, 0));
        assert_eq!(number("allocations"), runs[0]["allocations"].as_u64().unwrap());
        assert!(number("allocations") >= 508 && number("frees") >= 500);
        assert!(number("peak_live") >= 8 << 20 && number("live_at_end") >= 8 << 20);
        assert_eq!(run["peak_live_is_read"], false);
        let sites = run["sites"].as_array().unwrap();
        let site = sites.iter().find(|site| site["samples"] == 500).unwrap();
        let chain = site["chain"].as_array().unwrap();
        let named = |at: usize| chain[at]["function"].as_str().unwrap();
        assert_eq!((named(0), named(1)), ("many", "main"));
        assert_eq!((site["bytes"].as_u64(), site["freed_blocks"].as_f64()), (Some(1_500_000), Some(500.0)));
        assert!(chain[0]["file"].as_str().unwrap().ends_with("known.c"));
        // All of the 8 MiB, in huge pages if there are any, whatever else there was.
        assert!(run["first_touch"]["faults"].as_u64().unwrap() >= 4, "{run}");
    }
}

#[test]
fn the_text_says_how_much_first() {
    let folder = Folder::new("alloc-profile-text");
    let Some(program) = program(&folder) else { return };
    let done = folder.run(&format!("alloc --profile none,numa --html page.html -- {program}"));
    done.says(0, "");
    let lines: Vec<&str> = done.out.lines().collect();
    assert!(lines[0].contains(" allocations of ") && lines[0].contains(" MiB"), "{}", done.out);
    assert!(lines[1].starts_with("Of the CPU time, malloc and free took: none "), "{}", done.out);
    assert!(lines[2].starts_with("Live at most: none ") && lines[2].contains("numa "), "{}", done.out);
    let headings: Vec<&str> = lines.iter().filter_map(|line| line.split("  ").next()).collect();
    for heading in ["ALLOCATOR", "SIZE", "LIFE", "LIFE IN BYTES", "SHARE"] {
        assert!(headings.contains(&heading), "{heading}: {}", done.out);
    }
    assert!(done.out.contains("MEMORY OVER TIME"), "{}", done.out);
    let page = std::fs::read_to_string(folder.path("page.html")).unwrap();
    assert!(
        page.starts_with("<!doctype html>") && page.contains("<svg") && page.contains("prefers-color-scheme")
    );
    assert!(
        !page.contains("<script") && !page.contains("http:") && !page.contains("https:"),
        "it needs nothing else"
    );
}

#[test]
fn children_and_killed_programs_are_counted() {
    let folder = Folder::new("alloc-profile-fork");
    let Some(program) = program(&folder) else { return };
    let done = folder.run(&format!("alloc --profile none,numa --json - -- {program} fork"));
    for run in runs(&done) {
        assert_eq!((blocks_of_3000(&run), run["process_count"].as_u64()), (1000, Some(2)));
        assert_eq!(
            (&run["processes"][0]["parent"], &run["processes"][1]["parent"]),
            (&Value::Null, &0.into())
        );
    }
    let done = folder.run(&format!("alloc --profile none,numa --json - -- {program} kill"));
    done.says(137, "");
    assert!(runs(&done).iter().all(|run| blocks_of_3000(run) == 500 && run["status"] == 137));
}

#[test]
fn a_program_runs_as_it_would() {
    let folder = Folder::new("alloc-profile-status");
    let Some(program) = program(&folder) else { return };
    folder.run(&format!("alloc --profile none -o t.txt -- {program} 7")).says(7, "");
    assert!(std::fs::read_to_string(folder.path("t.txt")).unwrap().contains(" allocations of "));
    // Each run reads the file from where it was.
    std::fs::write(folder.path("in"), "hello\n").unwrap();
    let mut command = folder.numa(&format!("alloc --profile none,numa -o t.txt -- {program}"));
    let input = File::open(folder.path("in")).unwrap();
    let done = Done::of(command.stdin(Stdio::from(input)).output().unwrap());
    assert_eq!((done.code, done.out.as_str()), (0, "hello\nhello\n"));
    let mut command = folder.numa(&format!("alloc --profile none,numa -- {program}"));
    let done = Done::of(command.stdin(Stdio::piped()).output().unwrap());
    done.says(2, "standard input is a pipe, which only one of 2 runs can read; give it as a file ('< FILE')");
    let mut command = folder.numa(&format!("alloc --profile numa -o t.txt -- {program}"));
    Done::of(command.stdin(Stdio::piped()).output().unwrap()).says(0, "");
}

#[test]
fn bad_requests_are_refused() {
    let folder = Folder::new("alloc-profile-bad");
    folder.run("alloc -- /no/such/program").says(127, "cannot run '/no/such/program': No such file");
    folder.run("alloc -- /etc/passwd").says(126, "cannot run '/etc/passwd': Permission denied");
    folder.run("alloc").says(2, "<--pid <PID>|CMD>");
    folder.run("alloc --profile fast -- true").says(2, "[possible values: none, lowmem, uma, numa]");
    folder.run("alloc --every 0 -- true").says(2, "'0'");
    folder.run("alloc --every 2G -- true").says(2, "'2G' is not from 1 to 1G; give a size such as 4K");
    folder.run("alloc --html no/x.html -- true").says(2, "cannot write no/x.html");
    assert!(!Path::new("no").exists());
}

#[test]
fn a_static_program_is_named() {
    let folder = Folder::new("alloc-profile-static");
    let Some(program) = compiled(&folder, "fixed", PROGRAM, &["-static", "-include", "signal.h"]) else {
        return;
    };
    let done = folder.run(&format!("alloc --profile none -- {}", program.display()));
    done.says(0, "is statically linked: it cannot load libnumacount.so");
    assert!(done.out.starts_with("No call of malloc arrived: "), "{}", done.out);
}

#[test]
fn a_program_with_a_sanitizer_is_refused() {
    let folder = Folder::new("alloc-profile-asan");
    for (kind, name) in [("address", "AddressSanitizer"), ("thread", "ThreadSanitizer")] {
        let option = format!("-fsanitize={kind}");
        let options = [option.as_str(), "-include", "signal.h"];
        let Some(program) = compiled(&folder, "checked", PROGRAM, &options) else { return };
        let done = folder.run(&format!("alloc -- {}", program.display()));
        done.says(2, &format!("has the {name}, which needs its own malloc; build it without -fsanitize"));
        let ran = folder.run(&format!("run -c 1 --busy off --alloc numa -- {}", program.display()));
        assert!(ran.err.contains(&format!("has the {name}, which needs its own malloc")), "{}", ran.err);
        // It ends by itself: the first one finds what it never frees.
        assert!(ran.code < 128, "{} {}", ran.code, ran.err);
    }
}

#[test]
fn a_program_that_executes_another_has_two_entries() {
    let folder = Folder::new("alloc-profile-exec");
    let Some(program) = program(&folder) else { return };
    let script = format!("exec {program}\n");
    std::fs::write(folder.path("script"), script).unwrap();
    let done = folder.run("alloc --profile numa --json - -- sh script");
    let run = &runs(&done)[0];
    let processes = run["processes"].as_array().unwrap();
    assert_eq!((processes.len(), &processes[0]["pid"]), (2, &processes[1]["pid"]));
    assert!(processes.iter().all(|process| process["parent"].is_null()));
    assert_eq!(blocks_of_3000(run), 500);
}
