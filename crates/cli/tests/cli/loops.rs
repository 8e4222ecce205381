//! `numa run --loops`: loops of an unmodified program run with shares, with the same results.

use crate::run::{compiled, numa, run};
use crate::runner::{Done, Folder};
use std::process::Command;

const PROGRAM: &str = r#"
#include <stdio.h>
int main(void)
{
    static int seen[20000];
    long sum = 0, last = -1;
#pragma omp parallel for schedule(runtime) num_threads(4) reduction(+ : sum) lastprivate(last)
    for (long i = 0; i < 20000; i++) {
        for (volatile long k = 0; k < i / 50; k++)
            ;
        __atomic_fetch_add(&seen[i], 1, __ATOMIC_RELAXED);
        sum += i;
        last = i;
    }
#pragma omp parallel for schedule(guided) num_threads(4) reduction(+ : sum)
    for (long i = 0; i < 20000; i++)
        sum += seen[i] == 1;
    printf("sum %ld last %ld\n", sum, last);
    return 0;
}
"#;
const RESULT: &str = "sum 200010000 last 19999\n";

/// The lines of the library.
fn said(done: &Done) -> Vec<&str> {
    done.err.lines().filter(|line| line.starts_with("numasched: ")).collect()
}

#[test]
fn adaptive_loops_have_the_results_of_others_and_say_what_they_did() {
    let folder = Folder::new("loops");
    let Some(program) = compiled(&folder, "app", PROGRAM, &["-O2", "-fopenmp"]) else { return };
    let program = program.to_str().unwrap();
    let plain = Command::new(program).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&plain.stdout), RESULT);
    for (schedule, loops, shared) in [
        ("dynamic", "adaptive", "2 loops with shares, 0 left to libgomp"),
        ("guided,3", "adaptive,64", "2 loops with shares, 0 left to libgomp"),
        ("static", "adaptive", "1 loops with shares"),
    ] {
        let mut command = numa(&folder, &["-c", "1", "--busy", "off", "--loops", loops, program]);
        let done = Done::of(
            command
                .env("OMP_SCHEDULE", schedule)
                .env("NUMASCHED_STATS", "1")
                .env("OMP_WAIT_POLICY", "passive")
                .output()
                .unwrap(),
        );
        assert_eq!((done.code, done.out.as_str()), (0, RESULT), "{schedule}: {}", done.err);
        let lines = said(&done);
        assert!(lines.first().is_some_and(|line| line.contains(shared)), "{schedule}: {}", done.err);
        assert!(lines.iter().any(|line| line.contains(" iterations in ")), "{schedule}: {}", done.err);
        let is_noted =
            done.err.contains("OMP_SCHEDULE is 'static', so loops with schedule(runtime) stay as they are");
        assert_eq!(is_noted, schedule == "static", "{}", done.err);
    }
    // More threads than CPUs: those that wait must not keep one.
    let mut command = numa(&folder, &["-c", "1", "--busy", "off", program]);
    let done = Done::of(command.env("OMP_WAIT_POLICY", "passive").output().unwrap());
    assert_eq!((done.out.as_str(), said(&done).len()), (RESULT, 0), "{}", done.err);
}

#[test]
fn the_library_is_preloaded_behind_the_one_that_places() {
    let folder = Folder::new("loops-preloaded");
    let done = run(&folder, &["-c", "1", "--busy", "off", "--loops", "adaptive,8", "--", "env"]);
    let list = done.out.lines().find_map(|line| line.strip_prefix("LD_PRELOAD=")).unwrap();
    let names: Vec<&str> = list.split(':').filter_map(|path| path.rsplit('/').next()).collect();
    assert_eq!(names, ["libnumaplace.so", "libnumasched.so"], "{list}");
    assert!(done.out.contains("NUMASCHED_CHUNK=8\n"), "{}", done.out);
}

#[test]
fn another_value_is_refused_with_those_that_there_are() {
    let folder = Folder::new("loops-refused");
    for wrong in ["dynamic", "adaptive,0", "adaptive,"] {
        run(&folder, &["--loops", wrong, "true"])
            .says(2, &format!("'{wrong}' is not adaptive or adaptive,CHUNK with at least one iteration"));
    }
}
