//! The judgement on threads that could run and wait for a CPU: who keeps them from it.

use crate::case::{Draft, percent};
use crate::finding::{CostBasis, Finding, FindingCost, FindingEvidence, FindingRemedy, FindingSubject};
use crate::rules::{self, Judge, Rule, RuleKind};
use numakit_explain::Explained;
use numakit_explain::cpu_waits::{CpuWaits, MaskedThreads, ProgramParent};
use numakit_model::CpuSet;

/// From this part of the time on in which threads could run, waiting for a CPU is a problem.
const MUCH: f64 = 0.2;
/// Threads that have less of the time of their CPUs are kept waiting by others more than by each other.
const OWN: f64 = 0.5;
/// A mask is too narrow if this many CPUs outside of it were idle on average.
const IDLE: f64 = 0.5;
/// Threads that wait for something else than a CPU for less of their time only compute.
const COMPUTING: f64 = 0.05;
/// Processes that a command names; of more, it would not be read.
const MAX_NAMED: usize = 64;
/// The part of the waits that the limit of a control group explains.
const LIMITED: f64 = 0.5;

/// What a rule may look at: threads with one CPU mask.
#[derive(Debug)]
pub(crate) struct WaitCase<'a> {
    waits: &'a CpuWaits,
    masked: &'a MaskedThreads,
    /// The part of the time in which they could run that they waited.
    share: f64,
    /// The part of all of their time that they waited.
    lost: f64,
    /// The processes, unless the command was started for the observation.
    running: &'a [u32],
    command: &'a str,
    /// Whether its processes are ranks of an MPI job.
    has_ranks: bool,
}

/// What is found of the threads that waited longest; `None` if they hardly waited.
pub(crate) fn judge(explained: &Explained) -> Option<Finding> {
    let Explained { cpu_waits: waits, attached, command, report, .. } = explained;
    let masked = waits.masks.first()?;
    // A command is started again; of processes that run already, each has a mask of its own.
    let running = report.processes.iter().filter(|process| !attached.is_empty() && !process.ended);
    let running: Vec<u32> = running.map(|process| process.pid).collect();
    let has_ranks = !report.explanation.ranks.is_empty();
    let case = WaitCase { has_ranks, ..WaitCase::new(waits, masked, &running, command) };
    (case.share >= MUCH).then(|| rules::judge_waits(&case)).flatten()
}

/// Whether a finding says how long threads had no CPU.
pub(crate) fn says_cpu_waits(finding: &Finding) -> bool {
    let rules = [&GROUP_LIMIT, &NARROW_MASK, &MORE_THREADS_THAN_CPUS, &OTHERS_RUN];
    rules.iter().any(|rule| rule.name == finding.rule)
}

/// A rule about waits.
const fn rule(name: &'static str, finds: &'static str, judge: fn(&WaitCase<'_>) -> Option<Draft>) -> Rule {
    Rule { name, finds, kind: RuleKind::Problem, judge: Judge::Waits(judge) }
}

/// The CPU limit of a control group.
pub(crate) const GROUP_LIMIT: Rule = rule(
    "waits-for-cpu-limit",
    "threads that the CPU limit of their control group keeps from running",
    |case| {
        let is_limited = case.waits.throttled as f64 >= LIMITED * case.masked.waited as f64;
        is_limited.then(|| {
            let says = format!(
                "{} are stopped by the CPU limit of their control group {}",
                case.threads(),
                case.of_time()
            );
            let change =
                "Raise the limit (cpu.max, CPUQuota of a unit, --cpus of a container), or run fewer threads";
            case.draft(says, change, Some(case.lost), None)
        })
    },
);

/// More threads than CPUs in their mask, and idle CPUs elsewhere.
pub(crate) const NARROW_MASK: Rule =
    rule("narrow-cpu-mask", "busy threads that may only use a few CPUs, while others are idle", |case| {
        let MaskedThreads { cpus, threads, .. } = case.masked;
        let idle = case.waits.idle_outside(cpus);
        (*threads > cpus.len() && idle >= IDLE).then(|| {
            let says = format!(
                "{} may only use {}, and wait for {} {}; {idle:.1} other CPUs are idle",
                case.threads(),
                cpu_words(cpus),
                if cpus.len() == 1 { "it" } else { "them" },
                case.of_time()
            );
            let used = cpus.len() as f64;
            let saved = case.lost.min(1.0 - used / (used + idle));
            case.draft(says, &case.origin(), Some(saved), case.widened())
        })
    });

/// More threads than CPUs.
pub(crate) const MORE_THREADS_THAN_CPUS: Rule = rule(
    "more-threads-than-cpus",
    "more busy threads than CPUs that they may use",
    |case| {
        let MaskedThreads { cpus, .. } = case.masked;
        case.has_more_threads().then(|| {
            let says =
                format!("{} share {}, and wait for a CPU {}", case.threads(), cpu_words(cpus), case.of_time());
            let most = match cpus.len() {
                1 => "one thread".to_owned(),
                count => format!("{count} threads"),
            };
            let change = match case.only_compute() {
                true => format!(
                    "Run no more than {most} (OMP_NUM_THREADS of OpenMP, the size of a pool of threads elsewhere): the same work is \
                     then done with fewer switches"
                ),
                false => format!(
                    "The CPUs have no time left. Threads that also wait for clients, locks or storage, as these do for {} of their \
                     time, may have to be more than {}: fewer of them help only if measurements say so",
                    percent(100.0 * case.asleep()),
                    cpus.len()
                ),
            };
            case.draft(says, &change, None, None)
        })
    },
);

/// Other programs.
pub(crate) const OTHERS_RUN: Rule =
    rule("cpus-used-by-others", "threads that wait for CPUs which other programs use", |case| {
        let wait = match case.masked.threads {
            1 => "a busy thread waits".to_owned(),
            count => format!("{count} busy threads wait"),
        };
        let whose = if case.masked.threads == 1 { "its" } else { "their" };
        let of_all = match case.only_compute() {
            true => String::new(),
            false => format!(" ({} of all of {whose} time)", percent(100.0 * case.lost)),
        };
        let says = format!("Other programs use the CPUs: {wait} for a CPU {}{of_all}", case.of_time());
        let change = "End the other programs, or give each program CPUs of its own";
        Some(case.draft(says, change, Some(case.lost), Some("numa top".to_owned())))
    });

impl<'a> WaitCase<'a> {
    fn new(waits: &'a CpuWaits, masked: &'a MaskedThreads, running: &'a [u32], command: &'a str) -> Self {
        let MaskedThreads { ran, waited, asleep, .. } = *masked;
        let part_of = |all: u64| waited as f64 / all.max(1) as f64;
        Self {
            waits,
            masked,
            share: part_of(ran + waited),
            lost: part_of(ran + waited + asleep),
            running,
            command,
            has_ranks: false,
        }
    }
}

impl WaitCase<'_> {
    /// The part of the time of their CPUs that the threads have: where it is small, others have the rest.
    fn own(&self) -> f64 {
        let MaskedThreads { cpus, threads, ran, waited, asleep } = self.masked;
        let lived = (ran + waited + asleep) as f64 / (*threads).max(1) as f64;
        *ran as f64 / (lived * cpus.len() as f64).max(1.0)
    }

    /// The part of their time in which the threads waited for something else than a CPU.
    fn asleep(&self) -> f64 {
        let MaskedThreads { ran, waited, asleep, .. } = self.masked;
        *asleep as f64 / (ran + waited + asleep).max(1) as f64
    }

    /// Whether the threads hardly wait for anything but a CPU.
    fn only_compute(&self) -> bool {
        self.asleep() < COMPUTING
    }

    /// Whether more threads than CPUs have most of the time of these.
    fn has_more_threads(&self) -> bool {
        self.masked.threads > self.masked.cpus.len() && self.own() >= OWN
    }

    /// The threads in words.
    fn threads(&self) -> String {
        match self.masked.threads {
            1 => "One busy thread".to_owned(),
            count => format!("{count} busy threads"),
        }
    }

    fn of_time(&self) -> String {
        let who = if self.masked.threads == 1 { "it" } else { "they" };
        format!("{} of the time in which {who} could run", percent(100.0 * self.share))
    }

    /// The process that the mask was inherited from, if it was.
    fn inherited_from(&self) -> Option<&ProgramParent> {
        self.waits.parent.as_ref().filter(|parent| parent.cpus == self.masked.cpus)
    }

    /// Who narrowed the mask.
    fn origin(&self) -> String {
        match self.inherited_from() {
            Some(parent) => format!(
                "The mask was inherited from {} ({}): run the program with all CPUs that it should use",
                parent.name, parent.pid
            ),
            None if self.has_ranks => {
                "mpirun binds each rank, Open MPI one or two ranks to a core each and more to a node or socket: let each have N CPUs for \
                 its N threads (mpirun --map-by slot:PE=N), or do not bind (--bind-to none)"
                    .to_owned()
            }
            None => "The program set the mask itself, or a library that it loads: look for sched_setaffinity, \
                     pthread_setaffinity_np and the variables of its runtime (OMP_PLACES, GOMP_CPU_AFFINITY, KMP_AFFINITY)"
                .to_owned(),
        }
    }

    /// Gives all CPUs to what runs, or to what is started with a mask that it inherits. A program that sets its mask itself would
    /// do so again.
    fn widened(&self) -> Option<String> {
        let online = self.waits.online();
        match self.running {
            [] => self.inherited_from().map(|_| format!("taskset -c {online} {}", self.command)),
            [pid] => Some(format!("taskset -acp {online} {pid}")),
            pids if pids.len() > MAX_NAMED => None,
            pids => {
                let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
                Some(format!("for pid in {}; do taskset -acp {online} $pid; done", pids.join(" ")))
            }
        }
    }

    fn draft(&self, says: String, change: &str, saved: Option<f64>, command: Option<String>) -> Draft {
        let cost = match saved {
            Some(saved) => FindingCost::at_most(CostBasis::WallTime, 100.0 * saved),
            None => FindingCost::unknown(
                "the CPUs are busy all the time, and fewer threads have the same work to do",
            ),
        };
        let remedy = FindingRemedy {
            words: change.to_owned(),
            commands: command.into_iter().collect(),
            ..FindingRemedy::default()
        };
        let evidence = FindingEvidence {
            series: "cpu.waited".to_owned(),
            value: 100.0 * self.share,
            says: format!("{} on {}", self.of_time(), cpu_words(&self.masked.cpus)),
            course: Vec::new(),
        };
        Draft::measured(FindingSubject::Program, says, cost, remedy).with([evidence])
    }
}

/// `CPU 0`, `2 CPUs (0-1)`.
fn cpu_words(cpus: &CpuSet) -> String {
    match cpus.len() {
        1 => format!("CPU {cpus}"),
        count => format!("{count} CPUs ({cpus})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Threads on CPUs 0 to `last` of eight, of which CPU 7 is idle for this part of the time.
    fn found(threads: usize, last: u32, idle: f64, change: impl Fn(&mut CpuWaits)) -> Finding {
        let cpus = CpuSet::range(0, last);
        // All of the time of these CPUs is theirs.
        let ran = threads.min(cpus.len()) as u64 * SECOND;
        let waited = (threads as u64 * SECOND - ran).max(SECOND);
        let masked = MaskedThreads { cpus, threads, ran, waited, asleep: 0 };
        let idle = (0..8).map(|cpu| (cpu, if cpu == 7 { idle } else { 0.0 })).collect();
        let mut waits = CpuWaits { masks: vec![masked.clone()], idle, ..CpuWaits::default() };
        change(&mut waits);
        rules::judge_waits(&WaitCase::new(&waits, &masked, &[], "./app")).unwrap()
    }

    #[test]
    fn who_keeps_threads_from_running_is_named() {
        let narrow = found(4, 0, 0.9, |_| ());
        let says = "4 busy threads may only use CPU 0, and wait for it 75.0 % of the time in which they could run; 0.9 other CPUs \
                    are idle";
        assert_eq!((narrow.rule, narrow.says.as_str()), ("narrow-cpu-mask", says));
        assert_eq!(narrow.remedy.commands, [""; 0], "it would set its mask again");
        assert!(narrow.remedy.words.starts_with("The program set the mask itself"), "{narrow:?}");
        // One CPU more halves the time, however long the threads wait.
        let FindingCost::Share { high, .. } = narrow.cost else { panic!("{narrow:?}") };
        assert!((high - 100.0 * (1.0 - 1.0 / 1.9)).abs() < 1e-9, "{high}");

        let rule = |threads, last, idle| found(threads, last, idle, |_| ()).rule;
        assert_eq!(rule(4, 0, 0.2), "more-threads-than-cpus", "no other CPU is idle");
        assert_eq!(rule(9, 7, 0.0), "more-threads-than-cpus");
        assert_eq!(rule(2, 7, 0.0), "cpus-used-by-others");
        // Four threads that have a sixth of two CPUs do not wait for each other.
        let (cpus, waits) = (CpuSet::range(0, 1), CpuWaits::default());
        let masked = MaskedThreads { cpus, threads: 4, ran: SECOND, waited: 6 * SECOND, asleep: 5 * SECOND };
        let starved = rules::judge_waits(&WaitCase::new(&waits, &masked, &[], "./app")).unwrap();
        assert_eq!(starved.rule, "cpus-used-by-others");
        let limited = found(4, 0, 0.9, |waits| waits.throttled = 2 * SECOND);
        assert_eq!(limited.rule, "waits-for-cpu-limit");
    }

    #[test]
    fn what_others_cost_is_a_part_of_all_time() {
        let cpus = CpuSet::range(0, 1);
        let masked = MaskedThreads { cpus, threads: 1, ran: SECOND, waited: 3 * SECOND, asleep: 6 * SECOND };
        let waits = CpuWaits { masks: vec![masked.clone()], ..CpuWaits::default() };
        let finding = rules::judge_waits(&WaitCase::new(&waits, &masked, &[], "./app")).unwrap();
        let says = "Other programs use the CPUs: a busy thread waits for a CPU 75.0 % of the time in which it could run (30.0 % of \
                    all of its time)";
        assert_eq!(finding.says, says);
        assert_eq!(finding.cost.words(), "at most 30.0 % of the time");
    }

    #[test]
    fn a_mask_is_inherited_if_the_parent_has_it() {
        let of = |last| {
            move |waits: &mut CpuWaits| {
                let cpus = CpuSet::range(0, last);
                waits.parent = Some(ProgramParent { pid: 1234, name: "bash".to_owned(), cpus });
            }
        };
        let inherited = found(4, 0, 1.0, of(0)).remedy;
        assert!(inherited.words.starts_with("The mask was inherited from bash (1234)"), "{inherited:?}");
        assert_eq!(inherited.commands, ["taskset -c 0-7 ./app"]);
        assert!(found(4, 0, 1.0, of(7)).remedy.words.starts_with("The program set the mask itself"));
        let (cpus, waits) = (CpuSet::range(0, 0), CpuWaits::default());
        let masked = MaskedThreads { cpus, threads: 4, ran: SECOND, waited: 3 * SECOND, asleep: 0 };
        let case = WaitCase { has_ranks: true, ..WaitCase::new(&waits, &masked, &[], "mpirun ./app") };
        assert!(case.origin().starts_with("mpirun binds each rank"));
    }

    #[test]
    fn processes_that_run_get_one_command() {
        let masked = MaskedThreads { cpus: CpuSet::range(0, 0), threads: 2, ran: 1, waited: 1, asleep: 0 };
        let idle = [(0, 0.0), (1, 1.0)].into();
        let waits = CpuWaits { masks: vec![masked.clone()], idle, ..CpuWaits::default() };
        let commands = |running: &[u32]| {
            let case = WaitCase::new(&waits, &masked, running, "CMD");
            rules::judge_waits(&case).unwrap().remedy.commands
        };
        assert_eq!(commands(&[7]), ["taskset -acp 0-1 7"]);
        assert_eq!(commands(&[7, 9]), ["for pid in 7 9; do taskset -acp 0-1 $pid; done"]);
    }
}
