//! Reports say what threads wait for, and that does not hide what the others do.

use crate::explain::{explained_with, program};
use crate::runner::Folder;
use serde_json::Value;

/// What is seen of a mode of the program, without its preloaded library; `None` where it cannot be seen.
fn seen(folder: &Folder, mode: &str) -> Option<Value> {
    let program = program(folder, "cc", "waits.c")?;
    let found = explained_with(folder, "--no-allocations", &format!("{} {mode}", program.display()))?;
    if let Some(why) = found["waits"]["refused"].as_str() {
        numakit_skips::PRIVILEGES.skip(why);
        return None;
    }
    Some(found)
}

/// The functions of a call chain.
fn functions(chain: &Value) -> Vec<&str> {
    chain.as_array().unwrap().iter().filter_map(|code| code["function"].as_str()).collect()
}

fn rules(found: &Value) -> Vec<&str> {
    found["findings"].as_array().unwrap().iter().filter_map(|finding| finding["rule"].as_str()).collect()
}

#[test]
fn measuring_a_contended_lock_has_its_object_its_holder_and_both_chains() {
    let Some(found) = seen(&Folder::new("waits-lock"), "lock") else { return };
    let lock = &found["waits"]["locks"][0];
    assert!(lock["what"].as_str().unwrap().starts_with("table_lock"), "{lock}");
    assert_eq!(lock["threads"], 4, "{lock}");
    assert!(functions(&lock["chain"]).contains(&"change_table"), "{lock}");
    let holder = &lock["holders"][0];
    assert!(functions(&holder["chain"]).contains(&"compute") && holder["runs"] == true, "{lock}");
    assert!(rules(&found).contains(&"contended-lock"), "{}", found["findings"]);
}

#[test]
fn measuring_a_pool_that_waits_for_work_is_no_finding_and_dilutes_nothing() {
    let folder = Folder::new("waits-pool");
    let Some(found) = seen(&folder, "pool") else { return };
    let waits = &found["waits"];
    assert_eq!((&waits["threads"], &waits["busy"]), (&9.into(), &1.into()), "{waits}");
    assert_eq!(
        (&waits["rows"][0]["kind"], &waits["rows"][0]["threads"]),
        (&"condition".into(), &8.into()),
        "{waits}"
    );
    assert!(functions(&waits["rows"][0]["chain"]).contains(&"pool"), "{waits}");
    assert!(!rules(&found).contains(&"contended-lock"), "{}", found["findings"]);
    let program = folder.path("waits");
    let done = folder.run(&format!("explain --all --no-allocations -- {} pool", program.display()));
    assert!(done.out.contains("1 of 9 threads is busy; of its CPU time"), "{}", done.out);
    assert!(done.out.contains("is in compute [waits]"), "{}", done.out);
}

#[test]
fn measuring_a_loop_that_waits_is_no_computing() {
    let Some(found) = seen(&Folder::new("waits-spin"), "spin") else { return };
    let spins = &found["spins"];
    assert_eq!(spins["functions"][0]["function"], "spin_until_ready", "{spins}");
    assert_eq!(spins["meanwhile"][0]["function"], "compute", "{spins}");
    assert!(rules(&found).contains(&"spinning"), "{}", found["findings"]);
}

#[test]
fn measuring_a_pipe_has_who_writes_to_it_and_a_child_is_waited_for() {
    let folder = Folder::new("waits-pipe");
    let Some(found) = seen(&folder, "pipe") else { return };
    let rows = found["waits"]["rows"].as_array().unwrap();
    let pipe = rows.iter().find(|row| row["kind"] == "pipe").unwrap_or_else(|| panic!("{rows:?}"));
    assert!(pipe["peers"][0].as_str().unwrap().starts_with("waits ("), "{pipe}");
    assert!(functions(&pipe["chain"]).contains(&"main"), "{pipe}");
    let Some(found) = seen(&folder, "child") else { return };
    let rows = found["waits"]["rows"].as_array().unwrap();
    let kinds: Vec<&str> = rows.iter().filter_map(|row| row["kind"].as_str()).collect();
    assert!(kinds.contains(&"child") && kinds.contains(&"timer"), "{rows:?}");
}
