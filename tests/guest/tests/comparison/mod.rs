//! Threads that ran, and those of a plan.

use super::affinity::Process;
use numakit_model::plan::Step;
use numakit_model::{CpuSet, Plan};

/// What a launcher gives a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The CPU of the plan.
    Exact,
    /// The CPUs of all threads of its process.
    Process,
    /// All CPUs of the core of the plan.
    Cores,
}

/// What is not as in the plan. With `rising`, the threads of a process have its places in rising
/// order. Cores have `smt` threads, which follow each other.
pub fn differences(plan: &Plan, seen: &[Process], rule: Rule, rising: bool, smt: u32) -> Vec<String> {
    let core = |cpu: u32| -> CpuSet { (cpu / smt * smt..(cpu / smt + 1) * smt).collect() };
    let of_process = |steps: &[Step]| -> Vec<CpuSet> {
        let all: CpuSet = steps.iter().map(|step| step.cpu).collect();
        let one = |cpu: u32| match rule {
            Rule::Exact => [cpu].into_iter().collect(),
            Rule::Process => all.clone(),
            Rule::Cores => core(cpu),
        };
        let mut cpus: Vec<u32> = steps.iter().map(|step| step.cpu).collect();
        if rising {
            cpus.sort_unstable();
        }
        cpus.into_iter().map(one).collect()
    };
    let mut expected: Vec<(u32, Vec<CpuSet>)> =
        plan.processes().map(|steps| (steps[0].process, of_process(steps))).collect();
    // Without ranks, processes are distinguished by where they are.
    if seen.iter().all(|process| process.rank.is_none()) {
        expected.sort_by_key(|(_, threads)| threads.first().and_then(CpuSet::first));
    }
    let text = |threads: &[CpuSet]| threads.iter().map(CpuSet::to_string).collect::<Vec<_>>().join(" ");
    let mut found = Vec::new();
    if seen.len() != expected.len() || expected.is_empty() {
        found.push(format!("{} processes instead of {}", seen.len(), expected.len()));
    }
    for (process, (rank, threads)) in seen.iter().zip(&expected) {
        if process.rank.is_some_and(|seen| seen != *rank) || process.threads != *threads {
            let (is, planned) = (text(&process.threads), text(threads));
            found.push(format!("process {rank}: threads on {is}, planned {planned}"));
        }
    }
    found
}
