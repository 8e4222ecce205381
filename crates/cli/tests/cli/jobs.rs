//! `numa jobs`.

use crate::explain::{cpus, program};
use crate::explain_shared::SharedFile;
use crate::runner::Folder;
use std::process::Command;

#[test]
fn the_own_processes_are_a_job_with_cpu_time_and_memory() {
    let folder = Folder::new("jobs");
    let done = folder.run("jobs -i 300ms --json");
    done.says(0, "");
    let all: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    let jobs = all["jobs"].as_array().unwrap();
    let busy = jobs.iter().filter(|job| job["cpu_seconds"].as_f64().unwrap() > 0.0);
    assert!(busy.count() > 0, "at least numa itself ran: {all}");
    for job in jobs {
        let name = job["job"].as_str().unwrap();
        assert!(name.bytes().all(|b| b.is_ascii_graphic()) && name.len() <= 100, "{name}");
        let by_node = job["cpu_seconds_by_node"].as_array().unwrap();
        assert_eq!(by_node.len(), all["nodes"].as_array().unwrap().len());
    }
    assert!(jobs.iter().any(|job| job["memory_bytes"].as_u64().unwrap() > 0), "{all}");
}

#[test]
fn without_samples_it_says_so() {
    let folder = Folder::new("jobs-without");
    let done = folder.run("jobs -i 50ms --sample-rate 0");
    done.says(0, "");
    assert!(
        done.out.contains("No samples of jobs: no samples are taken; give --sample-rate 19."),
        "{}",
        done.out
    );
    assert!(done.out.starts_with("JOB ") && done.out.contains("Memory in MiB"), "{}", done.out);
    folder.run("jobs --sample-rate 5000").says(2, "999");
}

/// `numa explain` names the line; the job that the processes belong to waits for it, and few samples must not hide that.
#[test]
fn measuring_a_contended_line_is_seen_in_two_seconds() {
    if cpus() < 2 {
        return numakit_skips::MACHINE.skip("two CPUs are needed for contention");
    }
    let (folder, file) = (Folder::new("jobs-contended"), SharedFile::new("jobs"));
    let Some(program) = program(&folder, "cc", "neighbours.c") else { return };
    let start = |place: u32| {
        let words = [file.0.display().to_string(), "8".to_owned(), place.to_string()];
        Command::new(&program).args(words).spawn().unwrap()
    };
    let mut running = [start(0), start(1)];
    let done = folder.run("jobs -i 2s --json");
    for one in &mut running {
        drop(one.kill());
        one.wait().unwrap();
    }
    done.says(0, "");
    let all: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    let absent = all["absent"].as_array().unwrap();
    if let Some(why) = absent.iter().find(|why| why["what"] == "samples of jobs") {
        return numakit_skips::MACHINE.skip(format!("samples of jobs: {}", why["reason"]));
    }
    let jobs = all["jobs"].as_array().unwrap();
    let contended: f64 = jobs.iter().filter_map(|job| job["contended_seconds"].as_f64()).sum();
    assert!(contended > 0.3, "{contended} s: {all}");
}
