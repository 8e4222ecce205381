//! How fast `numa move` moves pages, beside a plain loop of move_pages over the same pages in the same guest, in turn.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::programs::figure;
use numakit_guest::{Boot, Failure, Guest, Shape, or_skipped, programs};
use serde_json::Value;
use std::time::Duration;

const ROUNDS: usize = 9;
/// What moving may lose to pieces and pauses.
const LEAST: f64 = 0.8;

const OURS: &str = "--pid $P --for 4s --nodes 1 --rate 64G";

/// The threads run on node 1 already: where one moves at the same time, each interruption has to reach its last CPU too, which is
/// idle and takes long to wake up in an emulator. Both loops come after an observation: what was emulated just before is quick.
fn boot() -> Result<Boot, Failure> {
    let round = |at| {
        format!(
            "numa move {OURS} --json >ours{at} || {{ cat ours{at} >&2; exit 1; }}; numa move --pid $P --back; \
             numa move {OURS} --dry-run >/dev/null; moves $P 1 >plain{at} || exit 1; moves $P 2 >/dev/null; "
        )
    };
    // What an emulator runs for the first time is slow: the first round is not counted.
    let rounds: String = (0..=ROUNDS).map(round).collect();
    let command = format!(
        "export XDG_STATE_HOME=/tmp/state; elsewhere serve 2 stop >printed & until grep -qs process printed; do sleep 0.1; done; \
         P=$(sed -n 's/process //p' printed); for T in $(ls /proc/$P/task); do taskset -p 4 $T; done; {rounds} touch stop; wait; cat printed"
    );
    let taskset = programs::of_host("taskset").ok_or_else(|| Failure::NotFound("taskset".to_owned()))?;
    Guest::new(Shape::named("four")?)
        .timeout(Duration::from_secs(600))
        .program(&programs::numa()?)
        .program(&programs::compiled("elsewhere")?.unwrap())
        .program(&programs::compiled("moves")?.unwrap())
        .program(&taskset)
        .step("quiet", &["sh", "-c", "echo 0 >/proc/sys/kernel/numa_balancing"])
        .step("small", &["sh", "-c", "echo never >/sys/kernel/mm/transparent_hugepage/enabled"])
        .step("rounds", &["sh", "-c", &command])
        .boot()
}

/// Pages in a second by the report of `numa move`.
fn ours(text: &str) -> f64 {
    let report: Value = serde_json::from_str(text).unwrap();
    let seconds = report["took"]["secs"].as_f64().unwrap() + report["took"]["nanos"].as_f64().unwrap() / 1e9;
    report["moved_pages"].as_f64().unwrap() / seconds
}

#[test]
#[ignore = "thorough: pages are moved to and fro in a guest, 2 minutes"]
fn moving_is_nearly_as_fast_as_a_plain_loop() {
    let result = boot();
    let Some(boot) = or_skipped(&result) else { return };
    println!("{}", boot["rounds"].errors());
    assert_eq!(figure(&boot["rounds"].succeeded(), "wrong"), Some(0.0));
    let read = |name: &str, at: usize| std::fs::read_to_string(boot.out.join(format!("{name}{at}"))).unwrap();
    let mut ratios: Vec<f64> = (1..=ROUNDS)
        .map(|at| {
            let text = read("plain", at);
            let plain = figure(&text, "pages").unwrap() / figure(&text, "seconds").unwrap();
            let ours = ours(&read("ours", at));
            println!("{ours:.0} pages in a second, a plain loop {plain:.0}: {:.2}", ours / plain);
            ours / plain
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    println!("median {:.2}", ratios[ROUNDS / 2]);
    assert!(ratios[ROUNDS / 2] >= LEAST, "{ratios:?}");
}
