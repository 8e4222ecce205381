//! Flame graphs: whose time at memory it is, and who touched it first.

use crate::explain::{explained_in, explained_with, program};
use crate::explain_truth::has_huge_pages;
use crate::runner::Folder;
use serde_json::Value;

/// The sum of the lines of a folded file that contain all of these, in order.
fn sum(folded: &str, frames: &[&str]) -> f64 {
    let has = |line: &&str| {
        let mut rest = *line;
        frames.iter().all(|frame| match rest.split_once(frame) {
            Some((_, behind)) => {
                rest = behind;
                true
            }
            None => false,
        })
    };
    folded.lines().filter(has).map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

#[test]
fn measuring_time_and_memory_belong_to_their_call_chains_without_frame_pointers() {
    let folder = Folder::new("explain-flame");
    let Some(program) = program(&folder, "cc", "chains.c") else { return };
    let command = format!("{} > rss", program.display());
    std::fs::write(folder.path("run.sh"), format!("exec {command}\n")).unwrap();
    let Some(result) = explained_with(&folder, "--flame graph", "sh run.sh") else { return };
    let read = |name: &str| std::fs::read_to_string(folder.path(name));
    let time = read("graph.time.folded").unwrap();
    let all = sum(&time, &[]);
    let (large, small) = (sum(&time, &["main;use_large;gather;"]), sum(&time, &["main;use_small;gather;"]));
    println!("{:.1} ms, in gather {large} and {small}", all / 1e6);
    assert!(large + small > 0.95 * all && large > 0.3 * all && small > 0.3 * all, "{time}");
    let svg = read("graph.time.svg").unwrap();
    assert!(svg.starts_with("<svg") && svg.contains(">use_large<") && svg.ends_with("</svg>\n"));
    if result["flame"]["resident"] == Value::Null {
        assert!(read("graph.resident.svg").is_err());
        return numakit_skips::PRIVILEGES.skip_part("page faults are not seen here");
    }
    assert_blocks_are_of_their_chains(&folder);
}

/// A program touches hundreds of MiB in huge pages before its rings are drained for the first time.
#[test]
fn measuring_memory_in_huge_pages_belongs_to_its_call_chains_too() {
    let folder = Folder::new("explain-flame-huge");
    if !numakit_sys::permissions::locks_without_limit() {
        return numakit_skips::PRIVILEGES.skip("locked memory has a limit: the ring of faults is small");
    }
    if !has_huge_pages() {
        return numakit_skips::MACHINE.skip("there are no huge pages");
    }
    let Some(program) = program(&folder, "cc", "chains.c") else { return };
    std::fs::write(folder.path("run.sh"), format!("exec {} > rss\n", program.display())).unwrap();
    let huge = [("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")];
    let result = match explained_in(&folder, &huge, "--flame graph", "sh run.sh") {
        Ok(result) => result,
        Err((kind, why)) => return kind.skip(why),
    };
    if result["flame"]["resident"] == Value::Null {
        return numakit_skips::PRIVILEGES.skip("page faults are not seen here");
    }
    assert_blocks_are_of_their_chains(&folder);
}

/// Of what `chains` touched.
fn assert_blocks_are_of_their_chains(folder: &Folder) {
    let read = |name: &str| std::fs::read_to_string(folder.path(name)).unwrap();
    let resident = read("graph.resident.folded");
    let (all, counted) = (sum(&resident, &[]) / 1024.0, read("rss").trim().parse::<f64>().unwrap());
    assert!((all - counted).abs() <= 0.01 * counted, "{all} kB in the graph, {counted} in smaps");
    for (frames, mib) in [(["main;make_large;fill;"], 192.0), (["main;make_small;"], 64.0)] {
        let found = sum(&resident, &frames) / f64::from(1 << 20);
        assert!((found - mib).abs() < 0.1 * mib, "{frames:?}: {found} MiB\n{resident}");
    }
}

#[test]
fn files_that_cannot_be_written_are_refused_before_the_program_runs() {
    let folder = Folder::new("explain-flame-refused");
    let done = folder.run("explain --flame no/such/folder/graph -- touch ran");
    assert_eq!(done.code, 2, "{}", done.err);
    assert!(done.err.contains("no/such/folder/graph.time.svg"), "{}", done.err);
    assert!(!folder.path("ran").exists());
}
