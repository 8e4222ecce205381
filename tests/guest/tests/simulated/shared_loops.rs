//! What libnumasched is worth: lines from other nodes of a loop with schedule(runtime) over rows that were first touched with
//! schedule(static).

use numakit_guest::{Failure, Guest, Part, Shape, Simulation, programs};
use std::time::Duration;

const PRELOADED: &str = "LD_PRELOAD=/usr/lib/libnumasched.so NUMASCHED_STATS=1";
const PINNED: &str = "GOMP_CPU_AFFINITY=0-7";

/// Step and command; each has one region. The work of the last row is twice that of the first; in the triangle it is 64 times.
fn experiments() -> Vec<(String, String)> {
    let works = [("", ""), ("triangle-", " 1 64")];
    let of = |(prefix, words): (&str, &str)| {
        [
            ("static", format!("{PINNED} OMP_SCHEDULE=static ramp{words}")),
            ("dynamic", format!("{PINNED} OMP_SCHEDULE=dynamic ramp{words}")),
            ("guided", format!("{PINNED} OMP_SCHEDULE=guided ramp{words}")),
            ("adaptive", format!("{PINNED} {PRELOADED} OMP_SCHEDULE=dynamic ramp{words}")),
            ("adaptive-static", format!("{PINNED} {PRELOADED} OMP_SCHEDULE=static ramp{words}")),
            // All of it, as it is installed.
            (
                "whole",
                format!("OMP_SCHEDULE=dynamic numa run --busy off -c 8 --loops adaptive -- ramp{words}"),
            ),
        ]
        .map(|(name, command)| (format!("{prefix}{name}"), command))
    };
    works.into_iter().flat_map(of).collect()
}

pub fn guest() -> Result<Guest, Failure> {
    let mut guest = Guest::new(Shape::named("four")?)
        .simulate(Simulation::new())
        .program(&programs::numa()?)
        .file(&programs::libnumasched()?, "/usr/lib/libnumasched.so")
        .program(&programs::compiled("ramp")?.ok_or_else(|| Failure::NotFound("ramp".to_owned()))?)
        .timeout(Duration::from_secs(1100));
    // Threads that wait must not keep a CPU: there are more of them here than real ones.
    for (name, value) in [("OMP_WAIT_POLICY", "passive"), ("GOMP_SPINCOUNT", "0")] {
        guest = guest.env(name, value);
    }
    for (name, words) in experiments() {
        guest = guest.step_of_regions(&name, 1, &["sh", "-c", &words]);
    }
    Ok(guest)
}

fn part() -> Option<Part> {
    super::LOOPS.part("shared_loops")
}

/// The percentage of lines that came from other nodes.
fn remote(part: &Part, name: &str) -> f64 {
    let (local, remote) = part.regions(name)[0].local_and_remote();
    let share = 100.0 * remote as f64 / (local + remote) as f64;
    println!("{name}: {remote} of {} lines remote, {share:.1} %", local + remote);
    share
}

fn checksum(part: &Part, name: &str) -> String {
    let text = part[name].succeeded();
    text.lines().filter(|line| line.starts_with("checksum ") || line.starts_with("iterations ")).collect()
}

/// More than with schedule(static), in percent. 7 % of the rows have to move, 15 % in the triangle; emulated CPUs that the host
/// starves look slow, and more is stolen from them. Of the lines of the kernel, which all schedules have, there are more where the
/// host is busy: 3 to 7 % of all.
const MORE: [(&str, f64); 2] = [("", 12.0), ("triangle-", 24.0)];
const OF_THE_KERNEL: f64 = 10.0;

#[test]
#[ignore = "thorough: a program twelve times in the simulated machine, 8 minutes"]
fn adaptive_loops_read_their_own_rows() {
    let Some(part) = part() else { return };
    for (prefix, more) in MORE {
        let remote = |name: &str| remote(&part, &format!("{prefix}{name}"));
        let fixed = remote("static");
        assert!(fixed <= OF_THE_KERNEL);
        assert!(remote("dynamic") >= 60.0);
        assert!(remote("guided") >= 50.0);
        assert!(remote("adaptive") <= fixed + more);
        assert!(remote("whole") <= fixed + more);
        assert!(remote("adaptive-static") <= OF_THE_KERNEL);
    }
}

#[test]
#[ignore = "thorough: a program twelve times in the simulated machine, 8 minutes"]
fn all_schedules_have_the_same_results() {
    let Some(part) = part() else { return };
    for prefix in ["", "triangle-"] {
        let expected = checksum(&part, &format!("{prefix}static"));
        assert!(expected.starts_with("iterations 4096checksum "), "{expected}");
        for (name, _) in
            experiments().into_iter().filter(|(name, _)| name.starts_with("triangle-") != prefix.is_empty())
        {
            assert_eq!(checksum(&part, &name), expected, "{name}");
        }
    }
}
