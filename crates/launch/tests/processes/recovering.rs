//! Cores stay held if the registry's file is removed, or if only descendants of the program live.

use crate::scene::{Running, Scene, exists, kill};
use numakit_registry::{HolderState, Holding};
use numakit_skips::rounds;
use numakit_testing::children::{Lines, Started};
use numakit_testing::until;
use std::fs;
use std::path::Path;
use std::process::Command;

const SLEEP: &str = "echo $$; exec sleep 1000";
/// Without the inherited descriptor.
const CLOSED: &str = "exec 100>&-; echo $$; exec sleep 1000";

fn refusal(scene: &Scene, cpus: &str) -> String {
    let output = scene.hold(&[cpus, "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "CPUs {cpus} were given twice");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn one(scene: &Scene) -> Holding {
    let holdings = scene.holdings();
    assert_eq!(holdings.len(), 1, "{holdings:?}");
    holdings[0].clone()
}

/// Kills launcher and supervisor.
fn orphan(scene: &Scene, run: &mut Running) {
    kill("KILL", scene.supervisor());
    kill("KILL", run.pid());
    run.status();
}

#[test]
fn a_keeper_registers_again_when_the_file_is_removed() {
    let scene = Scene::new("again");
    let (mut one_run, pid) = scene.running(&["0-1", "sh", "-c", SLEEP]);
    let (mut two_run, other) = scene.running(&["5", "sh", "-c", SLEEP]);
    until!(
        scene.holdings().iter().all(|h| h.holder.as_ref().unwrap().program.is_some()),
        "both records name their program"
    );
    for round in 0..rounds(4, 10) {
        fs::remove_file(scene.registry()).unwrap();
        // The supervisors may have registered already or not.
        assert!(refusal(&scene, if round % 2 == 0 { "1" } else { "5" }).contains("are held by "));
        until!(
            {
                let holdings = scene.holdings();
                exists(&scene.registry())
                    && holdings.len() == 2
                    && holdings.iter().all(|h| h.state == HolderState::Held)
            },
            "both are registered"
        );
    }
    let pid_namespace: Vec<_> = scene.holdings().iter().map(|h| h.pid().unwrap().to_string()).collect();
    assert_eq!(pid_namespace, [pid.clone(), other.clone()]);
    assert!(scene.hold(&["2-4,6-9", "true"]).status().unwrap().success());
    kill("KILL", &pid);
    assert_eq!(one_run.status(), 137);
    scene.until_held("5");
    kill("KILL", &other);
    assert_eq!(two_run.status(), 137);
    scene.until_held("");
}

#[test]
fn the_supervisor_also_follows_a_file_that_was_moved_or_replaced() {
    let scene = Scene::new("moved");
    let (mut run, pid) = scene.running(&["0-1", "sh", "-c", SLEEP]);
    scene.program();
    let away = scene.path("away");
    fs::rename(scene.registry(), &away).unwrap();
    refusal(&scene, "0");
    until!(one(&scene).state == HolderState::Held, "it is registered");
    let fresh = scene.path("fresh");
    fs::write(&fresh, "").unwrap();
    fs::rename(&fresh, scene.registry()).unwrap();
    refusal(&scene, "1");
    until!(one(&scene).state == HolderState::Held, "it is registered");
    kill("TERM", pid);
    run.status();
    scene.until_held("");
}

#[test]
fn a_registry_with_a_relative_name_is_created_again_in_the_same_folder() {
    let scene = Scene::new("relative");
    let mut command = scene.hold(&["0", "sh", "-c", SLEEP]);
    command.current_dir(scene.path("")).env("NUMAKIT_REGISTRY", "cores");
    let mut run = Started(command.stdout(std::process::Stdio::null()).spawn().unwrap());
    scene.until_held("0");
    let pid = scene.program();
    fs::remove_file(scene.registry()).unwrap();
    until!(exists(&scene.registry()) && one(&scene).state == HolderState::Held, "it is registered");
    kill("TERM", pid);
    run.ended();
    scene.until_held("");
}

#[test]
fn locks_in_a_removed_file_count_without_the_keeper() {
    for unnamed in [false, true] {
        let scene = Scene::new(if unnamed { "gone-unnamed" } else { "gone" });
        let mut words = vec!["0-1", "sh", "-c", SLEEP];
        if unnamed {
            words.insert(0, "--unnamed");
        }
        let (mut run, pid) = scene.running(&words);
        let supervisor = scene.supervisor();
        if unnamed {
            // Without NUMA_MASK, its cores are known from the locks of its supervisor, which is stopped.
            kill("STOP", supervisor);
        } else {
            orphan(&scene, &mut run);
        }
        fs::remove_file(scene.registry()).unwrap();
        assert_eq!(scene.held(), "0-1", "inspecting finds them");
        for _ in 0..3 {
            assert!(refusal(&scene, "1").contains("CPUs 0-1 are held by "));
            assert!(scene.hold(&["2", "true"]).status().unwrap().success());
        }
        let state = one(&scene).state;
        assert_eq!(
            state,
            if unnamed { HolderState::InRemovedFile } else { HolderState::Bound(pid.parse().unwrap()) }
        );
        kill("KILL", pid);
        if unnamed {
            kill("CONT", supervisor);
        }
        scene.until_held("");
        assert!(scene.hold(&["0-1", "true"]).status().unwrap().success());
    }
}

#[test]
fn a_launcher_that_took_over_registers_again() {
    let scene = Scene::new("takeover");
    let (mut run, pid) = scene.running(&["0-1", "bash", "-c", CLOSED]);
    let supervisor = scene.supervisor();
    fs::remove_file(scene.registry()).unwrap();
    until!(exists(&scene.registry()) && one(&scene).state == HolderState::Held, "the supervisor registers");
    // The locks in the new file end with the supervisor; the launcher has those in the old one.
    kill("KILL", supervisor);
    assert!(refusal(&scene, "0").contains("are held by "));
    until!(
        {
            let all = scene.holdings();
            all.len() == 1
                && all[0].state == HolderState::Held
                && all[0].holder.as_ref().unwrap().supervisor.unwrap().pid == run.pid()
        },
        "the launcher registers"
    );
    fs::remove_file(scene.registry()).unwrap();
    until!(exists(&scene.registry()) && one(&scene).state == HolderState::Held, "it registers again");
    kill("KILL", pid);
    assert_eq!(run.status(), 137);
    scene.until_held("");
}

#[test]
fn an_orphan_of_a_program_holds_its_cores() {
    // The first process has ended, and its orphan has closed the descriptor, left the session and cleared its
    // environment.
    let daemon = "setsid env -i bash -c 'exec 100>&-; echo $$; exec sleep 1000 >/dev/null' & exit 0";
    let scene = Scene::new("orphan");
    let (mut run, pid) = scene.running(&["0-1", "bash", "-c", daemon]);
    run.status();
    kill("KILL", scene.supervisor());
    until!(one(&scene).state == HolderState::Bound(pid.parse().unwrap()), "the locks are released");
    let message = refusal(&scene, "0");
    assert!(message.contains("CPUs 0-1 are held by bash of ") && message.contains(&pid), "{message}");
    kill("KILL", pid);
    scene.until_held("");
}

#[test]
fn a_program_that_may_run_everywhere_holds_its_cores_without_locks() {
    let scene = Scene::new("wide");
    let close = "import os, time; print(os.getpid(), flush=True); os.closerange(3, 200); time.sleep(1000)";
    let mut words = vec!["0-1", "python3", "-c", close];
    if Command::new("python3").arg("-V").output().is_err() {
        words = vec!["0-1", "bash", "-c", CLOSED];
    }
    let (mut run, pid) = scene.running(&words);
    until!(!exists(Path::new(&format!("/proc/{pid}/fd/100"))), "it closed the descriptor");
    orphan(&scene, &mut run);
    until!(one(&scene).state == HolderState::Bound(pid.parse().unwrap()), "the locks are released");
    for _ in 0..3 {
        assert!(refusal(&scene, "1").contains(&format!("process {pid}")));
        assert!(scene.hold(&["2-63", "true"]).status().unwrap().success());
    }
    kill("KILL", pid);
    scene.until_held("");
}

#[test]
fn a_widened_mask_does_not_release_the_cores() {
    let online = numakit_sys::sched::affinity().unwrap();
    let cpu = online.first().unwrap().to_string();
    let scene = Scene::new("widened");
    let (mut run, pid) = scene.running(&["--bind", &cpu, "bash", "-c", CLOSED]);
    orphan(&scene, &mut run);
    numakit_sys::sched::set_affinity_of(pid.parse().unwrap(), &online).unwrap();
    until!(one(&scene).state == HolderState::Bound(pid.parse().unwrap()), "the locks are released");
    assert_eq!(scene.held(), cpu);
    refusal(&scene, &cpu);
    kill("KILL", pid);
    scene.until_held("");
}

#[test]
fn processes_that_follow_each_other_quickly_are_seen() {
    let scene = Scene::new("chain");
    let (link, go_on) = (scene.path("link"), scene.path("go-on"));
    fs::write(&go_on, "").unwrap();
    // Each process starts the next one and ends.
    fs::write(&link, format!("if [ -e {} ]; then sh {} & fi\n", go_on.display(), link.display())).unwrap();
    let script = format!("exec 100>&-; echo $$; bash {} >/dev/null; exit 0", link.display());
    let (mut run, _) = scene.running(&["0-1", "bash", "-c", &script]);
    orphan(&scene, &mut run);
    for _ in 0..rounds(3, 10) {
        refusal(&scene, "0");
    }
    fs::remove_file(go_on).unwrap();
    scene.until_held("");
}

#[test]
fn a_program_in_another_pid_namespace_is_seen_from_outside() {
    if numakit_sys::user::id() != 0 || Command::new("unshare").arg("-V").output().is_err() {
        numakit_skips::ROOT.skip("only root with unshare can make a namespace");
        return;
    }
    let scene = Scene::new("namespace");
    let folder = scene.path("pid");
    let script = format!("exec 100>&-; echo inside; exec sleep 1000 >{}", folder.display());
    let mut command = Command::new("unshare");
    command.args(["-p", "-f", env!("CARGO_BIN_EXE_hold"), "0-1", "bash", "-c", &script]);
    command.env("NUMAKIT_REGISTRY", scene.registry()).stdout(std::process::Stdio::piped());
    // It complains when its child is killed.
    command.stderr(std::process::Stdio::null());
    let mut outer = Started(command.spawn().unwrap());
    assert_eq!(Lines::of(outer.stdout.take().unwrap()).next().as_deref(), Some("inside"));
    let child = |pid: u32| {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        children.split_whitespace().next().and_then(|pid| pid.parse::<u32>().ok())
    };
    // The launcher is the namespace's first process: the kernel would kill all others with it.
    let launcher = child(outer.id()).unwrap();
    let supervisor = child(launcher).unwrap();
    let program = child(supervisor).unwrap();
    kill("STOP", launcher);
    kill("KILL", supervisor);
    fs::remove_file(scene.registry()).unwrap();
    assert!(refusal(&scene, "0").contains("are held by"));
    kill("KILL", launcher);
    outer.ended();
    until!(!exists(Path::new(&format!("/proc/{program}"))), "the program ends");
    scene.until_held("");
}

#[test]
fn an_environment_without_a_tag_holds_nothing() {
    let scene = Scene::new("environment");
    let mut stray = Command::new("sleep");
    stray
        .arg("1000")
        .env("NUMA_HOLD", "100")
        .env("NUMA_MASK", "0-1")
        .env("NUMAKIT_REGISTRY", scene.registry());
    let _stray = Started(stray.spawn().unwrap());
    let held = scene.held();
    let taken = scene.hold(&["0-1", "true"]).status().unwrap();
    assert_eq!((held.as_str(), taken.code()), ("", Some(0)));
}
