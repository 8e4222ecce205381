//! Programs run as without the library that samples them, and samples of them arrive.
#![allow(clippy::unwrap_used)]

mod preloaded;

use numakit_launch::preload::Library;
use numakit_sys::clock;
use numakit_sys::sample_ring::{CHAIN, RingLosses, RingSample, SampleRing, SampledProcess};
use preloaded::words;
use std::path::Path;
use std::process::{Command, Output};

struct Observed {
    output: Output,
    samples: Vec<RingSample>,
    processes: Vec<SampledProcess>,
    losses: RingLosses,
}

fn observe(mut command: Command) -> Observed {
    let mut ring = SampleRing::create(4096).unwrap();
    // The library of this build, wherever HOME is.
    let library = Library::Explain.extract().unwrap();
    command.env("LD_PRELOAD", library).envs(ring.environment(199));
    let (mut samples, mut processes) = (Vec::new(), Vec::new());
    let output = preloaded::run(command, &mut |is_over| {
        ring.drain(&mut |sample| samples.push(sample.clone()));
        processes.extend(ring.processes().into_iter().filter(|process| process.is_ended));
        if !is_over {
            ring.wait(clock::monotonic() + 5_000_000);
        }
    });
    let losses = ring.losses();
    Observed { output, samples, processes, losses }
}

/// Runs it with the library and without, and compares.
fn same(line: &[&str]) -> Option<Observed> {
    let Ok(plain) = words(line).output() else {
        numakit_skips::TOOLS.skip_part(format!("there is no {}", line[0]));
        return None;
    };
    let observed = observe(words(line));
    assert_eq!(observed.output.status, plain.status, "{line:?}: {}", text(&observed.output.stderr));
    assert_eq!(text(&observed.output.stdout), text(&plain.stdout), "{line:?}");
    assert_eq!(text(&observed.output.stderr), text(&plain.stderr), "{line:?}");
    assert_eq!((observed.losses.unfinished, observed.losses.damaged, observed.losses.resets), (0, 0, 0));
    Some(observed)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const PYTHON: &str = "
import threading, subprocess, sys
def work():
    seen = {}
    for i in range(600000): seen[i % 1000] = seen.get(i % 1000, 0) + i
    counts.append(len(seen))
counts = []
threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads: t.start()
for t in threads: t.join()
print(counts)
print(subprocess.run(['sh', '-c', 'echo below; exit 3'], capture_output=True).returncode)
sys.exit(5)
";

#[test]
fn python_is_sampled_in_all_its_threads() {
    let Some(seen) = same(&["python3", "-c", PYTHON]) else { return };
    assert_eq!(seen.output.status.code(), Some(5));
    let mut threads: Vec<_> = seen.samples.iter().map(|sample| (sample.process, sample.thread)).collect();
    threads.sort_unstable();
    threads.dedup();
    assert!(threads.len() >= 3, "{threads:?}");
    for sample in &seen.samples {
        let stack = sample.general[4] - sample.stack_address;
        assert!(sample.ip != 0 && sample.time != 0 && stack == 128 && !sample.stack().is_empty());
    }
    assert!(seen.processes.iter().any(|process| process.threads >= 4 && process.threads_without_timer == 0));
}

#[test]
fn programs_end_as_without_it() {
    same(&["bash", "-c", "for i in 1 2 3; do ls / | wc -l; done; (exit 3); echo $?; kill -l RTMIN; exit 6"]);
    same(&["bash", "-c", "sleep 0.01; kill -9 $$"]);
    same(&[
        "bash",
        "-c",
        "trap 'echo caught' RTMIN; kill -RTMIN $$; s=0; for i in {1..99999}; do s=$i; done; kill -TERM $$",
    ]);
    same(&[
        "perl",
        "-e",
        "my %h; $h{$_ % 5000} .= 'x' for 1..500000; print scalar(keys %h), qq(\\n); exit 7",
    ]);
    same(&[
        "node",
        "-e",
        "let m = new Map(); for (let i = 0; i < 2e6; i++) m.set(i % 5000, i); console.log(m.size); process.exit(9)",
    ]);
    same(&["sh", "-c", "exec sh -c 'exec true'"]);
}

#[test]
fn java_is_sampled() {
    const CLASS: &str = "class Work { public static void main(String[] words) throws Exception {
        Thread[] all = new Thread[3]; int[] sizes = new int[3];
        for (int n = 0; n < 3; n++) { int own = n; all[n] = new Thread(() -> {
            var map = new java.util.HashMap<Integer, Integer>();
            for (int i = 0; i < 800000; i++) map.merge(i % 10007, 1, Integer::sum);
            sizes[own] = map.size(); }); all[n].start(); }
        for (Thread one : all) one.join();
        System.gc(); System.out.println(java.util.Arrays.toString(sizes)); System.exit(4); } }";
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("Work.java");
    write(&file, CLASS);
    let Some(seen) = same(&["java", file.to_str().unwrap()]) else { return };
    if seen.output.status.code() != Some(4) {
        return numakit_skips::TOOLS
            .skip(format_args!("java runs no source file: {}", text(&seen.output.stderr)));
    }
    assert!(seen.samples.len() > 20, "{}", seen.samples.len());
}

#[test]
fn many_processes_are_sampled() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("make");
    std::fs::create_dir_all(&folder).unwrap();
    let rules = "ALL := $(shell seq 40)\nall: $(ALL)\n\t@echo done\n$(ALL):\n\t@i=0; while [ $$i -lt 3000 ]; do i=$$((i+1)); done\n";
    write(&folder.join("Makefile"), rules);
    let Some(seen) = same(&["make", "-s", "-j4", "-C", folder.to_str().unwrap()]) else { return };
    assert!(seen.output.status.success(), "{}", text(&seen.output.stderr));
    assert!(seen.processes.len() >= 40 && !seen.samples.is_empty(), "{}", seen.processes.len());
    let written: u64 = seen.processes.iter().map(|process| process.samples).sum();
    assert_eq!(written, seen.samples.len() as u64, "samples of ended processes are missing");
}

/// Writes a file that is there as a whole at any time: another run of these tests may be reading it.
fn write(file: &Path, content: &str) {
    let new = file.with_extension(std::process::id().to_string());
    std::fs::write(&new, content).unwrap();
    std::fs::rename(new, file).unwrap();
}

#[test]
fn measuring_a_chain_of_loads_is_known_to_the_observer() {
    let mut command = words(&["true"]);
    command.env(CHAIN, "300");
    let seen = observe(command);
    assert!(seen.output.status.success());
    let chain = seen.processes.iter().find_map(|process| process.chain).unwrap();
    let inside = seen.samples.iter().filter(|sample| (chain.begin..=chain.end).contains(&sample.ip)).count();
    assert!(inside > 0 && inside * 2 > seen.samples.len(), "{inside} of {}", seen.samples.len());
}
