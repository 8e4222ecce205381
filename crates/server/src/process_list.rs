//! The processes of the machine, surveyed for the page of `numa live`.

use crate::processes::{ProcessMeter, ProcessSurveyor};
use crate::wire::{MemoryUnknown, Ns, ProcessInfo, ProcessList};
use numakit_model::Topology;
use numakit_processes::{MemorySource, ProcessSample, Survey, busiest, descendants, per_second};
use numakit_sys::{SysRoot, clock};

/// Maximum number of processes that the page gets.
const PROCESSES: usize = 400;

/// Measures the processes of a machine; those of the program that `observed` returns are marked.
pub fn process_surveyor(
    root: SysRoot,
    topology: Topology,
    observed: impl Fn() -> Option<Vec<u32>> + Clone + Send + Sync + 'static,
) -> ProcessSurveyor {
    Box::new(move || {
        let mut survey = Survey::new(&root, &topology, None)?;
        survey.count_moved(true);
        let (fix, observed) = (survey.access().fix(), observed.clone());
        let mut before = clock::monotonic();
        let meter: ProcessMeter = Box::new(move |time| {
            let now = clock::monotonic();
            let seconds = now.saturating_sub(std::mem::replace(&mut before, now)) as f64 / 1e9;
            let list = listed(&survey.measure(time), seconds, observed());
            ProcessList {
                time_ns: Ns(clock::utc()),
                nodes: survey.nodes().to_vec(),
                fix: fix.clone(),
                ..list
            }
        });
        Ok(meter)
    })
}

fn listed(samples: &[ProcessSample], seconds: f64, observed: Option<Vec<u32>>) -> ProcessList {
    let program = observed
        .map(|pids| descendants(samples.iter().map(|p| (p.parent, p.pid)), &pids))
        .unwrap_or_default();
    let chosen = busiest(samples, &program, PROCESSES);
    let left_out = (samples.len() - chosen.len()) as u32;
    let processes = chosen.into_iter().map(|p| info(p, seconds, program.contains(&p.pid))).collect();
    ProcessList { seconds, processes, left_out, ..ProcessList::default() }
}

fn info(process: &ProcessSample, seconds: f64, observed: bool) -> ProcessInfo {
    let rate = |count: Option<u64>| per_second(count?, seconds);
    let (memory, why) = match &process.found {
        MemorySource::Memory(memory) => {
            let on = |at: usize| (memory.on(at) > 0).then(|| (at as u32, memory.on(at)));
            (Some((0..memory.0.len()).filter_map(on).collect()), None)
        }
        MemorySource::Denied => (None, Some(MemoryUnknown::Denied)),
        MemorySource::Late => (None, Some(MemoryUnknown::Late)),
        MemorySource::Refused => (None, Some(MemoryUnknown::Refused)),
    };
    ProcessInfo {
        pid: process.pid,
        parent: process.parent,
        user: process.user.clone(),
        name: process.command.clone(),
        threads: process.threads,
        observed,
        cpu: process.cpu_percent(seconds).unwrap_or(0.0),
        remote: process.remote_percent(),
        resident: process.resident,
        memory,
        why,
        faults: rate(process.faults),
        major: rate(process.major_faults),
        moved: rate(process.moved),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_processes::{MemoryByUse, Use};

    fn process(pid: u32, parent: u32, ran_ms: u64) -> ProcessSample {
        let mut memory = MemoryByUse::none(3);
        memory.0[2][Use::Heap as usize] = 8192;
        ProcessSample {
            pid,
            parent,
            ran: ran_ms * 1_000_000,
            faults: Some(40),
            major_faults: Some(10),
            near_far: Some((1, 3)),
            resident: 8192,
            found: MemorySource::Memory(memory),
            ..ProcessSample::default()
        }
    }

    #[test]
    fn a_process_has_rates_and_its_memory_on_the_nodes_that_have_some() {
        let list = listed(&[process(7, 1, 500)], 2.0, None);
        let shown = &list.processes[0];
        assert_eq!((shown.cpu, shown.faults, shown.major, shown.moved), (25.0, Some(20.0), Some(5.0), None));
        assert_eq!((shown.memory.as_deref(), shown.remote), (Some(&[(2, 8192)][..]), Some(75.0)));
        let denied = ProcessSample { found: MemorySource::Denied, near_far: None, ..process(8, 1, 0) };
        let shown = info(&denied, 2.0, false);
        assert_eq!((shown.memory, shown.why, shown.remote), (None, Some(MemoryUnknown::Denied), None));
    }

    #[test]
    fn the_observed_program_comes_first_and_the_idle_are_left_out() {
        let mut samples: Vec<ProcessSample> = (100..600).map(|pid| process(pid, 1, u64::from(pid))).collect();
        samples.extend([process(9, 8, 0), process(8, 7, 0), process(7, 1, 0)]);
        let list = listed(&samples, 1.0, Some(vec![7]));
        assert_eq!((list.processes.len(), list.left_out), (PROCESSES, 103));
        let mut first: Vec<u32> = list.processes[..3].iter().map(|p| p.pid).collect();
        first.sort_unstable();
        assert_eq!(first, [7, 8, 9]);
        assert!(list.processes.iter().all(|p| p.observed == (p.pid < 10)));
        assert_eq!(list.processes[3].pid, 599);
    }
}
