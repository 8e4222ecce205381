use super::*;
use numakit_processes::ProcessRanking;
use std::fmt::Write;

const PAGES_PER_MIB: u64 = 256;
const FIX: &str = "run as root, or as the user of the process";

fn process(pid: u32, command: &str, ran_ms: u64, near_far: (u64, u64), heap: &[u64]) -> ProcessSample {
    let mut found = MemoryByUse::none(heap.len());
    for (uses, mib) in found.0.iter_mut().zip(heap) {
        uses[Use::Heap as usize] = mib * PAGES_PER_MIB * 4096;
        uses[Use::File as usize] = 512 << 10;
    }
    ProcessSample {
        pid,
        user: "me".into(),
        command: command.into(),
        threads: 2,
        ran: ran_ms * 1_000_000,
        near_far: Some(near_far),
        resident: 77 << 20,
        found: MemorySource::Memory(found),
        ..ProcessSample::default()
    }
}

fn four_nodes() -> TaskTable {
    let denied = ProcessSample {
        found: MemorySource::Denied,
        near_far: None,
        ..process(7, "secret", 10, (0, 0), &[0; 4])
    };
    let late = ProcessSample {
        found: MemorySource::Late,
        near_far: None,
        ..process(8, "huge one", 0, (0, 0), &[0; 4])
    };
    let processes = vec![
        process(12, "near", 2000, (90, 10), &[1000, 0, 100, 0]),
        process(345, "far", 1500, (25, 75), &[0, 3, 20_000, 1]),
        denied,
        late,
        process(6, "idle", 0, (0, 10), &[1, 0, 0, 0]),
    ];
    TaskTable {
        nodes: vec![0, 1, 2, 5],
        seconds: 1.0,
        processes,
        fix: FIX.to_owned(),
        ..TaskTable::default()
    }
}

/// The golden text of a page; `UPDATE=1` writes it.
fn golden(name: &str, text: &str) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap_or_default(), "{name}; write it with UPDATE=1");
}

#[test]
fn lists_and_tables_look_like_this() {
    let mut tasks = four_nodes();
    ProcessRanking::Remote.sort(&mut tasks.processes);
    let mut text = String::new();
    _ = write!(text, "{}\n{}\n", tasks.list(20), tasks.list(2));
    tasks.processes.truncate(1);
    tasks.processes.push(four_nodes().processes.swap_remove(2));
    text.push_str(&tasks.details());
    golden("tasks.txt", &text);
}

#[test]
fn with_one_node_nothing_is_remote_and_with_many_the_largest_are_shown() {
    let one = TaskTable {
        nodes: vec![0],
        seconds: 1.0,
        processes: vec![process(1, "a", 5, (5, 0), &[3])],
        fix: FIX.to_owned(),
        ..TaskTable::default()
    };
    let text = one.list(9);
    assert!(text.contains(" - ") && text.contains("nothing is remote"), "{text}");
    assert!(one.details().contains("remote -\n"));
    let memory: Vec<u64> = (0..20).collect();
    let many = TaskTable {
        nodes: (0..20).collect(),
        seconds: 1.0,
        processes: vec![process(1, "a", 5, (5, 0), &memory)],
        fix: FIX.to_owned(),
        ..TaskTable::default()
    };
    let text = many.list(9);
    assert!(text.contains("NODE12 ") && text.contains("NODE19 ") && !text.contains("NODE11 "), "{text}");
    assert!(text.contains("12 of 20 nodes"));
}

#[test]
fn what_the_list_is_sorted_by_has_a_column() {
    let mut counted = four_nodes();
    counted.order = ProcessRanking::Faults;
    counted.processes[0].faults = Some(1234);
    let text = counted.list(9);
    assert!(text.contains(" FAULTS/s ") && text.contains(" 1234.0 "), "{text}");
    counted.order = ProcessRanking::Moved;
    assert!(counted.list(9).contains(" MOVED/s "));
    assert!(!four_nodes().list(9).contains("/s"));
}

#[test]
fn json_has_every_node_and_the_reason_for_unknown_memory() {
    let json = four_nodes().json();
    assert_eq!((&json["denied"], &json["late"]), (&json!(1), &json!(1)));
    assert_eq!(json["processes"][1]["remote"], 75.0);
    assert_eq!(json["processes"][1]["memory"]["heap"], json!([0, 3 << 20, 20_000u64 << 20, 1 << 20]));
    assert_eq!(json["processes"][2]["memory"], Value::Null);
    assert_eq!(json["processes"][2]["why"], "denied");
}

#[test]
fn estimates_have_an_error_and_refusals_a_reason() {
    let mut tasks = four_nodes();
    assert!(!tasks.list(9).contains("standard error"));
    tasks.processes[1].error = 26 << 20;
    tasks.processes[2].found = MemorySource::Refused;
    let text = tasks.list(9);
    assert!(text.contains("The nodes of 1 process are estimated"), "{text}");
    assert!(text.contains("at most 0.2 %") && text.contains("1 process not read: move_pages"), "{text}");
    assert_eq!(tasks.json()["processes"][1]["error"], 26 << 20);
    assert_eq!(tasks.json()["processes"][2]["why"], "refused");
    tasks.processes[0].held = true;
    assert!(tasks.details().contains("Read from numa_maps"));
}

#[test]
fn the_fix_for_denied_processes_depends_on_the_user() {
    let tasks = TaskTable { fix: "root lacks CAP_SYS_PTRACE here".to_owned(), ..four_nodes() };
    assert!(!tasks.list(9).contains("run as root") && tasks.list(9).contains("CAP_SYS_PTRACE"));
    assert!(!tasks.details().contains("run as root"));
}
