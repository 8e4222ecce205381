//! Performance events.

use crate::program::{Prepared, Sampled, prepared, run};
use numakit_model::CpuSet;
use numakit_sampling::perf::PerfMethod;
use numakit_sampling::{Landing, Method, MethodError, SampleSettings};
use numakit_sys::command::Running;
use numakit_sys::perf::Errno;
use numakit_sys::perf::sampling::SamplingError;
use numakit_sys::sched;
use std::time::Duration;

const SETTINGS: SampleSettings =
    SampleSettings { frequency: 499, stack: 512, faults: 0, first_touch: false, every_touch: false };

/// The method; none where it is refused.
fn opened<T>(result: Result<T, MethodError>) -> Option<T> {
    match result {
        Ok(opened) => Some(opened),
        Err(MethodError::Perf(SamplingError::Open(error))) if Errno::of(&error) == Some(Errno::Denied) => {
            numakit_skips::PRIVILEGES.skip(format_args!("perf_event_open is refused here: {error}"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn started(settings: &SampleSettings, prepared: &Prepared) -> Option<(PerfMethod, Running)> {
    opened(PerfMethod::for_command(settings, Landing::Other, || Running::start(&prepared.words)))
}

fn sampled(arguments: &str) -> Option<Sampled> {
    let prepared = prepared(arguments)?;
    let (mut method, running) = started(&SETTINGS, &prepared)?;
    let sampled = run(&mut method, running, &prepared);
    assert_eq!((sampled.status, method.losses().total()), (42, 0), "{:?}", method.losses());
    Some(sampled)
}

#[test]
fn measuring_samples_are_in_the_function_that_spins() {
    let Some(sampled) = sampled("spin 1 400") else { return };
    assert!(sampled.share_in_function() > 0.9, "{}", sampled.share_in_function());
    assert_eq!(sampled.threads().len(), 1);
    // The shell, and the program in its place.
    assert_eq!(sampled.executed, 2);
    let spent = sampled.number("ended");
    let weight = sampled.weight_ms();
    assert!(weight <= spent * 12 / 10 && weight >= spent * 6 / 10, "{weight} of {spent} ms");
    for sample in sampled.of_program() {
        assert_eq!(
            (sample.stack.address, sample.weight),
            (sample.registers.stack_pointer(), SETTINGS.period())
        );
        assert!(sample.cpu.is_some() && sample.measured.is_none() && sample.faults == 0);
    }
    assert!(sampled.of_program().all(|sample| sample.stack.bytes.len() == 512));
}

#[test]
fn measuring_threads_and_children_are_sampled_each() {
    let Some(sampled) = sampled("threads 4 150") else { return };
    assert_eq!(sampled.threads().len(), 4, "{:?}", sampled.threads());
    let sampled = crate::by_perf::sampled("fork 3 150").unwrap();
    let mut processes: Vec<u32> = sampled.threads().into_iter().map(|(process, _)| process).collect();
    processes.dedup();
    assert!(processes.len() >= 3 && sampled.started >= 3 && sampled.ended >= 3, "{processes:?}");
    assert!(sampled.share_in_function() > 0.9);
}

#[test]
fn measuring_a_program_that_executes_another_is_followed() {
    let Some(sampled) = sampled("exec 1 150") else { return };
    assert_eq!((sampled.executed, sampled.threads().len()), (3, 1));
    assert!(sampled.share_in_function() > 0.9, "{}", sampled.output);
    assert!(sampled.weight_ms() > 150, "{}", sampled.weight_ms());
}

#[test]
fn measuring_a_program_may_leave_the_cpus_of_its_observer() {
    let Some(mut prepared) = prepared("spin 1 150") else { return };
    let all = sched::permitted().unwrap();
    let (Some(first), Some(last)) = (all.first(), all.last().filter(|_| all.len() > 1)) else {
        return numakit_skips::MACHINE.skip("the program and its observer are on one CPU");
    };
    let bound = ["taskset".into(), "-c".into(), last.to_string().into()];
    prepared.words.splice(0..0, bound);
    // The observer's threads inherit the CPU of this one.
    let observed = std::thread::spawn(move || {
        sched::set_affinity(&CpuSet::range(first, first)).unwrap();
        let (mut method, running) = started(&SETTINGS, &prepared)?;
        Some(run(&mut method, running, &prepared))
    });
    let Some(sampled) = observed.join().unwrap() else { return };
    assert!(sampled.weight_ms() > 100, "{} ms", sampled.weight_ms());
    assert!(sampled.of_program().all(|sample| sample.cpu == Some(last)));
}

#[test]
fn measuring_a_running_process_is_sampled_with_its_new_threads() {
    let Some(prepared) = prepared("threads 2 300") else { return };
    let running = Running::start(&prepared.words).unwrap();
    let Some(mut method) = opened(PerfMethod::for_processes(&SETTINGS, Landing::Other, &[running.id()]))
    else {
        return;
    };
    let sampled = run(&mut method, running, &prepared);
    assert!(sampled.threads().len() >= 2 && sampled.share_in_function() > 0.8, "{:?}", sampled.threads());
    assert!(matches!(
        PerfMethod::for_processes(&SETTINGS, Landing::Other, &[u32::MAX >> 2]),
        Err(MethodError::Read(_))
    ));
}

#[test]
fn measuring_the_whole_machine_is_sampled_where_that_is_permitted() {
    let Some(prepared) = prepared("spin 1 200") else { return };
    let cpus = numakit_sys::sched::affinity().unwrap();
    let Some(mut method) = opened(PerfMethod::for_machine(&SETTINGS, Landing::Other, &cpus)) else { return };
    let running = Running::start(&prepared.words).unwrap();
    let child = running.id();
    let sampled = run(&mut method, running, &prepared);
    let own = sampled.of_program().filter(|sample| sample.process == child).count();
    assert!(own > 20, "{own} of {}", sampled.samples.len());
}

#[test]
fn page_faults_are_counted_with_the_samples() {
    let Some(prepared) = prepared("touch 64 100") else { return };
    let settings = SampleSettings { faults: 16, ..SETTINGS };
    let Some((mut method, running)) = started(&settings, &prepared) else { return };
    let sampled = run(&mut method, running, &prepared);
    let faults: u64 = sampled.samples.iter().map(|sample| u64::from(sample.faults)).sum();
    println!("{faults} faults, of which the kernel counted {}", sampled.number("faults "));
    // With huge pages there is one for each; without, one for each page.
    assert!((16..=(64 << 20) / 4096 + 4096).contains(&faults), "{faults}");
}

#[test]
fn measuring_samples_of_a_program_that_nobody_drains_are_counted_as_lost() {
    let Some(prepared) = prepared("spin 1 600") else { return };
    let settings = SampleSettings { frequency: 20_000, stack: 4096, ..SETTINGS };
    let Some((mut method, running)) = started(&settings, &prepared) else { return };
    std::thread::sleep(Duration::from_millis(300));
    let sampled = run(&mut method, running, &prepared);
    assert!(method.losses().overflowed > 100 && sampled.samples.len() > 20, "{:?}", method.losses());
}
