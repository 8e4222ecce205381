use super::*;
use crate::command::Running;
use crate::registers::STACK_POINTER;
use std::ffi::OsString;
use std::time::Duration;

fn shell(script: &str) -> Running {
    let words: Vec<OsString> = ["sh", "-c", script].iter().map(OsString::from).collect();
    Running::start(&words).unwrap()
}

/// A tracer with a traced child; none where that is refused.
fn traced(script: &str) -> Option<(Tracer, u32)> {
    let tracer = Tracer::new().unwrap();
    let id = shell(script).id();
    match tracer.seize(id) {
        Ok(()) => Some((tracer, id)),
        Err(error) => {
            numakit_skips::PRIVILEGES.skip(format_args!("ptrace is refused here: {error}"));
            None
        }
    }
}

/// Lets everything run until the last thread ends; returns the status of this one.
fn run(tracer: &Tracer, id: u32, mut see: impl FnMut(u32, Stop)) -> i32 {
    let mut status = None;
    loop {
        let (thread, stop) = match tracer.next(true) {
            Ok(Some(found)) => found,
            Ok(None) => continue,
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
    let Some((tracer, id)) = traced("sleep 0.1; trap 'exit 7' USR1; kill -USR1 $$; exit 1") else { return };
    assert_eq!(run(&tracer, id, |_, _| {}), 7);
    let (tracer, id) = traced("sleep 0.1; kill -TERM $$").unwrap();
    assert_eq!(run(&tracer, id, |_, _| {}), 128 + libc::SIGTERM);
}

#[test]
fn children_and_their_programs_are_followed() {
    let Some((tracer, id)) = traced("sleep 0.1; (exit 3); /bin/true; exit 5") else { return };
    let (mut created, mut executed, mut signals) = (0, 0, 0);
    let status = run(&tracer, id, |_, stop| match stop {
        Stop::Created(child) => created += u32::from(child != 0),
        Stop::Executed(_) => executed += 1,
        Stop::Signal(_) => signals += 1,
        _ => {}
    });
    // The first sleep may have been created before the shell was traced.
    assert!(status == 5 && created >= 2 && executed >= 1 && signals >= 2, "{created} {executed} {signals}");
}

#[test]
fn a_running_thread_shows_its_registers() {
    let Some((tracer, id)) = traced("while :; do :; done") else { return };
    let mut seen = 0;
    for _ in 0..20 {
        tracer.interrupt(id).unwrap();
        let stop = tracer.next(true).unwrap().unwrap();
        assert_eq!(stop, (id, Stop::Interrupted));
        let registers = tracer.registers(id).unwrap().unwrap().registers;
        seen += u32::from(registers.ip != 0 && registers.general[STACK_POINTER] != 0);
        tracer.repair_call(id).unwrap();
        tracer.resume(id, 0).unwrap();
    }
    crate::supervise::send(id, libc::SIGKILL).unwrap();
    assert_eq!((run(&tracer, id, |_, _| {}), seen), (128 + libc::SIGKILL, 20));
}

#[test]
fn ticks_end_the_waiting() {
    let Some((tracer, id)) = traced("exec sleep 60") else { return };
    let ticks = Ticks::every(Duration::from_millis(1)).unwrap();
    let mut waits = 0;
    while waits < 5 {
        match tracer.next(true).unwrap() {
            None => waits += 1,
            Some((thread, _)) => tracer.resume(thread, 0).unwrap(),
        }
    }
    drop(ticks);
    crate::supervise::send(id, libc::SIGKILL).unwrap();
    assert_eq!(run(&tracer, id, |_, _| {}), 128 + libc::SIGKILL);
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
