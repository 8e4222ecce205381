//! Threads of OpenMP that wait for others with more work get adaptive loops, asleep or in loops; other waits of teams do not.

use crate::compiler::builds;
use crate::explain::{explained_in, source};
use crate::runner::Folder;
use serde_json::Value;

/// What is advised about waits of two threads in a mode of the program: the rule, and the command to try.
fn advised(mode: &str, policy: &str, schedule: &str, options: &[&str]) -> Option<Vec<(String, String)>> {
    let folder = Folder::new(&format!("explain-team-{mode}-{policy}-{}", options.len()));
    let program = folder.path("team");
    if !builds("cc", &[&["-O2", "-g", "-fopenmp"], options].concat(), &source("team.c"), &program) {
        numakit_skips::COMPILERS.skip("there is no cc with OpenMP");
        return None;
    }
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        numakit_skips::MACHINE.skip("two threads wait for each other only on two CPUs");
        return None;
    }
    let variables = [("OMP_NUM_THREADS", "2"), ("OMP_WAIT_POLICY", policy), ("OMP_SCHEDULE", schedule)];
    let command = format!("{} {mode}", program.display());
    let found = explained_in(&folder, &variables, "--no-allocations", &command);
    let found = found.map_err(|(kind, why)| kind.skip(why)).ok()?;
    if let Some(why) = found["waits"]["refused"].as_str() {
        numakit_skips::PRIVILEGES.skip(why);
        return None;
    }
    let findings = found["findings"].as_array().unwrap();
    if findings.iter().any(|finding| finding["rule"] == "cpus-used-by-others") {
        numakit_skips::MACHINE.skip("other programs use the CPUs");
        return None;
    }
    println!("{mode} {policy}: {} {}", found["teams"], found["findings"]);
    let of_waits =
        |finding: &&Value| ["spinning", "waiting-team"].contains(&finding["rule"].as_str().unwrap());
    let words = |finding: &Value| {
        let command = finding["remedy"]["commands"][0].as_str().unwrap_or_default();
        let shown = command.replace(&program.display().to_string(), "team");
        (finding["rule"].as_str().unwrap().to_owned(), shown)
    };
    Some(findings.iter().filter(of_waits).map(words).collect())
}

fn one(rule: &str, command: &str) -> Vec<(String, String)> {
    vec![(rule.to_owned(), command.to_owned())]
}

#[test]
fn measuring_threads_that_sleep_for_one_with_more_work_get_adaptive_loops() {
    let Some(found) = advised("triangle", "passive", "static", &[]) else { return };
    assert_eq!(found, one("waiting-team", "OMP_SCHEDULE=dynamic numa run --loops adaptive team triangle"));
}

#[test]
fn measuring_threads_that_spin_for_one_with_more_work_get_adaptive_loops() {
    let Some(found) = advised("triangle", "active", "static", &[]) else { return };
    assert_eq!(found, one("spinning", "OMP_SCHEDULE=dynamic numa run --loops adaptive team triangle"));
}

#[test]
fn measuring_other_waits_of_teams_get_no_adaptive_loops() {
    for mode in ["equal", "serial", "idle", "timer"] {
        let Some(found) = advised(mode, "passive", "static", &[]) else { return };
        assert_eq!(found, [], "{mode}");
    }
    let Some(found) = advised("triangle", "passive", "static", &["-DSTATIC"]) else { return };
    assert_eq!(found, [], "only static loops");
}
