use super::*;
use std::collections::BTreeSet;

fn share(share: f64) -> ShareEstimate {
    ShareEstimate { share, low: share - 0.02, high: share + 0.02 }
}

fn comparison() -> ResultComparison {
    let change = |what, before, after| ShareChange { what, before: share(before), after: share(after) };
    ResultComparison {
        unlike: vec![UnlikeResults::Method("by perf".into(), "by timers".into())],
        seconds: (12.0, 9.5),
        cpu_time: (40_000_000_000, 30_000_000_000),
        changes: vec![
            change(ChangedShare::Time("remote memory"), 0.5, 0.05),
            change(ChangedShare::Line("counters".into(), Sharing::False), 0.3, 0.02),
            change(ChangedShare::Threads("asleep"), 0.9, 0.5),
        ],
        gone: vec![ComparedFinding {
            rule: "contended-lines".into(),
            object: Some("counters".into()),
            says: "false sharing".into(),
        }],
        new: Vec::new(),
        compared: 1234,
        absent: BTreeSet::from(["time at objects"]),
    }
}

#[test]
fn changes_are_a_table_with_intervals() {
    let expected = "\
caution: samples were taken in different ways: by perf before, by timers after
AFTER takes 0.75 of the CPU time (40.00 s -> 30.00 s; one run each: how much such times vary is not known); observed 12.0 s \
before, 9.5 s after

Findings of BEFORE that are gone in AFTER:
  - counters: false sharing

             BEFORE              AFTER  CHANGED
  50.0 % (48 to 52)     5.0 % (3 to 7)  remote memory, of the CPU time
  30.0 % (28 to 32)     2.0 % (0 to 4)  contended lines of counters (false sharing), of the CPU time
  90.0 % (88 to 92)  50.0 % (48 to 52)  asleep, of the time of all threads

3 of 1,234 compared shares changed beyond noise: their 95 % intervals do not overlap
not compared: time at objects; at least one of the results does not tell it
";
    assert_eq!(text(&comparison(), 10), expected);
}

#[test]
fn rows_are_limited_and_no_change_is_said() {
    assert!(text(&comparison(), 1).contains("\n  2 more\n"));
    let faster = ResultComparison { changes: Vec::new(), ..comparison() };
    let alike = "\nAs far as samples tell, all of its parts changed alike: the intervals of all 1,234";
    assert!(text(&faster, 10).contains(alike) && !text(&faster, 10).contains("beyond noise"));
    let same = ResultComparison { cpu_time: (30_000_000_000, 29_000_000_000), ..faster };
    let said = text(&same, 10);
    assert!(said.contains("AFTER takes about the same CPU time (30.00 s -> 29.00 s;"), "{said}");
    assert!(
        said.contains("no share changed beyond noise: the intervals of all 1,234 compared shares overlap")
    );
    let slower = ResultComparison { cpu_time: (10_000_000_000, 29_000_000_000), ..comparison() };
    assert!(text(&slower, 10).contains("AFTER takes 2.90 times the CPU time (10.00 s -> 29.00 s;"));
    let nothing = ResultComparison { compared: 0, ..same };
    assert!(text(&nothing, 10).contains("nothing can be compared"));
}
