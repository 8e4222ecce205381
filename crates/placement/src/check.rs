//! Compares a running job with its plan.

use numakit_model::plan::{Memory, Mode, Plan, Step};
use numakit_model::{CpuSet, Topology};
use std::collections::BTreeMap;
use std::ops::Range;
use thiserror::Error;

/// Variables in which MPI launchers give a process its rank on this machine, and the number of ranks.
pub const LOCAL_RANKS: [(&str, &str); 2] =
    [("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"), ("MPI_LOCALRANKID", "MPI_LOCALNRANKS")];

/// The rank of this process on its machine, from the variables of its MPI launcher. Slurm sets only the rank in the job.
pub fn local_rank(variable: impl Fn(&str) -> Option<String>) -> Option<u32> {
    let names = LOCAL_RANKS.iter().map(|(rank, _)| *rank).chain(["SLURM_LOCALID"]);
    names.into_iter().find_map(|name| variable(name)?.parse().ok())
}

/// An observed thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObservedThread {
    /// The thread's process: the rank of an MPI program, else 0.
    pub process: u32,
    /// The thread's position in its process, from 0.
    pub thread: u32,
    /// The TID.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// CPUs that it may run on.
    pub allowed: CpuSet,
    /// The CPU that it ran on last.
    pub last: Option<u32>,
}

/// Which threads of a plan must exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// The threads of all planned CPUs are expected.
    All,
    /// Only the threads that the program has created so far are expected. Threads are bound when they are created.
    Started,
}

/// The differences as sentences; none if the job is as planned. A thread that may use all CPUs of its process is not a
/// difference as long as each planned CPU has its thread: MPI libraries and runtimes have such threads.
pub fn compare(plan: &Plan, observed: &[ObservedThread], expected: Expected) -> Vec<String> {
    let mut found: BTreeMap<u32, Vec<&ObservedThread>> = BTreeMap::new();
    for thread in observed {
        found.entry(thread.process).or_default().push(thread);
    }
    let mut differences = Vec::new();
    for steps in plan.processes() {
        match found.remove(&steps[0].process) {
            Some(threads) => differences.extend(compare_process(plan, steps, &threads, expected)),
            None => differences.push(format!("process {} of the plan does not run", steps[0].process)),
        }
    }
    differences.extend(found.keys().map(|process| format!("process {process} runs and is not in the plan")));
    differences
}

fn compare_process(
    plan: &Plan,
    steps: &[Step],
    threads: &[&ObservedThread],
    expected: Expected,
) -> Vec<String> {
    let (process, all) = (steps[0].process, plan.cpus());
    let own: CpuSet = steps.iter().map(|step| step.cpu).collect();
    let (held, others) = (plan.held.or(&all), all.minus(&own));
    let mut differences = Vec::new();
    let mut bound: BTreeMap<u32, Vec<&ObservedThread>> = BTreeMap::new();
    let mut floating = 0;
    for thread in threads {
        let outside = thread.allowed.minus(&held);
        let foreign = thread.allowed.and(&others);
        let planned = thread.allowed.and(&own);
        if !outside.is_empty() {
            differences.push(format!(
                "{} may run on {}, outside of the plan",
                who(thread),
                words("CPU", &outside)
            ));
        } else if !foreign.is_empty() {
            differences.push(format!(
                "{} may run on {} of another process",
                who(thread),
                words("CPU", &foreign)
            ));
        } else if planned.len() == 1 {
            bound.entry(planned.first().unwrap_or_default()).or_default().push(thread);
        } else {
            floating += 1;
        }
    }
    let empty: CpuSet = own.iter().filter(|cpu| !bound.contains_key(cpu)).collect();
    if empty.is_empty() {
        return differences;
    }
    for (cpu, several) in bound.iter().filter(|(_, several)| several.len() > 1) {
        let names: Vec<String> = several.iter().map(|thread| who(thread)).collect();
        differences.push(format!(
            "CPU {cpu} has {} threads while {} has none: {}",
            several.len(),
            words("CPU", &empty),
            names.join(", ")
        ));
    }
    if expected == Expected::All {
        let floating = match floating {
            0 => String::new(),
            1 => "; 1 thread moves between all".to_owned(),
            count => format!("; {count} threads move between all"),
        };
        differences
            .push(format!("process {process}: no thread is bound to {}{floating}", words("CPU", &empty)));
    }
    differences
}

fn who(thread: &ObservedThread) -> String {
    let last = thread.last.map(|cpu| format!(", last on CPU {cpu}")).unwrap_or_default();
    format!("process {} thread {} ({} {}{last})", thread.process, thread.thread, thread.tid, thread.name)
}

fn words(word: &str, set: &CpuSet) -> String {
    format!("{word}{} {set}", if set.len() == 1 { "" } else { "s" })
}

/// An invalid variable in the environment of a process.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{name} is '{value}': {problem}; 'numa run' sets it")]
pub struct EnvironmentError {
    name: &'static str,
    value: String,
    problem: String,
}

/// The plan of a process, from its environment; `None` if `numa run` did not start it.
pub fn plan_of_environment<'a>(
    t: &Topology,
    variables: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<Option<Plan>, EnvironmentError> {
    let variables: BTreeMap<&str, &str> = variables.collect();
    let Some(place) = variables.get("NUMA_PLACE").filter(|place| !place.is_empty()) else {
        return Ok(None);
    };
    let order = ordered(place)?;
    let part = part_of_rank(&variables, order.len());
    let order = order.get(part.clone().unwrap_or(0..order.len())).unwrap_or(&order);
    let own: CpuSet = order.iter().copied().collect();
    let held = match variables.get("NUMA_MASK").filter(|_| part.is_none()) {
        None => own.clone(),
        Some(mask) => set("NUMA_MASK", mask)?.or(&own),
    };
    let mut node_of: BTreeMap<u32, u32> = BTreeMap::new();
    for node in &t.nodes {
        node_of.extend(node.cpus.and(&own).iter().map(|cpu| (cpu, node.os_index)));
    }
    let mut memory = memory(variables.get("NUMA_MEMORY").copied().unwrap_or("default"))?;
    if memory.nodes.is_empty() {
        memory.nodes = node_of.values().copied().collect();
    }
    let step = |(thread, cpu): (u32, u32)| Step {
        process: 0,
        thread,
        cpu,
        node: node_of.get(&cpu).copied().unwrap_or_default(),
        memory: memory.clone(),
        because: "NUMA_PLACE of the process".to_owned(),
    };
    let steps = (0..).zip(order.iter().copied()).map(step).collect();
    Ok(Some(Plan { machine: t.origin.clone(), steps, held, ..Plan::default() }))
}

/// The places of a rank whose launcher runs in `numa run`; `None` if the launcher's places are not divided among ranks.
fn part_of_rank(variables: &BTreeMap<&str, &str>, places: usize) -> Option<Range<usize>> {
    if variables.get("NUMA_RANKS") != Some(&"1") {
        return None;
    }
    let number = |name: &str| variables.get(name)?.parse::<usize>().ok();
    let pair = |(rank, count): (&str, &str)| Some((number(rank)?, number(count)?));
    let (rank, count) = LOCAL_RANKS.into_iter().find_map(pair)?;
    (rank < count && count <= places).then(|| places * rank / count..places * (rank + 1) / count)
}

/// A list of CPUs, in its order.
fn ordered(place: &str) -> Result<Vec<u32>, EnvironmentError> {
    let mut order = Vec::new();
    for part in place.split(',') {
        order.extend(set("NUMA_PLACE", part)?.iter());
    }
    Ok(order)
}

fn set(name: &'static str, value: &str) -> Result<CpuSet, EnvironmentError> {
    CpuSet::parse_list(value).map_err(|error| EnvironmentError {
        name,
        value: value.to_owned(),
        problem: error.to_string(),
    })
}

fn memory(value: &str) -> Result<Memory, EnvironmentError> {
    let (word, nodes) = value.split_once(':').unwrap_or((value, ""));
    let mode = match word {
        "default" | "local" => Mode::Local,
        "bind" => Mode::Bind,
        "prefer" => Mode::Prefer,
        "interleave" => Mode::Interleave,
        "weighted" => Mode::Weighted,
        _ => {
            return Err(EnvironmentError {
                name: "NUMA_MEMORY",
                value: value.to_owned(),
                problem: "it is default, bind, prefer, interleave or weighted".to_owned(),
            });
        }
    };
    Ok(Memory { mode, nodes: set("NUMA_MEMORY", nodes)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(list: &str) -> CpuSet {
        CpuSet::parse_list(list).unwrap()
    }

    /// Two processes of two threads on CPUs 0 to 3, whose siblings are 4 to 7.
    fn plan() -> Plan {
        let step = |at: u32| Step {
            process: at / 2,
            thread: at % 2,
            cpu: at,
            node: 0,
            memory: Memory::default(),
            because: String::new(),
        };
        Plan { steps: (0..4).map(step).collect(), held: cpus("0-7"), ..Plan::default() }
    }

    fn threads(list: &[(u32, &str)]) -> Vec<ObservedThread> {
        let thread = |(at, (process, allowed)): (usize, &(u32, &str))| ObservedThread {
            process: *process,
            thread: at as u32,
            tid: 100 + at as u32,
            name: "app".to_owned(),
            allowed: cpus(allowed),
            last: None,
        };
        list.iter().enumerate().map(thread).collect()
    }

    fn differences(list: &[(u32, &str)]) -> Vec<String> {
        compare(&plan(), &threads(list), Expected::All)
    }

    #[test]
    fn a_job_as_planned_differs_in_nothing() {
        assert!(differences(&[(0, "0"), (0, "1"), (1, "2"), (1, "3")]).is_empty());
        // Bound to whole cores, with unbound threads of the library.
        let cores = [(0, "0,4"), (0, "1,5"), (0, "0-1,4-5"), (0, "0,4"), (1, "2,6"), (1, "3,7")];
        assert!(differences(&cores).is_empty());
    }

    #[test]
    fn differences_are_told_in_words() {
        let floating = differences(&[(0, "0-1"), (0, "0-1"), (1, "2"), (1, "2")]);
        assert_eq!(
            floating,
            [
                "process 0: no thread is bound to CPUs 0-1; 2 threads move between all",
                "CPU 2 has 2 threads while CPU 3 has none: process 1 thread 2 (102 app), process 1 thread 3 \
                 (103 app)",
                "process 1: no thread is bound to CPU 3"
            ]
        );
        let outside = differences(&[(0, "0"), (0, "1,8"), (1, "2"), (1, "1"), (2, "0")]);
        assert_eq!(
            outside,
            [
                "process 0 thread 1 (101 app) may run on CPU 8, outside of the plan",
                "process 0: no thread is bound to CPU 1",
                "process 1 thread 3 (103 app) may run on CPU 1 of another process",
                "process 1: no thread is bound to CPU 3",
                "process 2 runs and is not in the plan"
            ]
        );
        assert_eq!(differences(&[(0, "0"), (0, "1")]), ["process 1 of the plan does not run"]);
    }

    #[test]
    fn threads_that_did_not_start_yet_are_no_difference_where_they_come_and_go() {
        let plan = Plan { steps: plan().steps[..2].to_vec(), ..plan() };
        assert!(compare(&plan, &threads(&[(0, "0-1,4-5")]), Expected::Started).is_empty());
        let twice = compare(&plan, &threads(&[(0, "0"), (0, "0")]), Expected::Started);
        assert_eq!(twice.len(), 1);
    }

    #[test]
    fn the_environment_tells_the_plan() {
        let variables = [
            ("NUMA_PLACE", "2,0-1"),
            ("NUMA_MASK", "0-2,8"),
            ("NUMA_MEMORY", "interleave:0-1"),
            ("HOME", "/"),
        ];
        let t = Topology::default();
        let plan = plan_of_environment(&t, variables.into_iter()).unwrap().unwrap();
        assert_eq!(plan.steps.iter().map(|step| step.cpu).collect::<Vec<_>>(), [2, 0, 1]);
        assert_eq!((plan.held.to_string().as_str(), plan.steps[0].memory.mode), ("0-2,8", Mode::Interleave));
        let rank = [("NUMA_RANKS", "1"), ("MPI_LOCALRANKID", "1"), ("MPI_LOCALNRANKS", "2")];
        let plan = plan_of_environment(&t, variables.into_iter().chain(rank)).unwrap().unwrap();
        assert_eq!(plan.steps.iter().map(|step| step.cpu).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(plan.held.to_string(), "0-1");
        assert_eq!(plan_of_environment(&t, [("A", "b")].into_iter()), Ok(None));
        let bad = plan_of_environment(&t, [("NUMA_PLACE", "a")].into_iter()).unwrap_err();
        assert!(bad.to_string().starts_with("NUMA_PLACE is 'a': "), "{bad}");
    }
}
