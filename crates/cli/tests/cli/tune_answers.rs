//! `numa tune` of programs whose metric depends on nothing but the setting.

use crate::runner::{Done, Folder, Started};
use crate::tune::{COUNTS, ENOUGH, SCORES, Tuned, row};
use numakit_testing::until;
use numakit_tune::candidates::{TuneOption, TuneSetting, TunedMachine, around, placements, products};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The setting of the whole kernel.
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// A program that prints one score if the library of `numa run` is preloaded, and another one otherwise.
fn preloaded(name: &str, with: u32, without: u32) -> Tuned {
    let condition = "case \"$LD_PRELOAD\" in *libnumaplace.so*) ";
    Tuned::new(name, &format!("{condition} echo score {with};; *) echo score {without};; esac"))
}

#[track_caller]
fn begins(done: &Done, words: &str) {
    assert!(done.code == 0 && done.out.starts_with(words), "{} {}", done.out, done.err);
}

/// Checks that a setting with these words wins by this gain. On a busy machine, whose runs are repeated or left out, one that is
/// equal to it in all that counts may have an option more.
#[track_caller]
fn wins(done: &Done, words: &str, gain: &str) {
    begins(done, "use this: ");
    let first = done.out.lines().next().unwrap();
    assert!(first.contains(words) && first.contains(&format!("./app: {gain}")), "{}", done.out);
}

#[test]
fn the_right_setting_wins() {
    let less = preloaded("tune-less", 7, 10);
    let done = less.tune(&format!("{SCORES} {ENOUGH}"));
    wins(&done, "numa run ", "30 % less 'score.([^[:space:]]+)' (30 to 30), ");
    assert!(!done.out.lines().next().unwrap().contains("--no-library"), "{}", done.out);
    let is_confirmed = |line: &str| line.starts_with("30 ") && line.contains("confirmed  numa run ");
    assert!(done.out.lines().any(is_confirmed), "{}", done.out);
    less.leaves_nothing_but(&[]);
    less.keeps_all_of(&done);
    // The same figures where more is better.
    let done = less.tune(&format!("{SCORES} --higher {ENOUGH}"));
    begins(&done, "nothing is worth it: of ");
    let more = preloaded("tune-more", 13, 10);
    let done = more.tune(&format!("{SCORES} --higher {ENOUGH}"));
    wins(&done, "numa run ", "30 % more 'score.([^[:space:]]+)' (30 to 30), ");
}

#[test]
fn a_gain_below_what_is_worth_it_is_none() {
    let tuned = preloaded("tune-worth", 7, 10);
    begins(&tuned.tune(&format!("{SCORES} {ENOUGH} --worth 40")), "nothing is worth it: of ");
    wins(&tuned.tune(&format!("{SCORES} {ENOUGH} --worth 25")), "numa run ", "30 % less ");
}

#[test]
fn only_what_is_advised_is_tried_and_that_may_be_nothing() {
    let tuned = Tuned::new("tune-advised", COUNTS);
    let options = SCORES.replace("--no-verdicts", "--only-verdicts");
    let done = tuned.tune(&format!("{options} {ENOUGH}"));
    begins(&done, "nothing is worth it: of 0 settings, none gains 1.0 % or more, in 1 run\n");
    // The observation, the first run, and the race of the default alone.
    assert_eq!(tuned.runs(), 3);
    tuned.leaves_nothing_but(&[]);
    tuned.keeps_all_of(&done);
    let tuned = Tuned::new("tune-unobserved", COUNTS);
    assert_eq!(tuned.tune(&format!("{SCORES} --budget 3")).code, 0);
    assert_eq!(tuned.runs(), 3);
}

#[test]
fn an_option_of_the_second_race_wins() {
    let text = "grep -q 'THP_enabled:.*0' /proc/self/status && echo score 7 || echo score 10";
    let tuned = Tuned::new("tune-second", text);
    let done = tuned.tune(&format!("{SCORES} {ENOUGH}"));
    wins(&done, "--thp off", "30 % less ");
    tuned.leaves_nothing_but(&[]);
    tuned.keeps_all_of(&done);
}

#[test]
fn json_has_what_the_text_says() {
    let tuned = preloaded("tune-json", 7, 10);
    let done = tuned.tune(&format!("{SCORES} {ENOUGH} --json -"));
    let report: Value = serde_json::from_str(&done.out).unwrap();
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    let sorted = |words: &str| {
        let mut words: Vec<&str> = words.split_whitespace().collect();
        words.sort_unstable();
        words.join(" ")
    };
    let fields = "command metric worth answer candidates left_out budget_for_all untried few_samples runs seconds noise spoiled \
                  binds_threads binds_unless_placed leaving file";
    assert_eq!(sorted(&names(&report)), sorted(fields));
    let fields = "command source says bound needs state runs spoiled in_rounds confirmed why";
    report["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .for_each(|one| assert_eq!(sorted(&names(one)), sorted(fields)));
    assert_eq!(sorted(&names(&report["answer"])), sorted("kind candidate command gain time cpu needs bound"));
    let gain = "gain low high again_low again_high confidence worst pairs";
    assert_eq!(sorted(&names(&report["answer"]["gain"])), sorted(gain));
    assert_eq!((&report["answer"]["kind"], &report["command"]), (&"use".into(), &"./app".into()));
    let place = report["answer"]["candidate"].as_u64().unwrap() as usize;
    assert_eq!(report["candidates"][place]["command"], report["answer"]["command"]);
    assert!((report["answer"]["gain"]["gain"].as_f64().unwrap() - 0.3).abs() < 1e-9, "{report}");
    assert_eq!(report["runs"].as_u64().unwrap() as usize, tuned.kept_runs());
    // In a file, with the text on standard output.
    let again = tuned.tune(&format!("--resume {} --json run/report.json", tuned.kept().display()));
    wins(&again, "numa run ", "30 % less ");
    let file: Value =
        serde_json::from_str(&fs::read_to_string(tuned.folder.path("run/report.json")).unwrap()).unwrap();
    assert_eq!(file, report);
    tuned.leaves_nothing_but(&[]);
}

/// The setting of the kernel now, and another one; `None`, and a message, if it cannot be changed.
fn huge_pages() -> Option<(String, &'static str)> {
    let now = numakit_sys::guard::value(Path::new(HUGE_PAGES)).unwrap_or_default();
    if fs::write(HUGE_PAGES, &now).is_err() {
        numakit_skips::ROOT.skip(format_args!("{HUGE_PAGES} cannot be written"));
        return None;
    }
    let other = if now == "never" { "madvise" } else { "never" };
    Some((now, other))
}

/// They run alone, since they change a setting of the machine for a moment.
mod measuring {
    use super::*;

    #[test]
    fn a_setting_of_the_machine_wins_and_is_restored() {
        let Some((before, other)) = huge_pages() else { return };
        let text = format!("grep -qF '[{other}]' {HUGE_PAGES} && echo score 7 || echo score 10");
        let tuned = Tuned::new("tune-system", &text);
        let done = tuned.tune(&format!("{SCORES} {ENOUGH} --system"));
        wins(&done, &format!("echo {other} >{HUGE_PAGES} && "), "30 % less ");
        assert!(done.out.contains("needs a setting of the machine"), "{}", done.out);
        assert_eq!(numakit_sys::guard::value(Path::new(HUGE_PAGES)).unwrap(), before);
        tuned.leaves_nothing_but(&[]);
    }

    #[test]
    fn a_setting_of_the_machine_is_restored_when_the_tuner_is_killed() {
        let Some((before, other)) = huge_pages() else { return };
        let hold = "echo >run/held; while [ -e run/held ] && [ ! -e run/go ]; do sleep 0.02; done;";
        let text = format!("if grep -qF '[{other}]' {HUGE_PAGES}; then {hold} fi; echo score 10");
        let tuned = Tuned::new("tune-system-killed", &text);
        for signal in ["KILL", "INT"] {
            let mut started: Started = tuned.spawn(&format!("{SCORES} {ENOUGH} --system"));
            until!(tuned.folder.path("run/held").exists());
            let value = || numakit_sys::guard::value(Path::new(HUGE_PAGES)).unwrap();
            assert_eq!(value(), other);
            started.signal(signal);
            started.wait();
            until!(value() == before, "the old value of {HUGE_PAGES}, now {}", value());
            fs::remove_file(tuned.folder.path("run/held")).unwrap();
            tuned.leaves_nothing_but(&[]);
        }
    }
}

#[test]
fn all_words_of_candidates_are_options_of_numa_run() {
    let of = |nodes, cores, cores_per_cache, threads_per_core| TunedMachine {
        nodes,
        cores,
        cores_per_cache,
        threads_per_core,
        has_openmp: true,
        allocators: vec!["/usr/lib/libjemalloc.so.2".to_owned()],
        settings: vec![(HUGE_PAGES.to_owned(), "always".to_owned())],
    };
    let mut tried = 0;
    for machine in [of(1, 1, 1, 1), of(1, 8, 8, 2), of(2, 16, 8, 2), of(4, 64, 8, 4), of(8, 96, 3, 1)] {
        let first = placements(&machine);
        let second = around(&machine, &[&first[..], &[TuneSetting::default()]].concat());
        let last = first.iter().flat_map(|base| products(base, &second));
        for setting in first.iter().chain(&second).cloned().chain(last) {
            let words = ["numa".to_owned(), "run".to_owned()].into_iter().chain(setting.words());
            let words: Vec<String> = words.chain(["./app".to_owned(), "--thp".to_owned()]).collect();
            let parsed = numakit_cli::command().try_get_matches_from(&words);
            assert!(parsed.is_ok(), "{words:?}: {}", parsed.unwrap_err());
            // Only an option of numa has words of its own.
            let known = setting.options().iter().all(|option| !matches!(option, TuneOption::Words(_)));
            assert!(known && setting.is_placed() | setting.words().is_empty(), "{setting:?}");
            tried += 1;
        }
    }
    assert!(tried > 1000, "{tried}");
}

/// A server that is ready when `run/ready` is there, and that removes it when it is stopped.
const SERVES: &str = "trap 'rm -f run/ready; exit 0' TERM\necho run >>run/runs\necho >run/ready\n\
                      while :; do sleep 0.02; done";

fn server(name: &str, text: &str, load: &str) -> Folder {
    let folder = Folder::new(name);
    folder.script("server", &format!("#!/bin/sh\n{text}\n"));
    folder.script("load", &format!("#!/bin/sh\n{load}\n"));
    folder
}

fn served(folder: &Folder, budget: &str) -> Done {
    let mut command =
        folder.numa(&format!("tune {SCORES} --budget {budget} --server ./server --load ./load"));
    command.args(["--ready", "test -e run/ready"]).env_remove("LD_PRELOAD");
    Done::of(command.output().unwrap())
}

#[test]
fn a_server_is_started_loaded_and_stopped_in_each_run() {
    let load = "test -e run/ready || exit 1; echo load >>run/loads; echo score 10";
    let folder = server("tune-server", SERVES, load);
    let done = served(&folder, "4");
    assert!(done.code == 0, "{} {}", done.out, done.err);
    let lines = |name: &str| fs::read_to_string(folder.path(name)).unwrap().lines().count();
    // Each of four runs has one server, and a load that warms it.
    assert_eq!((lines("run/runs"), lines("run/loads")), (4, 8));
    assert_eq!(row(&done.out, "./server").split_whitespace().nth(4), Some("default"), "{}", done.out);
    assert!(!folder.path("run/ready").exists() && !done.out.contains("left processes"), "{}", done.out);
}

#[test]
fn a_server_that_does_not_work_is_said_not_to() {
    for (name, text, load, words) in [
        (
            "ends",
            "echo no port >&2; exit 5",
            "echo score 10",
            "the server ended before it was ready: exit status 5: no port",
        ),
        (
            "breaks",
            "echo >run/ready; while [ ! -e run/loaded ]; do sleep 0.02; done; exit 6",
            "echo >run/loaded; sleep 0.5",
            "the server ended: exit status 6",
        ),
        ("fails", SERVES, "echo no answer >&2; exit 7", "the load failed: exit status 7: no answer"),
        ("silent", SERVES, "exit 0", "nothing that the program printed matches"),
    ] {
        let folder = server(&format!("tune-server-{name}"), text, load);
        let done = served(&folder, "4");
        done.says(2, words);
        assert!(done.out.is_empty(), "{}", done.out);
    }
}

/// It has a minute, or the budget if that is shorter.
#[test]
fn a_server_that_never_gets_ready_is_said_to() {
    let folder = server("tune-server-never", "sleep 300", "echo score 10");
    served(&folder, "1s").says(2, "the server was not ready after 1 s: exit status 1");
}

#[test]
fn a_server_that_is_not_ready_yet_can_be_interrupted() {
    let folder = server("tune-server-interrupted", "echo >run/begun; sleep 300", "echo score 10");
    let mut command = folder.numa(&format!("tune {SCORES} --server ./server --load ./load --ready false"));
    let piped = std::process::Stdio::piped;
    let started = Started::of(command.env_remove("LD_PRELOAD").stdout(piped()).stderr(piped()));
    until!(folder.path("run/begun").exists());
    started.signal("INT");
    started.end().says(130, "interrupted before a run was there to keep");
}
