use super::*;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A running machine, ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// A machine that sleeps, started with these options; `None` where there is no Java that compiles what it runs.
    fn start(options: &[&str], user: u32) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let file = std::env::temp_dir().join(format!("NumakitSleeps{}x{number}.java", std::process::id()));
        let source = "class Sleeps { public static void main(String[] a) throws Exception { System.out.println(1); \
                      Thread.sleep(600_000); } }";
        std::fs::write(&file, source).ok()?;
        let mut command = Command::new("java");
        command.args(options).arg(&file).stdout(Stdio::piped()).stderr(Stdio::null());
        if user != user::id() {
            command.uid(user).gid(user);
        }
        let Ok(mut child) = command.spawn() else {
            numakit_skips::PROGRAMS.skip("there is no java");
            return None;
        };
        let mut line = [0; 1];
        let is_there = child.stdout.as_mut()?.read(&mut line).is_ok_and(|read| read == 1);
        let running = Self(child);
        let _ = std::fs::remove_file(&file);
        if !is_there {
            numakit_skips::PROGRAMS.skip("java cannot run a source file");
        }
        is_there.then_some(running)
    }

    /// The machine, with time to answer.
    fn machine(&self) -> JavaMachine {
        let machine = JavaMachine::find(self.process()).unwrap().unwrap();
        JavaMachine { patience: Duration::from_secs(100), ..machine }
    }

    fn process(&self) -> u32 {
        self.0.id()
    }

    fn runs(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

#[test]
fn other_programs_are_no_machines() {
    assert!(JavaMachine::find(std::process::id()).unwrap().is_none());
    assert!(!has_machine("7f0000000000-7f0000001000 r-xp 00000000 00:00 0 /x/libjvm.so.old/liba.so\n"));
    let hotspot = "7f0000000000-7f0000001000 r-xp 00000000 fe:00 12 /jdk/lib/server/libjvm.so\n";
    assert!(has_machine(hotspot));
    let other = format!("{hotspot}7f0000002000-7f0000003000 r-xp 00000000 fe:00 13 /jdk/lib/libj9vm29.so\n");
    assert!(!has_machine(&other), "OpenJ9");
}

#[test]
fn a_machine_tells_its_code_and_its_threads() {
    let Some(mut running) = Running::start(&[], user::id()) else { return };
    let machine = running.machine();
    let names = machine.perf_map(1 << 24);
    if let Err(AttachError::Old { .. }) = names {
        return numakit_skips::PROGRAMS.skip("java is older than JDK 17");
    }
    let names = names.unwrap();
    assert!(names.lines().any(|line| line.contains("java.lang.")), "{names}");
    let map = format!("/tmp/perf-{}.map", running.process());
    assert!(!Path::new(&map).exists(), "the map is removed");
    let dump = machine.thread_dump(1 << 24).unwrap();
    assert!(dump.contains("\"main\""), "{dump}");
    assert!(!Path::new(&format!("/tmp/.attach_pid{}", running.process())).exists());
    // A map that somebody else has written stays as it is.
    std::fs::write(&map, "1 1 x\n").unwrap();
    let error = machine.perf_map(1 << 24).unwrap_err().to_string();
    assert!(error.starts_with("cannot create its map"), "{error}");
    assert_eq!(std::fs::read_to_string(&map).unwrap(), "1 1 x\n");
    std::fs::remove_file(&map).unwrap();
    assert!(running.runs());
}

#[test]
fn a_machine_that_would_end_or_does_not_answer_is_left_alone() {
    let Some(mut deaf) = Running::start(&["-Xrs"], user::id()) else { return };
    let status = TaskDir::of(&SysRoot::host(), deaf.process()).status().unwrap();
    assert!(!status.catches(libc::SIGQUIT));
    // It listens without a signal; whether all versions do so or not, it goes on.
    let machine = deaf.machine();
    match machine.thread_dump(1 << 24) {
        Ok(dump) => assert!(dump.contains("\"main\"")),
        Err(error) => assert!(matches!(error, AttachError::NoSignal), "{error}"),
    }
    assert!(deaf.runs());
    let Some(mut closed) = Running::start(&["-XX:+DisableAttachMechanism"], user::id()) else { return };
    assert!(matches!(JavaMachine::find(closed.process()), Err(AttachError::Disabled)));
    let Some(mut silent) = Running::start(&["-XX:-UsePerfData"], user::id()) else { return };
    assert!(matches!(JavaMachine::find(silent.process()), Err(AttachError::Silent)));
    assert!(closed.runs() && silent.runs());
}

#[test]
fn a_machine_of_another_user_answers_root() {
    const NOBODY: u32 = 65534;
    if user::id() != 0 {
        return numakit_skips::ROOT.skip("starting a program of another user needs root");
    }
    let Some(running) = Running::start(&[], NOBODY) else { return };
    let machine = running.machine();
    assert!(machine.thread_dump(1 << 24).unwrap().contains("\"main\""));
    assert_eq!(user::id(), 0, "only the thread that asks is somebody else");
}
