use super::*;
use crate::registers::STACK_POINTER;
use numakit_testing::wait::wait_for;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A child, killed at the end of the test.
struct Traced(Child);

impl Traced {
    fn id(&self) -> u32 {
        self.0.id()
    }

    fn kill(&self) {
        crate::supervise::send(self.id(), libc::SIGKILL).unwrap();
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        // A tracer that has seen its end has reaped it; then another process may have its id.
        if std::thread::panicking() {
            let _ = self.0.kill();
        }
    }
}

/// A tracer with a shell that runs this as soon as it is traced; none where that is refused.
fn traced(script: &str) -> Option<(Tracer, Traced)> {
    traced_by(script, Tracer::seize)
}

/// The same, traced in this way.
fn traced_by(script: &str, seize: impl FnOnce(&Tracer, u32) -> io::Result<()>) -> Option<(Tracer, Traced)> {
    let tracer = Tracer::new().unwrap();
    let mut shell = Command::new("sh");
    let waits = format!("echo; read begin; {script}");
    let child = shell.args(["-c", &waits]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut child = Traced(child);
    // It executes the shell before it prints.
    child.0.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
    match seize(&tracer, child.id()) {
        Ok(()) => {
            // The end of its input begins the script.
            drop(child.0.stdin.take());
            Some((tracer, child))
        }
        Err(error) => {
            assert_eq!(error.raw_os_error(), Some(libc::EPERM), "{error}");
            child.0.kill().and_then(|()| child.0.wait()).unwrap();
            numakit_skips::PRIVILEGES.skip(format_args!("ptrace is refused here: {error}"));
            None
        }
    }
}

/// The next stop.
fn next(tracer: &Tracer) -> io::Result<(u32, Stop)> {
    wait_for("a stop", || tracer.next(false).transpose())
}

/// Lets everything run until the last thread ends; returns the status of this one.
fn run(tracer: &Tracer, id: u32, mut see: impl FnMut(u32, Stop)) -> i32 {
    let mut status = None;
    loop {
        let (thread, stop) = match next(tracer) {
            Ok(found) => found,
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::NotFound);
                return status.unwrap();
            }
        };
        see(thread, stop);
        match stop {
            Stop::Ended(code) if thread == id => status = Some(code),
            Stop::Ended(_) => {}
            Stop::Group => _ = tracer.leave_stopped(thread),
            Stop::Signal(signal) => _ = tracer.resume(thread, signal),
            _ => _ = tracer.resume(thread, 0),
        }
    }
}

#[test]
fn a_traced_program_ends_as_it_would_alone() {
    let Some((tracer, child)) = traced("trap 'exit 7' USR1; kill -USR1 $$; exit 1") else { return };
    assert_eq!(run(&tracer, child.id(), |_, _| {}), 7);
    let (tracer, child) = traced("kill -TERM $$").unwrap();
    assert_eq!(run(&tracer, child.id(), |_, _| {}), 128 + libc::SIGTERM);
}

#[test]
fn children_and_their_programs_are_followed() {
    let Some((tracer, child)) = traced("(exit 3); /bin/true; exit 5") else { return };
    let (mut created, mut executed, mut signals) = (0, 0, 0);
    let status = run(&tracer, child.id(), |_, stop| match stop {
        Stop::Created(child) => created += u32::from(child != 0),
        Stop::Executed(_) => executed += 1,
        Stop::Signal(_) => signals += 1,
        _ => {}
    });
    assert!(status == 5 && created == 2 && executed == 1 && signals >= 2, "{created} {executed} {signals}");
}

#[test]
fn a_running_thread_shows_its_registers() {
    let Some((tracer, child)) = traced("while :; do :; done") else { return };
    let (id, mut seen) = (child.id(), 0);
    for _ in 0..20 {
        tracer.interrupt(id).unwrap();
        let stop = next(&tracer).unwrap();
        assert_eq!(stop, (id, Stop::Interrupted));
        let registers = tracer.registers(id).unwrap().unwrap().registers;
        seen += u32::from(registers.ip != 0 && registers.general[STACK_POINTER] != 0);
        tracer.repair_call(id).unwrap();
        tracer.resume(id, 0).unwrap();
    }
    child.kill();
    assert_eq!((run(&tracer, id, |_, _| {}), seen), (128 + libc::SIGKILL, 20));
}

#[test]
fn a_step_is_one_instruction() {
    let Some((tracer, child)) = traced("while :; do :; done") else { return };
    let id = child.id();
    tracer.interrupt(id).unwrap();
    assert_eq!(tracer.next_of(id).unwrap(), Stop::Interrupted);
    let at = || tracer.registers(id).unwrap().unwrap().registers.ip;
    let (mut near, mut before) = (0, at());
    for _ in 0..200 {
        tracer.step(id, 0).unwrap();
        assert_eq!(tracer.next_of(id).unwrap(), Stop::Signal(crate::signal::TRAP));
        let now = at();
        // The longest instruction has 15 bytes; jumps and calls go elsewhere.
        near += u32::from(now != before && now.wrapping_sub(before) <= 15);
        before = now;
    }
    assert!(near > 100, "{near} of 200 steps lead to the next instruction");
    tracer.step(id, libc::SIGKILL).unwrap();
    assert_eq!(tracer.next_of(id).unwrap(), Stop::Ended(128 + libc::SIGKILL));
}

#[test]
fn a_thread_that_is_traced_alone_creates_others_untraced() {
    let Some((tracer, child)) = traced_by("(exit 3); exit 5", Tracer::seize_alone) else { return };
    let mut created = 0;
    let status = run(&tracer, child.id(), |_, stop| created += u32::from(matches!(stop, Stop::Created(_))));
    assert_eq!((status, created), (5, 0));
}

#[test]
fn ticks_end_the_waiting() {
    let Some((tracer, child)) = traced("exec sleep 600") else { return };
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Without ticks nothing else ends the waiting: then the end of the child does.
        scope.spawn(|| {
            let limit = Instant::now() + Duration::from_secs(120);
            while !ended.load(Ordering::Relaxed) && Instant::now() < limit {
                std::thread::sleep(Duration::from_millis(2));
            }
            child.kill();
        });
        let ticks = Ticks::every(Duration::from_millis(1)).unwrap();
        let mut waits = 0;
        while waits < 5 {
            match tracer.next(true).unwrap() {
                None => waits += 1,
                Some((_, Stop::Ended(_))) => break,
                Some((thread, _)) => tracer.resume(thread, 0).unwrap(),
            }
        }
        drop(ticks);
        ended.store(true, Ordering::Relaxed);
        assert_eq!(waits, 5, "the child ended before");
        assert_eq!(run(&tracer, child.id(), |_, _| {}), 128 + libc::SIGKILL);
    });
}

#[test]
fn an_end_is_said_once_and_to_all() {
    let end = TracedEnd::default();
    assert_eq!((end.status(), end.is_detached()), (None, false));
    end.set(0);
    end.detach();
    assert_eq!((end.status(), end.is_detached()), (Some(0), false));
    let other = TracedEnd::default();
    other.detach();
    assert_eq!((other.status(), other.is_detached()), (None, true));
}
