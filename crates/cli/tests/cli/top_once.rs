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
        numakit_skips::MACHINE.skip("this kernel has no /proc/PID/numa_maps");
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
    let list = folder.run("top --once --interval 10ms --top 100000");
    list.says(0, "");
    let line = list
        .out
        .lines()
        .find(|l| l.starts_with(&format!("{pid} ")))
        .unwrap_or_else(|| panic!("{}", list.out));
    assert!(line.trim_end().ends_with("sleep"), "{line}");
    let json = folder.run(&format!("top --once --interval 10ms -n 2 --json -p {pid}")).out;
    let objects: Vec<serde_json::Value> = json.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(objects.len(), 2);
    assert_eq!(
        (&objects[1]["processes"][0]["pid"], &objects[1]["processes"][0]["threads"]),
        (&pid.into(), &1.into())
    );
    let none = folder.run("top --once --interval 10ms --user nobody-of-this-name");
    assert!(none.code == 0 && !none.out.contains("sleep"), "{}", none.out);
}

#[test]
fn missing_processes_are_reported() {
    if !has_numa() {
        return;
    }
    let (folder, sleeper) = (Folder::new("tasksgone"), Sleeper::start());
    let some = folder.run(&format!("top --once --interval 1ms -p {},4194305", sleeper.0.id()));
    some.says(1, "there is no process 4194305;");
    assert!(some.out.contains("Total"), "{}", some.out);
    folder.run("top --once -p 4194305").says(2, "there is no process 4194305");
    folder.run("top --once -p 0").says(2, "");
    folder.run("top --once --sort size").says(2, "");
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
        return numakit_skips::TOOLS.skip("numastat is not installed (Debian package numactl)");
    }
    let theirs = || String::from_utf8(theirs().unwrap().stdout).unwrap();
    let ours = || folder.run(&format!("top --once --interval 1ms -p {pid}")).out;
    let total = |text: &str| {
        let line =
            text.lines().find(|l| l.trim_start().starts_with("Total ") && l.contains('.')).map(str::to_owned);
        let line = line.unwrap_or_else(|| panic!("no total in {text}"));
        line.split_whitespace().last().unwrap().parse::<f64>().unwrap()
    };
    // Its memory grows at first; then both values are equal. Ours has one decimal.
    for _ in 0..20 {
        let (before, theirs, after) = (total(&ours()), total(&theirs()), total(&ours()));
        if before == after {
            assert!((theirs - after).abs() <= 0.1, "{theirs} is not {after}");
            return;
        }
    }
    panic!("the memory of a sleeping process does not become constant");
}

#[test]
fn totals_since_the_start_are_those_of_numastat() {
    let folder = Folder::new("totals");
    let Ok(theirs) = std::fs::read_to_string("/sys/devices/system/node/node0/numastat") else {
        return numakit_skips::MACHINE.skip("this kernel has no nodes");
    };
    let done = folder.run("top --totals");
    done.says(0, "");
    let heads: Vec<&str> = done.out.lines().next().unwrap().split_whitespace().collect();
    let line = done.out.lines().nth(1).unwrap();
    let ours: Vec<u64> =
        line.split_whitespace().skip(1).take(6).map(|n| n.replace(',', "").parse().unwrap()).collect();
    let later = std::fs::read_to_string("/sys/devices/system/node/node0/numastat").unwrap();
    let value = |text: &str, name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).unwrap();
        line.trim().parse::<u64>().unwrap()
    };
    for (name, ours) in heads[1..7].iter().zip(&ours) {
        assert!((value(&theirs, name)..=value(&later, name)).contains(ours), "{name} {}", done.out);
    }
    let json: serde_json::Value = serde_json::from_str(&folder.run("top --totals --json").out).unwrap();
    assert!(json["nodes"][0]["numa_hit"].as_u64().unwrap() >= ours[0], "{json}");
    folder.run("top --totals -p 1").says(2, "cannot be used with");
}

#[test]
fn affinity_is_that_of_taskset() {
    let (folder, sleeper) = (Folder::new("affinity"), Sleeper::start());
    let pid = sleeper.0.id();
    let taskset = |arguments: &[&str]| Command::new("taskset").args(arguments).output();
    let Ok(bound) = taskset(&["-cp", "0", &pid.to_string()]) else {
        return numakit_skips::TOOLS.skip("taskset is not installed (Debian package util-linux)");
    };
    assert!(bound.status.success());
    let mask = |pid: &str| {
        let out = String::from_utf8(taskset(&["-p", pid]).unwrap().stdout).unwrap();
        out.trim().rsplit(' ').next().unwrap().to_owned()
    };
    let narrow = folder.run(&format!("top --affinity {pid}"));
    narrow.says(0, "");
    let line = narrow.out.lines().find(|line| line.trim_start().starts_with(&pid.to_string())).unwrap();
    assert!(line.contains("sleep, 1 thread"), "{line}");
    assert!(narrow.out.contains("bound to one CPU") || narrow.out.contains("not bound"), "{}", narrow.out);
    let json: serde_json::Value =
        serde_json::from_str(&folder.run(&format!("top --affinity {pid} --json")).out).unwrap();
    assert_eq!(json["groups"][0]["mask"], mask(&pid.to_string()));
    assert_eq!((&json["groups"][0]["cpus"], &json["groups"][0]["threads"]), (&"0".into(), &vec![pid].into()));
    let missing = folder.run(&format!("top --affinity {pid},4194305"));
    missing.says(1, "there is no process 4194305;");
    assert!(missing.out.contains("sleep"), "{}", missing.out);
    folder.run("top --affinity 4194305").says(2, "there is no process 4194305");
}

#[test]
fn options_that_make_no_sense_together_are_refused() {
    let folder = Folder::new("top-options");
    folder.run("top").says(2, "'numa top --once' prints processes");
    folder.run("top --once true").says(2, "'numa stat true' prints counters while it runs");
    for line in [
        "top --once --replay a.arrows",
        "top --once -e vmstat",
        "top --json --sample-rate 1",
        "top --totals --sort pid",
        "top --affinity 1 --user root",
        "top --once -p 1 --name sh",
    ] {
        folder.run(line).says(2, "cannot be used with");
    }
    for line in ["top --user root", "top --top 3"] {
        folder.run(line).says(2, "--once");
    }
    let by_faults = folder.run("top --once --sort faults -i 100ms");
    by_faults.says(0, "");
    assert!(by_faults.out.lines().next().unwrap().contains("FAULTS/s"), "{}", by_faults.out);
    folder.run("top --once --name zzzzzzzzz").says(2, "no program that runs has a matching name");
}
