//! `numa tune` that is interrupted or killed, and what goes on from the file that it keeps.

use crate::runner::{Done, Started};
use crate::tune::{ENOUGH, SCORES, Tuned, row};
use numakit_testing::until;
use serde_json::{Value, json};
use std::fs;

/// A program that waits in the run whose number is in `run/hold`, until `run/go` is there.
const HOLDS: &str = r#"
echo run >>run/runs
if [ "$(wc -l <run/runs)" = "$(cat run/hold 2>/dev/null)" ]; then
    echo >run/held
    while [ -e run/held ] && [ ! -e run/go ]; do sleep 0.02; done
fi
echo score 10"#;

fn holding(name: &str, run: usize) -> Tuned {
    let tuned = Tuned::new(name, HOLDS);
    fs::write(tuned.folder.path("run/hold"), run.to_string()).unwrap();
    tuned
}

/// Starts a tuning, and waits until its program waits.
fn held(tuned: &Tuned, options: &str) -> Started {
    let started = tuned.spawn(options);
    until!(tuned.folder.path("run/held").exists());
    started
}

/// Sends a signal to a tuning whose program waits.
fn interrupted(tuned: &Tuned, options: &str, signal: &str) -> Done {
    let started = held(tuned, options);
    started.signal(signal);
    let done = started.end();
    fs::remove_file(tuned.folder.path("run/hold")).unwrap();
    done
}

fn kept_runs(tuned: &Tuned) -> Vec<Value> {
    tuned.kept_value()["runs"].as_array().unwrap().clone()
}

/// Checks that a tuning goes on with the run that was cut off, after those that are kept.
fn goes_on(tuned: &Tuned, whole: usize) {
    let (kept, started) = (kept_runs(tuned), tuned.runs());
    // The first one, those that are kept, and the one that was cut off.
    assert_eq!((kept.len(), started), (whole, whole + 2));
    let done = tuned.resume();
    assert!(done.code == 0 && done.out.starts_with("nothing is worth it: "), "{} {}", done.out, done.err);
    assert!(done.err.contains(&format!("goes on after {whole} run")), "{}", done.err);
    assert!(done.err.contains(" of ./app"), "{}", done.err);
    let after = kept_runs(tuned);
    assert_eq!(after[..whole], kept);
    assert!(after.len() > whole && tuned.runs() == started + after.len() - whole, "{}", tuned.runs());
    tuned.leaves_nothing_but(&[]);
    tuned.keeps_all_of(&done);
}

#[test]
fn an_interruption_before_the_races_keeps_nothing_and_says_so() {
    for (name, options, run) in [
        ("tune-int-observed", SCORES.trim_start_matches("--no-verdicts"), 1),
        ("tune-int-first-observed", SCORES.trim_start_matches("--no-verdicts"), 2),
        ("tune-int-first", SCORES, 1),
    ] {
        let tuned = holding(name, run);
        let done = interrupted(&tuned, options, "INT");
        done.says(130, "interrupted before a run was there to keep; to begin again, type the same command");
        assert!(done.out.is_empty() && tuned.runs() == run, "{} {}", done.out, tuned.runs());
        tuned.leaves_nothing_but(&[]);
        assert!(tuned.all_kept().is_empty(), "{:?}", tuned.all_kept());
    }
}

#[test]
fn an_interrupted_tuning_goes_on() {
    // In the first round, and in a pair: a round of two has at most six runs, and four pairs end no earlier than with run 11.
    for (name, run, signal, code) in [("round", 2, "INT", 130), ("pair", 9, "TERM", 143)] {
        let tuned = holding(&format!("tune-int-{name}"), run);
        let done = interrupted(&tuned, &format!("{SCORES} {ENOUGH}"), signal);
        assert!(
            done.code == code && done.out.starts_with("not known yet, after "),
            "{} {}",
            done.code,
            done.out
        );
        let last = done.out.lines().last().unwrap();
        assert_eq!(last, format!("to go on: numa tune --resume {}", tuned.kept().display()));
        assert_eq!(row(&done.out, "./app").split_whitespace().nth(4), Some("default"), "{}", done.out);
        tuned.leaves_nothing_but(&[]);
        goes_on(&tuned, run - 2);
    }
}

#[test]
fn a_killed_tuning_goes_on() {
    let tuned = holding("tune-kill", 5);
    let mut started = held(&tuned, &format!("{SCORES} {ENOUGH}"));
    started.signal("KILL");
    started.wait();
    // The program still waits, and nobody would end it.
    assert!(tuned.folder.path("run/held").exists());
    tuned.leaves_nothing_but(&[]);
    fs::remove_file(tuned.folder.path("run/hold")).unwrap();
    goes_on(&tuned, 3);
}

#[test]
fn a_record_that_was_changed_is_refused() {
    let tuned = Tuned::new("tune-changed", HOLDS);
    assert_eq!(tuned.tune(&format!("{SCORES} --budget 6")).code, 0);
    let (before, runs) = (tuned.kept_value(), tuned.runs());
    type Change<'a> = (&'a str, &'a dyn Fn(&mut Value), &'a str);
    let other = 1 - before["tuning"]["stages"][0][0]["candidate"].as_u64().unwrap();
    let last = before["tuning"]["stages"][0][1].clone();
    let changes: [Change<'_>; 11] = [
        ("order", &|kept| kept["tuning"]["stages"][0][0]["candidate"] = json!(other), "start again"),
        ("stage", &|kept| move_run(kept), "which this tuning has not; it was changed, start again"),
        ("less", &|kept| _ = kept["runs"].as_array_mut().unwrap().pop(), "runs, and it has "),
        ("form", &|kept| kept["form"] = json!(7), "it has the form 7, and this version of numa reads 1"),
        ("procedure", &|kept| kept["tuning"]["procedure"] = json!(99), "99"),
        ("metric", &|kept| kept["tuning"]["stages"][0][1] = negative(&last), "the metric is -1"),
        ("time", &|kept| kept["first"]["wall"] = json!(1e300), "it has a time of 1"),
        ("program", &|kept| kept["request"]["scene"]["words"] = json!([]), "it has no program"),
        (
            "pattern",
            &|kept| kept["request"]["metric"]["pattern"] = json!("("),
            "'(' is no regular expression",
        ),
        ("worth", &|kept| kept["tuning"]["plan"]["worth"] = json!(2.0), "2"),
        ("field", &|kept| _ = kept.as_object_mut().unwrap().remove("seen"), "missing field `seen`"),
    ];
    for (name, change, words) in changes {
        let mut kept = before.clone();
        change(&mut kept);
        let file = tuned.folder.path(&format!("run/{name}.json"));
        fs::write(&file, kept.to_string()).unwrap();
        let done = tuned.tune(&format!("--resume {}", file.display()));
        assert!(
            done.code == 2 && done.err.contains(words) && done.out.is_empty(),
            "{name}: {} {}",
            done.out,
            done.err
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), kept.to_string(), "{name}");
    }
    for (name, text) in [("empty", ""), ("half", "{\"form\":1,"), ("text", "score 10")] {
        let file = tuned.folder.path(&format!("run/{name}.json"));
        fs::write(&file, text).unwrap();
        let done = tuned.tune(&format!("--resume {}", file.display()));
        done.says(2, "is no tuning that 'numa tune' has kept: ");
    }
    let mut elsewhere = tuned.folder.numa(&format!("tune --resume {}", tuned.kept().display()));
    let done = Done::of(elsewhere.current_dir(tuned.folder.path("run")).output().unwrap());
    done.says(2, &format!("go there first: cd {}", tuned.folder.0.display()));
    tuned.tune("--resume run/absent.json").says(2, "cannot read run/absent.json: ");
    assert_eq!(tuned.runs(), runs);
    tuned.leaves_nothing_but(&[]);
}

fn negative(run: &Value) -> Value {
    let mut run = run.clone();
    run["outcome"] = json!({"metric": -1.0});
    run
}

/// Moves the last run to a stage that there is not.
fn move_run(kept: &mut Value) {
    let stages = kept["tuning"]["stages"].as_array_mut().unwrap();
    let run = stages[0].as_array_mut().unwrap().pop().unwrap();
    stages.push(json!([run]));
}
