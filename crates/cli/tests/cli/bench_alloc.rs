//! `numa bench alloc`: which allocators are measured, and what becomes of one that does not load, crashes or hangs.

use crate::compiler::builds;
use crate::runner::{Done, Folder};
use numakit_bench::{BenchResult, BenchResults};
use numakit_testing::until;
use std::path::Path;

const SHORT: &str = "bench alloc --quick --size 1M --time 3ms --json";
const WORKS: [&str; 5] = ["small", "passed", "servers", "large", "waves"];

fn result(done: &Done) -> BenchResult {
    let results: BenchResults =
        serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {} {}", done.out, done.err));
    results.benchmarks.into_iter().next().unwrap()
}

/// With a folder that is searched for allocators first.
fn with_libraries(folder: &Folder) -> Done {
    let mut command = folder.numa(SHORT);
    Done::of(command.env("LD_LIBRARY_PATH", folder.path("lib")).output().unwrap())
}

fn why(result: &BenchResult, what: &str) -> String {
    let left = result.left_out.iter().find(|left| left.what == what);
    left.unwrap_or_else(|| panic!("'{what}' is not left out: {result:?}")).why.clone()
}

/// A library of this source; none, with the reason printed, where there is no compiler.
fn compiled(folder: &Folder, name: &str, source: &str) -> bool {
    std::fs::create_dir_all(folder.path("lib")).unwrap();
    std::fs::write(folder.path("a.c"), source).unwrap();
    let options = ["-shared", "-fPIC", "-fno-builtin", "-O1"];
    let is_built = builds("cc", &options, &folder.path("a.c"), &folder.path("lib").join(name));
    if !is_built {
        numakit_skips::COMPILERS.skip("there is no C compiler, which makes such a library");
    }
    is_built
}

#[test]
fn every_allocator_is_measured_with_every_work() {
    let folder = Folder::new("benchalloc");
    let done = folder.run(SHORT);
    assert_eq!(done.code, 0, "{}", done.err);
    let result = result(&done);
    let cores = numakit_topology::read(&numakit_sys::SysRoot::host()).unwrap().cores.len();
    let works: Vec<&str> = WORKS.into_iter().filter(|work| cores > 1 || *work != "passed").collect();
    for name in [
        "time of an operation of a thread",
        "CPU time of an operation",
        "resident memory at the peak, of the live bytes",
    ] {
        let table = result.tables.iter().find(|table| table.name == name);
        let table = table.unwrap_or_else(|| panic!("no '{name}' in {result:?}"));
        assert_eq!(table.columns, works);
        assert_eq!(table.rows[..2], ["C library", "libnumalloc"]);
        let values: Vec<_> = table.values().collect();
        assert!(values.iter().all(|(.., value)| value.samples == 3 && value.low > 0.0), "{table:?}");
        assert_eq!(values.len(), works.len() * table.rows.len(), "{table:?} {:?}", result.left_out);
        // Each was verified in its process, and its file is named.
        let files = result.remarks.iter().find(|remark| remark.starts_with("C library is ")).unwrap();
        table.rows.iter().for_each(|row| assert!(files.contains(&format!("{row} is /")), "{row}: {files}"));
    }
    std::fs::write(folder.path("a.json"), done.out).unwrap();
    tables_are_in_every_form(&folder);
}

/// Of `a.json`.
fn tables_are_in_every_form(folder: &Folder) {
    let text = folder.run("bench show a.json").out;
    for part in ["  allocator \\ work ", "\n  libnumalloc ", "left out: ", "geometric mean"] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
    let csv = folder.run("bench show a.json --csv").out;
    assert!(csv.contains("alloc,table,CPU time of an operation,libnumalloc,small,,,ns,"), "{csv}");
    let page = folder.run("bench show a.json --html -").out;
    assert!(page.contains("<th scope=\"row\">libnumalloc</th>"), "{page}");
    let same = folder.run("bench compare a.json a.json").out;
    assert!(same.contains("no change beyond the noise within a run"), "{same}");
}

#[test]
fn what_does_not_load_is_left_out() {
    let folder = Folder::new("benchallocbroken");
    std::fs::create_dir_all(folder.path("lib")).unwrap();
    std::fs::write(folder.path("lib/libjemalloc.so.2"), "no library\n").unwrap();
    let broken = result(&with_libraries(&folder));
    let reason = why(&broken, "jemalloc");
    for part in ["lib/libjemalloc.so.2 was not loaded: malloc is that of", "libc.so", "cannot be preloaded"] {
        assert!(reason.contains(part), "no '{part}' in {reason}");
    }
    for table in &broken.tables {
        let has = |name: &str| table.rows.iter().any(|row| row == name);
        assert!(has("C library") && has("libnumalloc") && !has("jemalloc"), "{table:?}");
    }
    let mut missing = folder.numa(SHORT);
    let missing = Done::of(missing.env("NUMAKIT_PRELOAD_ALLOC", "/nowhere/a.so").output().unwrap());
    let reason = why(&result(&missing), "libnumalloc");
    assert!(reason.contains("'/nowhere/a.so', where there is no file"), "{reason}");
}

#[test]
fn an_allocator_that_crashes_has_a_reason() {
    let folder = Folder::new("benchalloccrash");
    // Large blocks end the process; the others are the C library's.
    let source = "#include <stddef.h>\n#include <signal.h>\nextern void *__libc_malloc(size_t);\n\
        void *malloc(size_t size) { if (size > 60000 && size < 4500000 && size % 4096) raise(SIGSEGV); return __libc_malloc(size); }\n";
    if !compiled(&folder, "libhoard.so", source) {
        return;
    }
    let result = result(&with_libraries(&folder));
    let why = why(&result, "hoard, large");
    assert!(why.contains("its process was ended by signal 11"), "{why}");
    let times = &result.tables[0];
    let row = times.rows.iter().position(|row| row == "hoard").unwrap();
    let column = |word: &str| times.columns.iter().position(|column| column == word).unwrap();
    assert!(times.cells[row][column("small")].is_some(), "{times:?}");
    assert!(times.cells[row][column("large")].is_none(), "{times:?}");
}

/// The processes whose parent is this one.
fn children(process: u32) -> Vec<u32> {
    let list = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let words = list.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    words
        .flat_map(|text| text.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Starts a run whose children take long, and sends a signal to it once it has one. Returns the child too.
fn signalled(folder: &Folder, signal: &str) -> (Done, u32) {
    let run = folder.spawn("bench alloc --json --time 600s");
    let mut found = Vec::new();
    until!({
        found = children(run.id());
        // It is that program, and has its threads.
        found.iter().any(|child| {
            let words = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            words.windows(10).any(|part| part == b"alloc-work")
        })
    });
    run.signal(signal);
    (run.end(), found[0])
}

#[test]
fn a_signal_ends_the_child_too() {
    let folder = Folder::new("benchallocint");
    for (signal, code) in [("INT", 130), ("KILL", -9)] {
        let (done, child) = signalled(&folder, signal);
        assert_eq!(done.code, code, "{} {}", done.out, done.err);
        until!(!Path::new(&format!("/proc/{child}")).exists() || is_zombie(child));
        if signal == "INT" {
            let results: BenchResults = serde_json::from_str(&done.out).unwrap();
            assert!(!results.complete && results.benchmarks[0].tables.is_empty(), "{}", done.out);
        }
    }
}

/// It has ended, and init has not asked for its status.
fn is_zombie(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status.contains("State:\tZ")
}

#[test]
fn the_hidden_verb_refuses_what_is_no_request() {
    let folder = Folder::new("benchallocwork");
    folder.run("alloc-work {}").says(2, "no request of 'numa bench alloc', which starts this verb");
    let seats = r#"{"work":"small","seats":[{"cpu":9999,"node":0}],"time":{"secs":0,"nanos":1},"bytes":65536,"asks_nodes":false}"#;
    folder.run(&format!("alloc-work {seats}")).says(2, "a thread cannot be bound to CPU 9999");
    let done = folder.run(&format!("alloc-work {}", seats.replace("9999", "0")));
    assert!(done.code == 0 && done.out.contains("\"operations\":"), "{} {}", done.out, done.err);
}
