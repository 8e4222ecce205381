//! ptrace.

use crate::program::{Sampled, prepared, program, run};
use numakit_sampling::ptrace::PtraceMethod;
use numakit_sampling::{Landing, Method, MethodError, SampleSettings};
use numakit_sys::command::Running;
use numakit_sys::permissions::{Permission, Permissions};
use numakit_sys::proc::TaskDir;
use numakit_sys::ptrace::{Stop, Tracer};
use numakit_sys::{SysRoot, supervise};
use numakit_testing::until;
use numakit_testing::wait::wait_for;
use std::io::{BufRead, BufReader, ErrorKind};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SETTINGS: SampleSettings =
    SampleSettings { frequency: 199, stack: 512, faults: 0, first_touch: false, every_touch: false };

fn sampled(arguments: &str) -> Option<Sampled> {
    if let Err(refusal) = Permissions::own_of(&[Permission::Tracing]).check(Permission::Tracing) {
        numakit_skips::PRIVILEGES.skip(refusal);
        return None;
    }
    let prepared = prepared(arguments)?;
    let words = prepared.words.clone();
    let (mut method, running) =
        PtraceMethod::for_command(&SETTINGS, Landing::Other, move || Running::start(&words)).unwrap();
    let sampled = run(&mut method, running, &prepared);
    assert_eq!((sampled.status, method.losses().total()), (42, 0), "{:?}", method.losses());
    Some(sampled)
}

#[test]
fn measuring_samples_are_in_the_function_that_spins() {
    let Some(sampled) = sampled("spin 1 600") else { return };
    assert!(sampled.share_in_function() > 0.9, "{}", sampled.share_in_function());
    let (weight, spent) = (sampled.weight_ms(), sampled.number("ended"));
    assert!(weight <= spent * 12 / 10 && weight >= spent * 6 / 10, "{weight} of {spent} ms");
    for sample in sampled.of_program() {
        assert_eq!(sample.stack.address, sample.registers.stack_pointer());
        assert!(
            sample.stack.bytes.len() == 512 && sample.registers.thread_base.is_some() && sample.cpu.is_some()
        );
    }
}

#[test]
fn measuring_threads_children_and_executed_programs_are_followed() {
    let Some(threads) = sampled("threads 4 150") else { return };
    assert_eq!(threads.threads().len(), 4, "{:?}", threads.threads());
    let forked = sampled("fork 3 150").unwrap();
    assert!(forked.threads().len() >= 3 && forked.ended >= 3, "{:?}", forked.threads());
    let executed = sampled("exec 1 150").unwrap();
    assert!(executed.executed >= 1 && executed.weight_ms() > 150, "{executed:?}");
    assert!(executed.share_in_function() > 0.9, "{}", executed.output);
}

#[test]
fn system_calls_do_not_notice() {
    let Some(sampled) = sampled("sleeps 400") else { return };
    assert_eq!(sampled.number("interrupted"), 0);
    assert!(!sampled.threads().is_empty());
}

/// The method leaves sleeping threads alone, but one may fall asleep just then.
#[test]
fn measuring_a_call_that_was_interrupted_is_restarted() {
    if !cfg!(target_arch = "x86_64") {
        return numakit_skips::MACHINE.skip("only on x86-64 an interrupted call can be repaired");
    }
    let Some(prepared) = prepared("sleeps 100") else { return };
    let tracer = Tracer::new().unwrap();
    let child = Running::start(&prepared.words).unwrap().id();
    if let Err(error) = tracer.seize(child) {
        return numakit_skips::PRIVILEGES.skip(format_args!("ptrace is refused here: {error}"));
    }
    let (mut repaired, mut status, mut turn, limit) = (0, None, 0, Instant::now() + Duration::from_secs(120));
    while status.is_none() {
        assert!(Instant::now() < limit, "the program does not end");
        // A call that is restarted sleeps as long as before: now and then there must be time for all of it.
        turn += 1;
        std::thread::sleep(Duration::from_micros(if turn % 4 == 0 { 3000 } else { 300 }));
        // The child, or nothing any more.
        let _ = tracer.interrupt(child);
        std::thread::sleep(Duration::from_micros(300));
        while let Ok(Some((thread, stop))) = tracer.next(false) {
            repaired += u32::from(stop == Stop::Interrupted && tracer.repair_call(thread).unwrap());
            let signal = if let Stop::Signal(signal) = stop { signal } else { 0 };
            let _ = tracer.resume(thread, signal);
            if let Stop::Ended(code) = stop
                && thread == child
            {
                status = Some(code);
            }
        }
    }
    assert!(repaired > 50 && status == Some(42), "{repaired}, {status:?}");
    assert_eq!(prepared.output("interrupted "), "0");
}

#[test]
fn every_signal_arrives_once() {
    let Some(sampled) = sampled("signals 1000") else { return };
    assert_eq!(sampled.number("handled"), 1000);
}

/// Kills a process if the test fails.
struct KilledOnFailure(u32);

impl Drop for KilledOnFailure {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = supervise::send(self.0, numakit_sys::signal::KILL);
        }
    }
}

#[test]
fn a_stopped_program_stays_stopped_until_it_is_continued() {
    let Some(prepared) = prepared("stopped 1 30") else { return };
    let words = prepared.words.clone();
    let (mut method, running) =
        PtraceMethod::for_command(&SETTINGS, Landing::Other, move || Running::start(&words)).unwrap();
    let (root, id) = (SysRoot::host(), running.id());
    let _killed = KilledOnFailure(id);
    // T is stopped, t is stopped by a tracer, as it is for each sample too.
    let is_stopped = || {
        let text = TaskDir::of(&root, id).text("stat").unwrap();
        text.rsplit(") ").next().unwrap().starts_with(['T', 't'])
    };
    let mut stopped_for = 0;
    until!({
        stopped_for = if is_stopped() { stopped_for + 1 } else { 0 };
        stopped_for >= 50
    });
    supervise::send(id, supervise::CONTINUE).unwrap();
    assert_eq!(run(&mut method, running, &prepared).status, 42);
}

#[test]
fn the_program_lives_on_without_the_method() {
    let Some(prepared) = prepared("threads 2 200") else { return };
    let words = prepared.words.clone();
    let (method, mut running) =
        PtraceMethod::for_command(&SETTINGS, Landing::Other, move || Running::start(&words)).unwrap();
    std::thread::sleep(Duration::from_millis(30));
    drop(method);
    assert_eq!(wait_for("the end of the program", || running.ended().unwrap()), 42);
}

/// In a process of its own: an observer that the test below kills.
#[test]
fn observes_until_it_is_killed() {
    let Some(output) = std::env::var("NUMAKIT_TEST_OBSERVES").ok() else { return };
    let script = format!("exec '{}' spin 1 700 > '{}'", program().unwrap().display(), output);
    let words = ["sh", "-c", &script].map(std::ffi::OsString::from).to_vec();
    let (mut method, running) =
        PtraceMethod::for_command(&SETTINGS, Landing::Other, move || Running::start(&words)).unwrap();
    let mut sampled = Sampled::default();
    until!({
        sampled.take(&mut method).unwrap();
        sampled.samples.len() >= 10
    });
    println!("observes {}", running.id());
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn the_program_lives_on_when_its_observer_is_killed() {
    let Some(_) = program() else { return };
    let output = std::env::temp_dir().join(format!("numakit-methods-killed-{}", std::process::id()));
    let mut observer = Command::new(std::env::current_exe().unwrap());
    observer.args(["--exact", "by_ptrace::observes_until_it_is_killed", "--nocapture"]);
    let mut observer = observer.env("NUMAKIT_TEST_OBSERVES", &output).stdout(Stdio::piped()).spawn().unwrap();
    // It waits for its samples with a limit.
    let mut lines = BufReader::new(observer.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("observes ")), "it ended early");
    observer.kill().unwrap();
    observer.wait().unwrap();
    // The program writes its last line after 700 ms of CPU time.
    until!(std::fs::read_to_string(&output).is_ok_and(|text| text.contains("ended ")));
    std::fs::remove_file(output).unwrap();
}

#[test]
fn a_program_that_cannot_be_started_is_an_error() {
    let start = || Running::start(&["/no/such/program".into()]);
    let refused = PtraceMethod::for_command(&SETTINGS, Landing::Other, start).err().unwrap();
    assert!(
        matches!(&refused, MethodError::Start(error) if error.kind() == ErrorKind::NotFound),
        "{refused:?}"
    );
}

#[test]
fn programs_that_end_at_once_do_so_with_their_status() {
    for _ in 0..numakit_skips::rounds(8, 50) {
        let start = || Running::start(&["sh".into(), "-c".into(), "exit 9".into()]);
        let (method, mut running) = PtraceMethod::for_command(&SETTINGS, Landing::Other, start).unwrap();
        let status = wait_for("the end of the shell", || running.ended().unwrap());
        assert_eq!((status, method.losses().total()), (9, 0));
    }
}
