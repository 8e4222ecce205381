//! A process that does not release the allocation lock delays others; it cannot block them, or make them take
//! cores that are held.

use crate::scene::{Scene, kill, state};
use numakit_model::CpuSet;
use numakit_registry::{CoreSelection, HolderInfo, Registry};
use numakit_testing::children::{Lines, Started};
use numakit_testing::until;
use std::fs::File;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

const SLEEP: &str = "echo $$; exec sleep 1000";
/// The byte of the allocation lock.
const ALLOCATION_LOCK: u64 = 1 << 40;

/// Launches a program without the allocation lock; returns the warning.
fn warning(scene: &Scene) -> String {
    let output = scene.hold(&["7", "true"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn opened(scene: &Scene) -> File {
    File::options().read(true).write(true).open(scene.registry()).unwrap()
}

#[test]
fn a_slow_owner_of_the_lock_takes_no_cores_that_others_took_meanwhile() {
    let scene = Scene::new("slow");
    let mut registry = Registry::open_at(&scene.registry()).unwrap();
    let (mut message, mut other) = (String::new(), None);
    // While this test has the lock, two other launchers continue after a while.
    let taken = registry.take(&HolderInfo::default(), |view| {
        if other.is_none() {
            message = warning(&scene);
            other = Some(scene.running(&["0", "sh", "-c", SLEEP]));
        }
        let cpus = CpuSet::range(0, 63).minus(&view.held()).iter().take(1).collect();
        Ok::<_, String>(CoreSelection { cpus, cores: 1, value: () })
    });
    let (held, ()) = taken.unwrap();
    let me = format!("process {} (", std::process::id());
    let expected =
        format!("has held the allocation lock of {} for more than 2 s", scene.registry().display());
    assert!(message.contains(&me) && message.contains(&expected), "{message}");
    let look = format!("it is not stopped: 'ps -fp {}' shows what it does", std::process::id());
    assert!(message.contains(&look) && !message.contains("kill"), "{message}");
    assert_eq!(held.cpus().to_string(), "1");
    held.release();
    let (mut run, pid) = other.unwrap();
    kill("TERM", pid);
    run.status();
    assert_eq!(warning(&scene), "");
}

#[test]
fn an_unknown_owner_of_the_lock_is_not_mistaken_for_the_previous_one() {
    let scene = Scene::new("hog");
    assert_eq!(warning(&scene), "");
    let file = opened(&scene);
    assert!(numakit_sys::lock::try_lock(file.as_fd(), ALLOCATION_LOCK..ALLOCATION_LOCK + 1).unwrap());
    let message = warning(&scene);
    assert!(message.contains("an unknown process has held the allocation lock"), "{message}");
    assert!(message.contains(&format!("'fuser -v {}'", scene.registry().display())), "{message}");
    // The signature that a killed process leaves.
    let mut dead = Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    let signature = format!("{} 1 {} 5 numa\n", dead.id(), pid_namespace());
    std::os::unix::fs::FileExt::write_all_at(&file, signature.as_bytes(), 64).unwrap();
    assert!(warning(&scene).contains("an unknown process"));
}

#[test]
fn a_stopped_owner_of_the_lock_is_to_be_continued() {
    let scene = Scene::new("stopped-owner");
    assert_eq!(warning(&scene), "");
    let file = opened(&scene);
    assert!(numakit_sys::lock::try_lock(file.as_fd(), ALLOCATION_LOCK..ALLOCATION_LOCK + 1).unwrap());
    let owner = Started(Command::new("sleep").arg("1000").spawn().unwrap());
    kill("STOP", owner.id());
    until!(state(owner.id()) == 'T', "it is stopped");
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", owner.id())).unwrap();
    let start = stat.rsplit(") ").next().unwrap().split(' ').nth(19).unwrap();
    let signature = format!("{} {start} {} 5 numa\n", owner.id(), pid_namespace());
    std::os::unix::fs::FileExt::write_all_at(&file, signature.as_bytes(), 64).unwrap();
    let message = warning(&scene);
    let expected = format!("it is stopped: continue it with 'kill -CONT {}'", owner.id());
    assert!(message.contains(&expected), "{message}");
}

fn pid_namespace() -> u64 {
    std::os::unix::fs::MetadataExt::ino(&std::fs::metadata("/proc/self/ns/pid").unwrap())
}

#[test]
fn a_posix_lock_has_a_pid() {
    let scene = Scene::new("posix");
    assert_eq!(warning(&scene), "");
    let script = "import fcntl, sys, time\nfile = open(sys.argv[1], 'r+b')\n\
                  fcntl.lockf(file, fcntl.LOCK_EX, 1, 1 << 40)\nprint('locked', flush=True)\ntime.sleep(1000)";
    let mut python = Command::new("python3");
    python.args(["-c", script]).arg(scene.registry()).stdout(Stdio::piped());
    let Ok(mut hog) = python.spawn().map(Started) else {
        numakit_skips::PYTHON.skip("there is no python3, which takes a POSIX lock");
        return;
    };
    assert_eq!(Lines::of(hog.stdout.take().unwrap()).next().as_deref(), Some("locked"));
    let message = warning(&scene);
    let expected = format!("process {}, which is not a 'numa run', has held the allocation lock", hog.id());
    assert!(message.contains(&expected) && message.contains(&format!("'kill {}'", hog.id())), "{message}");
}

#[test]
fn measuring_a_launcher_that_is_stopped_while_it_waits_delays_nobody() {
    let scene = Scene::new("stopped");
    assert_eq!(warning(&scene), "");
    // It waits for the lock, and is stopped before this test releases it.
    let file = opened(&scene);
    assert!(numakit_sys::lock::try_lock(file.as_fd(), ALLOCATION_LOCK..ALLOCATION_LOCK + 1).unwrap());
    let mut waiting = Started(scene.hold(&["3", "true"]).spawn().unwrap());
    until!(state(waiting.id()) == 'S', "it waits");
    kill("STOP", waiting.id());
    until!(state(waiting.id()) == 'T', "it is stopped");
    drop(file);
    assert_eq!(warning(&scene), "");
    kill("CONT", waiting.id());
    assert!(waiting.ended().success());
}
