//! Several arrays in one loop: which has most of the samples. How much of the time it saves to leave out an array was measured
//! with the same program; decision 15 has the table.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_explain::collector::Collector;
use numakit_explain::processes::Processes;
use numakit_model::Topology;
use numakit_sampling::choice::{self, PreloadObstacle, SampledProgram};
use numakit_sampling::{Landing, MethodEvent, SampleSettings, open};
use numakit_sys::command::Running;
use numakit_sys::permissions::Permissions;
use numakit_testing::until;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

const SECONDS: &str = "1.5";
const RATE: u32 = 997;
const NAMES: [&str; 3] = ["one", "two", "four"];

/// The array that costs most has at least this share of the samples at the arrays, in percent.
const MIN_SHARE: f64 = 70.0;

/// Kind of loop, the arrays that it uses, and that whose removal saves most of the time.
const LOOPS: [(&str, u32, &str); 3] = [("loads", 7, "two"), ("stores", 7, "two"), ("scatter", 3, "one")];

struct Program(PathBuf);

impl Program {
    /// The compiled program; none without a compiler.
    fn compiled() -> Option<Self> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/several/several.c");
        let program = std::env::temp_dir().join(format!("numakit-several-{}", std::process::id()));
        match Command::new("gcc").args(["-O2", "-o"]).arg(&program).arg(source).output() {
            Ok(built) => {
                assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
                Some(Self(program))
            }
            Err(error) => {
                numakit_skips::COMPILERS.skip(format_args!("gcc: {error}"));
                None
            }
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
        drop(std::fs::remove_file(self.0.with_extension("out")));
    }
}

/// The shares of the samples at memory that are in each of the arrays, in percent; none where samples are not permitted.
fn shares(program: &Program, kind: &str, used: u32) -> Option<[f64; 3]> {
    let output = program.0.with_extension("out");
    let script = format!("exec {} {kind} {used} {SECONDS} > {}", program.0.display(), output.display());
    let words = ["sh", "-c", &script].map(std::ffi::OsString::from).to_vec();
    let permissions = Permissions::own_of(&choice::PERMISSIONS);
    let no_library = PreloadObstacle("is sampled without a library".to_owned());
    let choice = choice::choose(&permissions, SampledProgram::Command(Some(&no_library)), None);
    let Ok(choice) = choice else {
        numakit_skips::SAMPLES.skip("neither performance events nor ptrace are permitted");
        return None;
    };
    let settings = SampleSettings { frequency: RATE, ..SampleSettings::default() };
    let (mut method, mut running) =
        open::command(&choice, &settings, None, move |_| Running::start(&words)).unwrap();
    let landing = match method.landing() {
        landing @ (Landing::Behind | Landing::OneFurther) => landing,
        Landing::BlockStart | Landing::Other => {
            numakit_skips::MACHINE.skip("samples of this machine do not name the instruction that waited");
            return None;
        }
    };
    let (mut collector, mut processes) = (Collector::new(landing), Processes::new(&Topology::default()));
    until!({
        let ended = running.ended().unwrap().is_some();
        method
            .drain(&mut |event| match event {
                MethodEvent::Sample(sample) if !sample.in_kernel => collector.take(sample, &mut processes),
                MethodEvent::Executed { process, time } => {
                    collector.forget(process, &mut processes);
                    processes.executed(process, time);
                }
                MethodEvent::Mapped { process } => processes.mapped(process),
                _ => {}
            })
            .unwrap();
        ended
    });
    let arrays = arrays(&std::fs::read_to_string(&output).unwrap());
    let mut counts = [0.0; 3];
    // The arrays are written before the loop begins.
    let loop_starts = collector.observations.last().unwrap().time * 2 / 5;
    for at in collector.observations.iter().filter(|at| at.time > loop_starts) {
        let address = at.access().map_or(0, |access| access.address);
        let place = arrays.iter().position(|array| array.contains(&address));
        place.into_iter().for_each(|place| counts[place] += 1.0);
    }
    let all: f64 = counts.iter().sum();
    assert!(all > 200.0, "{kind}: {counts:?} of {} samples", collector.observations.len());
    Some(counts.map(|count| 100.0 * count / all))
}

/// The addresses of the arrays, from what the program printed.
fn arrays(printed: &str) -> Vec<Range<u64>> {
    let of = |name: &&str| {
        let words = printed.lines().find_map(|line| line.strip_prefix(&format!("array {name} "))).unwrap();
        let (start, bytes) = words.split_once(' ').unwrap();
        let (start, bytes): (u64, u64) = (start.parse().unwrap(), bytes.parse().unwrap());
        start..start + bytes
    };
    NAMES.iter().map(of).collect()
}

#[test]
fn measuring_of_several_arrays_that_which_costs_most_has_most_samples() {
    let Some(program) = Program::compiled() else { return };
    for (kind, used, first) in LOOPS {
        let Some(shares) = shares(&program, kind, used) else { return };
        println!("{kind:<8} {shares:4.0?} % of {NAMES:?}");
        let place = NAMES.iter().position(|name| *name == first).unwrap();
        assert!(shares[place] > MIN_SHARE, "{kind}: {shares:?}");
    }
}
