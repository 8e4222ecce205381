//! `numa tune`: programs that fail, and what is said and kept then.

use crate::runner::{Done, Folder, Started};
use numakit_testing::until;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Compares what the program prints after `score`; the program is not observed, and one or a few settings are tried.
pub const SCORES: &str = "--no-verdicts --metric score.([^[:space:]]+)";
/// Has runs for an answer, also on a busy machine: runs are repeated where cores are slower than before, and those count.
pub const ENOUGH: &str = "--budget 150";
/// A program that counts its runs in `run/runs`, with a score.
pub const COUNTS: &str = "echo run >>run/runs; echo score 10";

/// A program to tune, in a folder of its own.
pub struct Tuned {
    pub folder: Folder,
}

impl Tuned {
    /// The program `./app` is a shell script with this text.
    pub fn new(name: &str, text: &str) -> Self {
        let folder = Folder::new(name);
        folder.script("app", &format!("#!/bin/sh\n{text}\n"));
        Self { folder }
    }

    /// Tunes it with these options.
    pub fn tune(&self, options: &str) -> Done {
        self.spawn(options).end()
    }

    pub fn spawn(&self, options: &str) -> Started {
        let mut command = self.folder.numa(&format!("tune {options}"));
        if !options.contains("--resume") && !options.contains("--server") {
            command.arg("./app");
        }
        command.env_remove("LD_PRELOAD");
        Started::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
    }

    /// Goes on with the only tuning that is kept.
    pub fn resume(&self) -> Done {
        self.tune(&format!("--resume {}", self.kept().display()))
    }

    /// The files of all tunings that are kept.
    pub fn all_kept(&self) -> Vec<PathBuf> {
        let list = fs::read_dir(self.folder.path("state/numakit/tuned"));
        list.map_or_else(|_| Vec::new(), |list| list.map(|entry| entry.unwrap().path()).collect())
    }

    pub fn kept(&self) -> PathBuf {
        let all = self.all_kept();
        assert_eq!(all.len(), 1, "{all:?}");
        all[0].clone()
    }

    pub fn kept_value(&self) -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(self.kept()).unwrap()).unwrap()
    }

    /// How often the program was started, as it counts.
    pub fn runs(&self) -> usize {
        fs::read_to_string(self.folder.path("run/runs")).map_or(0, |text| text.lines().count())
    }

    /// How many runs are kept, without the first.
    pub fn kept_runs(&self) -> usize {
        self.kept_value()["runs"].as_array().unwrap().len()
    }

    /// Processes whose working directory this is.
    fn processes(&self) -> Vec<PathBuf> {
        let here = fs::canonicalize(&self.folder.0).unwrap();
        let all = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
        all.filter(|process| fs::read_link(process.join("cwd")).is_ok_and(|folder| folder == here)).collect()
    }

    /// Checks that no process, no file but these and no reservation is left.
    pub fn leaves_nothing_but(&self, files: &[&str]) {
        until!(self.processes().is_empty(), "the end of all processes in {}", self.folder.0.display());
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let found: BTreeSet<String> = fs::read_dir(&self.folder.0).unwrap().map(name).collect();
        let mine = ["app", "app.text", "run", "state", "registry"];
        let unknown: Vec<&String> =
            found.iter().filter(|name| !mine.iter().chain(files).any(|known| known == name)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        let list = self.folder.run("ps");
        assert!(
            list.code == 0 && list.out.starts_with("No program holds cores."),
            "{} {}",
            list.out,
            list.err
        );
    }

    /// Checks that all runs are kept, and that going on from them has the same answer without another run.
    pub fn keeps_all_of(&self, done: &Done) {
        let runs = (self.kept_runs(), self.runs());
        let again = self.resume();
        assert_eq!(without_time(&again.out), without_time(&done.out), "{}", again.err);
        assert!(again.err.contains("goes on after"), "{}", again.err);
        assert_eq!((self.kept_runs(), self.runs(), again.code), (runs.0, runs.1, done.code));
    }
}

/// A report without the line that has the time of all runs and the file.
fn without_time(report: &str) -> Vec<&str> {
    report.lines().filter(|line| !line.contains("all of it: ")).collect()
}

/// The row of a setting in a report.
pub fn row<'a>(report: &'a str, command: &str) -> &'a str {
    let of_command = |line: &&str| line.ends_with(&format!("  {command}"));
    report.lines().find(of_command).unwrap_or_else(|| panic!("no row of '{command}' in {report}"))
}

#[track_caller]
fn is_nothing(done: &Done, words: &[&str]) {
    assert!(done.code == 0 && done.out.starts_with("nothing is worth it: "), "{} {}", done.out, done.err);
    for words in words {
        assert!(done.out.contains(words), "'{words}' is not in {}", done.out);
    }
}

#[test]
fn a_setting_with_which_it_fails_is_out() {
    let failing = "test -z \"$LD_PRELOAD\" || { echo no library here >&2; exit 3; }";
    let tuned = Tuned::new("tune-fails", &format!("{COUNTS}; {failing}"));
    let done = tuned.tune(&format!("{SCORES} {ENOUGH}"));
    is_nothing(&done, &[", of which ", "numa run ./app: exit status 3: no library here\n"]);
    assert!(row(&done.out, "numa run ./app").contains("failed"), "{}", done.out);
    assert_eq!(tuned.runs(), tuned.kept_runs() + 1);
    tuned.leaves_nothing_but(&[]);
    tuned.keeps_all_of(&done);
}

#[test]
fn what_numa_run_says_before_is_not_why_a_program_fails() {
    let tuned = Tuned::new("tune-silent", "echo score 10; test -z \"$LD_PRELOAD\"");
    let done = tuned.tune(&format!("{SCORES} --budget 3"));
    assert!(done.out.contains("numa run ./app: exit status 1: score 10\n"), "{}", done.out);
}

#[test]
fn a_setting_with_which_it_hangs_is_out() {
    let tuned = Tuned::new("tune-hangs", "test -z \"$LD_PRELOAD\" || sleep 300; echo score 10");
    let done = tuned.tune(&format!("{SCORES} --no-generic --with=--stack=16M {ENOUGH}"));
    is_nothing(
        &done,
        &["numa run --stack 16M ./app: it had not ended after 10.0 s (without a setting it had taken 0."],
    );
    assert!(row(&done.out, "numa run --stack 16M ./app").contains("hung"), "{}", done.out);
    // That it was ended is what hanging means.
    assert!(!done.out.contains("left processes behind"), "{}", done.out);
    tuned.leaves_nothing_but(&[]);
    tuned.keeps_all_of(&done);
}

/// A program that counts its runs without a setting in `run/plain`, and sleeps in those with a number of which this is true.
fn sleeping(name: &str, when: &str) -> Tuned {
    let count = "test -n \"$LD_PRELOAD\" || echo run >>run/plain; n=$(wc -l <run/plain)";
    Tuned::new(
        name,
        &format!("{COUNTS}; {count}; test -z \"$LD_PRELOAD\" && test $n {when} && exec sleep 300; exit 0"),
    )
}

#[test]
fn a_run_without_a_setting_that_takes_too_long_once_is_repeated() {
    let tuned = sleeping("tune-slow-once", "-eq 2");
    let done = tuned.tune(&format!("{SCORES} --no-generic --with=--stack=16M --budget 8"));
    assert!(done.code == 0, "{} {}", done.out, done.err);
    let words = "1 run was repeated, since it had not ended in time without a setting, as runs before had\n";
    assert!(done.out.contains(words) && !done.out.contains("nothing can be compared"), "{}", done.out);
    let runs = tuned.kept_value()["runs"].as_array().unwrap().clone();
    let cut =
        runs.iter().find(|run| run["run"]["spoiled"] == "cut-off").unwrap_or_else(|| panic!("{runs:?}"));
    assert!(
        cut["run"]["why"].as_str().unwrap().starts_with("it had not ended after 10.0 s (without"),
        "{cut}"
    );
    tuned.leaves_nothing_but(&[]);
    tuned.keeps_all_of(&done);
}

#[test]
#[ignore = "thorough: waits for limits of 10 and 20 seconds"]
fn a_program_that_does_not_end_again_without_a_setting_is_said_to_hang() {
    let tuned = sleeping("tune-slow-twice", "-gt 1");
    let done = tuned.tune(&format!("{SCORES} --no-generic --with=--stack=16M --budget 8"));
    assert!(done.code == 2, "{} {}", done.out, done.err);
    let words = "the program did not end in time without a setting, so nothing can be compared: it had not ended after 20.0 s, nor after 10.0 s \
                 in the run before; end other programs, or give it an input that takes as long each time";
    assert!(done.out.starts_with(words), "{}", done.out);
    tuned.leaves_nothing_but(&[]);
    tuned.keeps_all_of(&done);
}

#[test]
fn a_program_that_does_not_end_is_ended_with_the_budget() {
    let tuned = Tuned::new("tune-endless", "exec sleep 300");
    for options in ["--budget 1s", "--budget 1s --no-verdicts"] {
        tuned.tune(options).says(2, "which is all of the budget; give more with --budget");
    }
    tuned.leaves_nothing_but(&[]);
}

#[test]
fn a_cure_that_the_user_gives_stays() {
    let tuned = Tuned::new("tune-given", &format!("{COUNTS}; echo score 10"));
    fs::write(tuned.folder.path("own.cure"), "no cure").unwrap();
    let done = tuned.tune(&format!("{SCORES} --no-generic --with=--apply=own.cure {ENOUGH}"));
    assert!(done.code == 0 && done.out.contains("own.cure"), "{} {}", done.out, done.err);
    tuned.leaves_nothing_but(&["own.cure"]);
}

#[test]
fn daemons_are_ended_and_said() {
    let tuned = Tuned::new("tune-daemons", &format!("setsid sleep 300 >/dev/null 2>&1 & {COUNTS}"));
    let done = tuned.tune(&format!("{SCORES} --budget 4"));
    assert!(done.code == 0, "{} {}", done.out, done.err);
    assert!(done.out.contains("3 runs left processes behind, which were ended: the metric"), "{}", done.out);
    tuned.leaves_nothing_but(&[]);
    tuned.keeps_all_of(&done);
}

#[test]
fn a_program_that_needs_a_terminal_is_said_to_fail() {
    let tuned = Tuned::new("tune-terminal", "read word </dev/tty || exit 1; echo score 10");
    let done = tuned.tune(SCORES);
    done.says(2, "the program must work without a setting before any is tried: exit status ");
    assert!(done.err.contains("/dev/tty") && done.out.is_empty(), "{} {}", done.out, done.err);
    tuned.leaves_nothing_but(&[]);
    assert!(tuned.all_kept().is_empty(), "{:?}", tuned.all_kept());
}

#[test]
fn files_that_a_program_writes_are_its_own() {
    let tuned = Tuned::new("tune-writes", &format!("echo x >result; {COUNTS}"));
    let done = tuned.tune(&format!("{SCORES} {ENOUGH}"));
    is_nothing(&done, &[]);
    tuned.leaves_nothing_but(&["result"]);
    tuned.keeps_all_of(&done);
}

#[test]
fn a_program_that_refuses_its_own_file_fails_without_a_setting() {
    let refuses = "test ! -e result || { echo result exists >&2; exit 4; }; echo x >result";
    let tuned = Tuned::new("tune-refuses", &format!("{refuses}; {COUNTS}"));
    let done = tuned.tune(&format!("{SCORES} {ENOUGH}"));
    assert!(done.code == 2, "{} {}", done.out, done.err);
    let words =
        "the program fails without a setting, so nothing can be compared: exit status 4: result exists";
    assert!(done.out.starts_with(words), "{}", done.out);
    tuned.leaves_nothing_but(&["result"]);
    tuned.keeps_all_of(&done);
}

#[test]
fn a_program_that_binds_its_threads_is_said_to() {
    let all = numakit_sys::sched::affinity().unwrap();
    let (Some(first), Some(last)) = (all.first(), all.last().filter(|_| all.len() > 1)) else {
        return numakit_skips::TOOLS.skip("a thread is bound to fewer CPUs only where there are two");
    };
    // Never to the CPU that it gets: where another program is bound to the first one, that is the last.
    let other = format!("case $NUMA_PLACE in {last}|{last}[,-]*) cpu={first};; *) cpu={last};; esac");
    let binds = format!("{other}; taskset -cp $cpu $$; sleep 0.5; {COUNTS}");
    // As mpirun does by what numa run sets.
    let launcher = format!("test -n \"$NUMA_MASK\" || taskset -cp {last} $$; sleep 0.5; {COUNTS}");
    let always = "the program binds its threads itself: settings of cores may not reach them";
    let unless = "binds its threads; with 'numa run' they have the cores that it gives";
    for (name, text, said, unsaid) in
        [("always", &binds, always, unless), ("unless", &launcher, unless, always)]
    {
        let tuned = Tuned::new(&format!("tune-binds-{name}"), text);
        let done = tuned.tune(&format!("{SCORES} --no-generic --with=--busy=off --budget 12"));
        assert!(done.code == 0, "{} {}", done.out, done.err);
        assert!(done.out.contains(said) && !done.out.contains(unsaid), "{name}: {}", done.out);
        let seen = &tuned.kept_value()["seen"];
        assert_eq!(
            (&seen["binds_threads"], &seen["is_placed"]),
            (&true.into(), &(name == "unless").into()),
            "{seen}"
        );
        tuned.leaves_nothing_but(&[]);
        tuned.keeps_all_of(&done);
    }
}

#[test]
fn a_program_without_a_metric_is_said_to_have_none() {
    let cases = [
        ("missing", "echo nothing", "nothing that the program printed matches 'score.([^[:space:]]+)'"),
        ("negative", "echo score -3", "the metric is -3, and only positive numbers can be compared"),
        ("zero", "echo score 0", "the metric is 0, and only positive numbers can be compared"),
        ("text", "echo score high", "'high' is no number"),
    ];
    for (name, text, words) in cases {
        let tuned = Tuned::new(&format!("tune-metric-{name}"), text);
        let done = tuned.tune(&format!("{SCORES} {ENOUGH}"));
        done.says(2, words);
        assert!(done.out.is_empty(), "{}", done.out);
        tuned.leaves_nothing_but(&[]);
        assert!(tuned.all_kept().is_empty(), "{:?}", tuned.all_kept());
    }
}

#[test]
fn a_setting_without_a_metric_or_with_a_wrong_result_is_out() {
    let tuned = Tuned::new("tune-no-metric", "test -n \"$LD_PRELOAD\" || echo score 10");
    let done = tuned.tune(&format!("{SCORES} {ENOUGH}"));
    is_nothing(&done, &["numa run ./app: nothing that the program printed matches"]);
    assert!(row(&done.out, "numa run ./app").contains("no metric"), "{}", done.out);
    tuned.leaves_nothing_but(&[]);
    tuned.keeps_all_of(&done);

    let text = "test -z \"$LD_PRELOAD\" && echo sum right || echo sum wrong; echo score 10";
    let checks = [
        ("--check sum.right", "nothing that it printed matches 'sum.right'"),
        ("--check-command grep\u{a0}right", "'grep right' says that its result is wrong: exit status 1"),
    ];
    for (number, (check, words)) in checks.into_iter().enumerate() {
        let tuned = Tuned::new(&format!("tune-check-{number}"), text);
        let mut command = tuned.folder.numa(&format!("tune {SCORES} {ENOUGH}"));
        command.args(check.split(' ').map(|word| word.replace('\u{a0}', " "))).arg("./app");
        let done = Done::of(command.env_remove("LD_PRELOAD").output().unwrap());
        is_nothing(&done, &[&format!("numa run ./app: {words}")]);
        assert!(row(&done.out, "numa run ./app").contains("wrong result"), "{}", done.out);
        tuned.leaves_nothing_but(&[]);
        tuned.keeps_all_of(&done);
    }
}

#[test]
fn a_result_that_is_wrong_without_a_setting_ends_all() {
    let tuned = Tuned::new("tune-wrong", COUNTS);
    tuned.tune(&format!("{SCORES} --check right")).says(2, "nothing that it printed matches 'right'");
    assert_eq!(tuned.runs(), 1);
    tuned.leaves_nothing_but(&[]);
}

#[test]
fn cores_that_are_reserved_meanwhile_repeat_runs() {
    let tuned = Tuned::new("tune-reserved", COUNTS);
    let mut holder = Started::of(&mut tuned.folder.numa("run --busy off -c all -- sleep 300"));
    until!(tuned.folder.run("ps").out.contains("sleep"));
    let done = tuned.tune(&format!("{SCORES} --budget 4"));
    assert!(done.code == 0, "{} {}", done.out, done.err);
    assert!(done.out.contains("repeated, since another program reserved cores"), "{}", done.out);
    holder.signal("TERM");
    holder.wait();
    until!(tuned.folder.run("ps").out.starts_with("No program holds cores."));
    tuned.leaves_nothing_but(&[]);
    tuned.keeps_all_of(&done);
}

#[test]
fn budgets_of_a_few_runs_say_how_little_is_known() {
    let tuned = Tuned::new("tune-budget", COUNTS);
    for (budget, runs, words) in
        [(1, "0 runs", "not known yet, after 0 runs"), (2, "1 run", "not known yet, after 1 run")]
    {
        let before = tuned.runs();
        let done = tuned.tune(&format!("{SCORES} --budget {budget}"));
        assert!(done.code == 0 && done.out.starts_with(words), "{} {}", done.out, done.err);
        assert!(done.out.contains(&format!("\n{runs} in ")), "{}", done.out);
        // Nothing is left to go on with.
        assert!(!done.out.contains("to go on"), "{}", done.out);
        assert_eq!(tuned.runs(), before + budget);
    }
    for (budget, words) in [
        ("0", "without a run nothing is known; give a number of runs such as 60, or a time such as 20m"),
        ("0s", "out of range"),
        ("soon", "or give a number of runs, as in 60"),
        ("12x", "or give a number of runs, as in 60"),
    ] {
        tuned.tune(&format!("{SCORES} --budget {budget}")).says(2, words);
    }
    assert_eq!((tuned.runs(), tuned.all_kept().len()), (3, 2));
    tuned.leaves_nothing_but(&[]);
}

#[test]
fn what_is_asked_for_in_a_wrong_way_is_refused_before_a_run() {
    let tuned = Tuned::new("tune-refused", COUNTS);
    for (options, words) in [
        ("--metric score.([", "'score.([' is no regular expression"),
        ("--check (", "'(' is no regular expression"),
        ("--worth 0", "give a percentage above 0 and below 100"),
        ("--worth 100", "give a percentage above 0 and below 100"),
        ("--higher", "required"),
        ("--no-generic --no-verdicts", "nothing is left to try"),
        ("--with ./other", "has no option of"),
        ("--server ./app", "required"),
        ("--json missing/folder/file", "missing/folder"),
    ] {
        tuned.tune(options).says(2, words);
    }
    let mut command = tuned.folder.numa("tune --no-verdicts ./app");
    let done = Done::of(command.arg(std::ffi::OsStr::from_bytes(b"caf\xe9")).output().unwrap());
    done.says(2, "is not UTF-8, which the file of a tuning cannot hold; start it by a script");
    tuned.folder.run("tune").says(2, "no program given; name one, as in 'numa tune ./app'");
    tuned.folder.run("tune ./absent").says(127, "./absent: ");
    fs::write(tuned.folder.path("data"), "no program").unwrap();
    tuned.folder.run("tune ./data").says(126, "./data: ");
    assert_eq!((tuned.runs(), tuned.all_kept().len()), (0, 0));
    tuned.leaves_nothing_but(&["data"]);
    assert!(!Path::new("missing").exists());
}
