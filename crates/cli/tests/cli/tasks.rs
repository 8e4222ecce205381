use crate::runner::Folder;
use std::process::{Child, Command, Stdio};

struct Sleeper(Child);

impl Sleeper {
    fn start() -> Self {
        Self(Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn has_numa() -> bool {
    let there = std::path::Path::new("/proc/self/numa_maps").exists();
    if !there {
        println!("skipped: this kernel has no /proc/PID/numa_maps");
    }
    there
}

#[test]
fn processes_are_listed_in_every_form() {
    if !has_numa() {
        return;
    }
    let (folder, sleeper) = (Folder::new("tasks"), Sleeper::start());
    let pid = sleeper.0.id();
    let list = folder.run("tasks --interval 10ms --top 100000");
    list.says(0, "");
    let line = list
        .out
        .lines()
        .find(|l| l.starts_with(&format!("{pid} ")))
        .unwrap_or_else(|| panic!("{}", list.out));
    assert!(line.trim_end().ends_with("sleep"), "{line}");
    let json = folder.run(&format!("tasks --interval 10ms -n 2 --json -p {pid}")).out;
    let objects: Vec<serde_json::Value> = json.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(objects.len(), 2);
    assert_eq!(
        (&objects[1]["processes"][0]["pid"], &objects[1]["processes"][0]["threads"]),
        (&pid.into(), &1.into())
    );
    let none = folder.run("tasks --interval 10ms --user nobody-of-this-name");
    assert!(none.code == 0 && !none.out.contains("sleep"), "{}", none.out);
}

#[test]
fn processes_that_are_not_there_are_told() {
    if !has_numa() {
        return;
    }
    let (folder, sleeper) = (Folder::new("tasksgone"), Sleeper::start());
    let some = folder.run(&format!("tasks --interval 1ms -p {},4194305", sleeper.0.id()));
    some.says(1, "there is no process 4194305;");
    assert!(some.out.contains("Total"), "{}", some.out);
    folder.run("tasks -p 4194305").says(2, "there is no process 4194305");
    folder.run("tasks -p 0").says(2, "");
    folder.run("tasks --sort size").says(2, "");
}

#[test]
fn totals_are_those_of_numastat() {
    if !has_numa() {
        return;
    }
    let (folder, sleeper) = (Folder::new("numastat"), Sleeper::start());
    let pid = sleeper.0.id().to_string();
    let theirs = || Command::new("numastat").args(["-p", &pid]).output();
    if theirs().is_err() {
        return println!("skipped: numastat is not installed (Debian package numactl)");
    }
    let theirs = || String::from_utf8(theirs().unwrap().stdout).unwrap();
    let ours = || folder.run(&format!("tasks --interval 1ms -p {pid}")).out;
    let total = |text: &str| {
        let line =
            text.lines().find(|l| l.trim_start().starts_with("Total ") && l.contains('.')).map(str::to_owned);
        let line = line.unwrap_or_else(|| panic!("no total in {text}"));
        line.split_whitespace().last().unwrap().parse::<f64>().unwrap()
    };
    // Its memory still grows at first; then what both see is the same. Ours has one decimal.
    for _ in 0..20 {
        let (before, theirs, after) = (total(&ours()), total(&theirs()), total(&ours()));
        if before == after {
            assert!((theirs - after).abs() <= 0.1, "{theirs} is not {after}");
            return;
        }
    }
    panic!("the memory of a sleeping process does not come to rest");
}
