//! Who does not give up the turn to choose delays others; it cannot stop them or make them take
//! what is held.

use crate::scene::{Scene, kill, state};
use numakit_model::CpuSet;
use numakit_registry::limits::CoreLimits;
use numakit_registry::{CoreSelection, HolderInfo, Registry};
use numakit_testing::until;
use std::fs::File;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

const SLEEP: &str = "echo $$; exec sleep 1000";
/// The byte that whoever chooses has locked.
const TURN: u64 = 1 << 40;

/// A launch that comes in spite of whoever has the turn, and what it says of that.
fn warning(scene: &Scene) -> String {
    let output = scene.hold(&["7", "true"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn opened(scene: &Scene) -> File {
    File::options().read(true).write(true).open(scene.registry()).unwrap()
}

#[test]
fn who_stands_still_while_choosing_is_told_and_takes_nothing_that_others_took_meanwhile() {
    let scene = Scene::new("turn");
    let mut registry = Registry::open_at(&scene.registry()).unwrap();
    let (mut message, mut other) = (String::new(), None);
    // While this test chooses, two other launchers do not wait for ever.
    let taken = registry.take(&HolderInfo::default(), &CoreLimits::default(), |seen| {
        if other.is_none() {
            message = warning(&scene);
            other = Some(scene.running(&["0", "sh", "-c", SLEEP]));
        }
        let cpus = CpuSet::range(0, 63).minus(&seen.held()).iter().take(1).collect();
        Ok::<_, String>(CoreSelection { cpus, cores: 1, with: () })
    });
    let (held, ()) = taken.unwrap();
    let me = format!("process {} (", std::process::id());
    assert!(message.contains(&me) && message.contains("stands still and keeps the turn"), "{message}");
    assert!(message.contains(&format!("continue it with 'kill -CONT {}'", std::process::id())), "{message}");
    assert_eq!(held.cpus().to_string(), "1");
    held.give_back();
    let (mut run, pid) = other.unwrap();
    kill("TERM", pid);
    run.status();
    assert_eq!(warning(&scene), "");
}

#[test]
fn who_only_locks_the_turn_is_not_mistaken_for_who_chose_last() {
    let scene = Scene::new("hog");
    assert_eq!(warning(&scene), "");
    let file = opened(&scene);
    assert!(numakit_sys::lock::try_lock(file.as_fd(), TURN..TURN + 1).unwrap());
    let message = warning(&scene);
    assert!(message.contains("a process that does not say who it is keeps the turn"), "{message}");
    assert!(message.contains(&format!("'fuser -v {}'", scene.registry().display())), "{message}");
    // A signature of a process that is not there any more, as a killed one leaves it.
    let mut dead = Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    let signature = format!("{} 1 {} 5 numa\n", dead.id(), pid_namespace());
    std::os::unix::fs::FileExt::write_all_at(&file, signature.as_bytes(), 64).unwrap();
    assert!(warning(&scene).contains("a process that does not say who it is"));
}

fn pid_namespace() -> u64 {
    std::os::unix::fs::MetadataExt::ino(&std::fs::metadata("/proc/self/ns/pid").unwrap())
}

#[test]
fn a_lock_of_a_process_is_told_by_its_number() {
    let scene = Scene::new("posix");
    assert_eq!(warning(&scene), "");
    let script = "import fcntl, sys, time\nfile = open(sys.argv[1], 'r+b')\n\
                  fcntl.lockf(file, fcntl.LOCK_EX, 1, 1 << 40)\nprint('locked', flush=True)\ntime.sleep(1000)";
    let mut python = Command::new("python3");
    python.args(["-c", script]).arg(scene.registry()).stdout(Stdio::piped());
    let Ok(mut hog) = python.spawn() else {
        numakit_skips::PYTHON.skip("there is no python3, which locks as a process");
        return;
    };
    let mut line = String::new();
    let mut output = std::io::BufReader::new(hog.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    let message = warning(&scene);
    hog.kill().unwrap();
    hog.wait().unwrap();
    let expected = format!("process {0} has locked the turn", hog.id());
    assert!(message.contains(&expected) && message.contains(&format!("'kill {}'", hog.id())), "{message}");
}

#[test]
fn a_launcher_that_was_stopped_while_it_chose_is_told() {
    let scene = Scene::new("stopped");
    assert_eq!(warning(&scene), "");
    // It waits for its turn, gets it when this test lets go, and stands still in it.
    let file = opened(&scene);
    assert!(numakit_sys::lock::try_lock(file.as_fd(), TURN..TURN + 1).unwrap());
    let mut waiting = scene.hold(&["3", "true"]).spawn().unwrap();
    until!(state(waiting.id()) == 'S', "it waits");
    kill("STOP", waiting.id());
    until!(state(waiting.id()) == 'T', "it stands still");
    drop(file);
    assert_eq!(warning(&scene), "");
    kill("CONT", waiting.id());
    assert!(waiting.wait().unwrap().success());
}
