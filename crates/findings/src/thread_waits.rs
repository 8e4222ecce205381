//! The judgement on threads that wait for other threads of their program although there is work: at locks, and in loops.

use crate::activity;
use crate::case::{Draft, percent};
use crate::finding::{Certainty, CostBasis, FindingCost, FindingEvidence, FindingRemedy, FindingSubject};
use crate::rules::{Judge, Rule, RuleKind};
use numakit_explain::code::CodeName;
use numakit_explain::ranks::RankTime;
use numakit_explain::spins::Spins;
use numakit_explain::teams::TeamTime;
use numakit_explain::waits::LockTime;
use numakit_explain::{Explained, OpenLoops, SampledThread};
use numakit_model::thresholds::MIN_SAMPLES;

/// From this part of the time in which threads had work, waiting for a lock is a problem, and from this part of their CPU time,
/// waiting in a loop.
pub(crate) const MUCH: f64 = 0.2;
/// With fewer looks at threads that wait for a lock nothing is said about it.
const MIN_LOOKS: u64 = 10;
/// Threads that had no CPU for this part of the time in which they could run keep those waiting that wait for them.
pub(crate) const LATE: f64 = 0.1;
/// Work differs if one thread has more than the mean by this part.
pub(crate) const UNEQUAL: f64 = 0.1;
/// A thread that does this part of the work while others wait works alone.
const ALONE: f64 = 0.75;
/// Functions that are named of a call chain.
const FUNCTIONS: usize = 3;

/// What a rule may look at.
#[derive(Debug)]
pub(crate) struct ThreadCase<'a> {
    /// The locks for which threads waited.
    pub(crate) locks: &'a [LockTime],
    /// Loops in which threads waited.
    pub(crate) spins: &'a Spins,
    /// The part of the CPU time that those loops take.
    pub(crate) spinning: f64,
    /// Of the time in which threads could run, the part in which they had no CPU.
    pub(crate) without_cpu: f64,
    /// The threads that were sampled.
    pub(crate) threads: &'a [SampledThread],
    /// The ranks of an MPI job.
    pub(crate) ranks: &'a [RankTime],
    /// The teams of OpenMP.
    pub(crate) teams: &'a [TeamTime],
    /// How to start the program again, and its loops that `numa run --loops adaptive` changes, if it has such.
    pub(crate) loops: Option<(&'a str, OpenLoops)>,
}

impl<'a> ThreadCase<'a> {
    /// What an observation found.
    pub(crate) fn new(explained: &'a Explained) -> Self {
        let Explained { report, command, open_loops, .. } = explained;
        let explanation = &report.explanation;
        Self {
            locks: &explanation.waits.locks,
            spins: &explanation.spins,
            spinning: activity::spinning(explanation),
            without_cpu: activity::without_cpu(explanation),
            threads: &report.threads_sampled,
            // What few samples say of each rank is chance.
            ranks: if explanation.samples.total < MIN_SAMPLES { &[] } else { &explanation.ranks },
            teams: if explanation.samples.total < MIN_SAMPLES { &[] } else { &explanation.teams },
            loops: open_loops.map(|loops| (command.as_str(), loops)),
        }
    }

    /// Starts the program again so that unequal work of its loops is evened out; `None` where that changes nothing.
    fn adaptive(&self) -> Option<String> {
        self.loops
            .filter(|(_, loops)| loops.are_uneven())
            .map(|(command, loops)| adaptive_loops(command, loops))
    }
}

/// A rule about threads.
pub(crate) const fn rule(
    name: &'static str,
    finds: &'static str,
    judge: fn(&ThreadCase<'_>) -> Option<Draft>,
) -> Rule {
    Rule { name, finds, kind: RuleKind::Problem, judge: Judge::Threads(judge) }
}

/// A lock that costs time. Threads that wait for work do not wait for a lock, and one thread alone keeps nobody waiting.
pub(crate) const CONTENDED_LOCK: Rule = rule(
    "contended-lock",
    "a lock for which several threads wait while they have work",
    |case| {
        let lock = case.locks.iter().find(|lock| !lock.is_gil && is_costly(lock))?;
        let (of_time, held) = (percent(100.0 * share(lock)), held(lock));
        let says = format!(
            "{} threads wait for a lock {of_time} of the time in which they have work: {}, in {}{held}",
            lock.threads,
            lock.what,
            functions(&lock.chain)
        );
        let remedy = FindingRemedy {
            words: "Hold it for less time, take it less often (a batch of work each time), or divide what it protects into \
                    parts with a lock each"
                .to_owned(),
            ..FindingRemedy::default()
        };
        let cost = FindingCost::at_most(CostBasis::WallTime, 100.0 * share(lock));
        Some(evident(says, cost, remedy, ("waits.locks", 100.0 * share(lock), of_time)))
    },
);

/// The lock that lets one thread at a time run Python.
pub(crate) const CONTENDED_GIL: Rule = rule(
    "contended-gil",
    "threads of Python that wait for the global interpreter lock while they have work",
    |case| {
        let lock = case.locks.iter().find(|lock| lock.is_gil && is_costly(lock))?;
        let says = format!(
            "{:.1} of {} threads wait on average for the GIL, which lets one thread of the process at a time run Python: in {}{}",
            share(lock) * lock.threads as f64,
            lock.threads,
            functions(&lock.chain),
            held(lock)
        );
        let remedy = FindingRemedy {
            words: "Run processes instead of threads (multiprocessing, ProcessPoolExecutor), or let the work be done by a library \
                    that releases the GIL meanwhile (numpy on large arrays, Cython with nogil)"
                .to_owned(),
            ..FindingRemedy::default()
        };
        let cost = FindingCost::at_most(CostBasis::WallTime, 100.0 * share(lock));
        Some(evident(says, cost, remedy, ("waits.locks", 100.0 * share(lock), percent(100.0 * share(lock)))))
    },
);

/// The part of the time in which the threads had work that they waited for a lock.
fn share(lock: &LockTime) -> f64 {
    lock.time as f64 / (lock.time + lock.worked).max(1) as f64
}

/// Whether a lock keeps threads from their work.
fn is_costly(lock: &LockTime) -> bool {
    lock.threads > 1 && lock.looks >= MIN_LOOKS && share(lock) >= MUCH
}

/// Who holds a lock, and what the holder does.
fn held(lock: &LockTime) -> String {
    lock.holders.first().map_or_else(String::new, |holder| {
        let chain = functions(&holder.chain);
        let place = if chain.is_empty() { String::new() } else { format!(", in {chain}") };
        let state = if holder.runs { "runs" } else { "waits itself" };
        format!(
            "; thread {} ({}) holds it for {} of that and {state}{place}",
            holder.thread,
            holder.name,
            percent(100.0 * holder.share)
        )
    })
}

/// Threads that use CPUs only to wait.
pub(crate) const SPINNING: Rule =
    rule("spinning", "threads that use CPUs in loops in which they wait for other threads", |case| {
        let ThreadCase { spins, spinning: share, ranks, .. } = *case;
        let in_mpi: u64 = ranks.iter().flat_map(|rank| &rank.calls).map(|call| call.time).sum();
        // Waits in MPI have a rule of their own.
        if share * (1.0 - in_mpi as f64 / spins.time.max(1) as f64) < MUCH {
            return None;
        }
        let place = spins.functions.first().map_or_else(String::new, |code| format!(" in {}", code.name));
        let meanwhile = spins.meanwhile.first().map_or_else(String::new, |code| {
            let worker = spins.worker.and_then(|(thread, _)| case.threads.get(thread as usize));
            let by = worker.map_or_else(String::new, |thread| {
                format!(", most by thread {} ({})", thread.tid, thread.name)
            });
            format!(
                "; meanwhile others are in {} ({} of their time{by})",
                code.name,
                percent(100.0 * code.share)
            )
        });
        let threads = spins.threads.iter().filter(|thread| thread.spun > 0).count();
        let says = format!(
            "{} {} of the CPU time in loops that wait for other threads{place}{meanwhile}",
            if threads == 1 { "One thread spends".to_owned() } else { format!("{threads} threads spend") },
            percent(100.0 * share)
        );
        let (remedy, cost) = cause_of_spins(case);
        Some(evident(says, cost, remedy, ("spins.time", 100.0 * share, percent(100.0 * share))))
    });

/// What to do about threads that wait in loops, and what that is worth: it depends on why those that they wait for are late.
fn cause_of_spins(case: &ThreadCase<'_>) -> (FindingRemedy, FindingCost) {
    const SLEEP: &str = "OMP_WAIT_POLICY=passive lets threads that wait sleep";
    let cost = FindingCost::at_most(CostBasis::CpuTime, 100.0 * case.spinning);
    if case.without_cpu >= LATE {
        let words = format!(
            "{SLEEP}, so that those that they wait for get the CPU: threads had none {} of the time in which they could run. \
             End other programs, or run fewer threads",
            percent(100.0 * case.without_cpu)
        );
        let cost = FindingCost::unknown("threads that have a CPU each may not wait at all");
        return (FindingRemedy { words, ..FindingRemedy::default() }, cost);
    }
    if is_equal(case.spins) {
        let words = format!(
            "Threads have equal work, and wait often: give them larger parts between two waits (fewer barriers, nowait of OpenMP), \
             or run fewer threads; {SLEEP}"
        );
        return (FindingRemedy { words, ..FindingRemedy::default() }, cost);
    }
    let of_gcc = case.spins.functions.first().is_some_and(|code| code.name.module.starts_with("libgomp."));
    let is_tried = of_gcc && (!works_alone(case.spins) || case.teams.iter().any(is_unequal_team));
    let command = case.adaptive().filter(|_| is_tried);
    let words = match &command {
        Some(_) => format!("{STEAL}; {SLEEP}"),
        None => format!(
            "Give each thread as much work as the others (OpenMP: schedule(dynamic), more and smaller parts), or run no more \
             threads than there is work for; {SLEEP}"
        ),
    };
    let remedy = FindingRemedy {
        words,
        expect: command.as_ref().map(|_| ADAPTS.into()),
        commands: command.into_iter().collect(),
        ..FindingRemedy::default()
    };
    (remedy, cost)
}

/// What `numa run --loops adaptive` does.
pub(crate) const ADAPTS: &str = "begins loops with schedule(dynamic), guided and runtime with the parts of schedule(static), and evens out what is left";

/// What to do about loops whose iterations are unequal.
const STEAL: &str = "Let threads that are done take iterations of others, of their own part of the memory first. Where loops with \
     schedule(static) have the unequal work, write schedule(runtime) there";
/// What to do where threads take iterations as they go.
const DIVIDE: &str = "Threads take iterations as they go, so those left, or the chunks of the schedule, are few and large: make them smaller. \
     Where loops with schedule(static) have the unequal work, write schedule(runtime) there, and start it with 'numa run --loops adaptive'";

/// Starts a program with loops that begin with static parts.
pub(crate) fn adaptive_loops(command: &str, loops: OpenLoops) -> String {
    let variable = match loops {
        OpenLoops::Even | OpenLoops::Guided => "",
        // With a fixed order, they would stay as they are.
        OpenLoops::Fixed => "OMP_SCHEDULE=dynamic ",
    };
    format!("{variable}numa run --loops adaptive {command}")
}

/// Threads that sleep in the library of OpenMP because others of their team have more work.
pub(crate) const WAITING_TEAM: Rule = rule(
    "waiting-team",
    "threads of OpenMP that sleep until others of their team, with more work in the same loops, are done",
    |case| {
        // Threads that spin are told by what they do with the CPUs, and without a CPU nobody is late by their work.
        if case.spinning >= MUCH || case.without_cpu >= LATE {
            return None;
        }
        case.loops?;
        let command = case.adaptive();
        let team =
            case.teams.iter().filter(|team| is_unequal_team(team)).max_by_key(|team| team.lacking())?;
        let (share, all) = (team_share(team), team.members.iter().map(|member| member.worked).sum::<u64>());
        let most = team.members.first()?;
        let region = team.region.as_ref().map_or_else(String::new, |code| format!(", in {code}"));
        let says = format!(
            "{} threads of OpenMP wait {} of their time until others of their team are done{region}; thread {} has {} of the work",
            team.members.len(),
            percent(100.0 * share),
            most.thread,
            percent(100.0 * most.worked as f64 / all.max(1) as f64),
        );
        let remedy = FindingRemedy {
            words: if command.is_some() { STEAL } else { DIVIDE }.to_owned(),
            expect: command.as_ref().map(|_| ADAPTS.into()),
            commands: command.into_iter().collect(),
            ..FindingRemedy::default()
        };
        // Members that have more work in turns wait for longer than their sums say.
        let saved = team.waited.max(team.lacking()) as f64 / team.time.max(1) as f64;
        let cost = FindingCost::at_most(CostBasis::WallTime, 100.0 * saved);
        Some(evident(says, cost, remedy, ("teams.waited", 100.0 * share, percent(100.0 * share))))
    },
);

/// The part of the time of all members in which they wait for others, since these have more work. Looks at waits are few; the CPU
/// time of threads is exact.
fn team_share(team: &TeamTime) -> f64 {
    team.lacking() as f64 / team.time.max(1) as f64
}

/// Whether unequal work keeps members of a team waiting, and not what else they sleep for in their regions.
fn is_unequal_team(team: &TeamTime) -> bool {
    let waits = 2 * team.waited >= team.lacking() && 2 * team.elsewhere < team.waited;
    team.members.len() > 1 && team_share(team) >= MUCH && waits
}

/// Whether one thread works while the others wait.
fn works_alone(spins: &Spins) -> bool {
    spins.worker.is_some_and(|(_, share)| share >= ALONE)
}

/// Whether the threads that wait in loops have about as much work as each other, and none works while the others wait.
fn is_equal(spins: &Spins) -> bool {
    let worked = || spins.threads.iter().map(|thread| thread.worked);
    let (sum, most) = (worked().sum::<u64>(), worked().max().unwrap_or(0));
    let mean = sum as f64 / spins.threads.len().max(1) as f64;
    spins.threads.len() > 1 && most as f64 <= mean * (1.0 + UNEQUAL) && !works_alone(spins)
}

pub(crate) fn evident(
    says: String,
    cost: FindingCost,
    remedy: FindingRemedy,
    seen: (&str, f64, String),
) -> Draft {
    let (series, value, words) = seen;
    let evidence = FindingEvidence { series: series.to_owned(), value, says: words, course: Vec::new() };
    Draft::measured(FindingSubject::Program, says, cost, remedy).with([evidence]).certainty(Certainty::Likely)
}

/// The innermost functions of a chain, with how they were called.
fn functions(chain: &[CodeName]) -> String {
    let name = |code: &CodeName| code.in_script().or_else(|| code.function.clone());
    let names: Vec<String> = chain.iter().filter_map(name).take(FUNCTIONS).collect();
    match (names.as_slice(), chain.first()) {
        ([], Some(code)) => code.to_string(),
        (names, _) => names.join(" < "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules;
    use numakit_explain::CodeShare;
    use numakit_explain::spins::{SpinFunction, SpinningThread};
    use numakit_explain::teams::TeamMember;
    use numakit_explain::waits::LockHolder;

    fn code(function: &str) -> CodeName {
        CodeName { function: Some(function.to_owned()), module: "app".to_owned(), ..CodeName::default() }
    }

    fn lock(time: u64, worked: u64, threads: usize, looks: u64) -> LockTime {
        let chain = vec![code("add"), code("worker")];
        let holder = LockHolder {
            thread: 7,
            name: "w".to_owned(),
            share: 0.75,
            runs: true,
            chain: vec![code("grow")],
        };
        let (what, holders) = ("total_lock".to_owned(), vec![holder]);
        LockTime { what, is_gil: false, time, worked, threads, looks, chain, holders }
    }

    fn found(locks: &[LockTime], spins: &Spins) -> Vec<(&'static str, String)> {
        let threads = [SampledThread { pid: 1, tid: 9, name: "main".to_owned() }];
        let case = ThreadCase {
            locks,
            spins,
            spinning: spins.time as f64 / 1000.0,
            without_cpu: 0.0,
            threads: &threads,
            ranks: &[],
            teams: &[],
            loops: None,
        };
        rules::judge_threads(&case).into_iter().map(|finding| (finding.rule, finding.says)).collect()
    }

    #[test]
    fn a_lock_costs_time_if_several_threads_with_work_wait_for_it() {
        let none = Spins::default();
        let expected = "4 threads wait for a lock 75.0 % of the time in which they have work: total_lock, in add < worker; \
                        thread 7 (w) holds it for 75.0 % of that and runs, in grow";
        assert_eq!(found(&[lock(300, 100, 4, 50)], &none), [("contended-lock", expected.to_owned())]);
        // One thread, a wait that is seldom, and one that was hardly seen.
        for calm in [lock(300, 100, 1, 50), lock(10, 100, 4, 50), lock(300, 100, 4, 9)] {
            assert_eq!(found(&[calm], &none), []);
        }
    }

    #[test]
    fn threads_that_share_one_interpreter_are_told_to_be_processes() {
        let mut gil = LockTime { is_gil: true, ..lock(300, 100, 4, 50) };
        let place = CodeName {
            module: "app.py".to_owned(),
            file: Some("/srv/app.py".to_owned()),
            line: Some(3),
            ..code("work")
        };
        gil.chain = vec![place.clone(), code("start")];
        gil.holders[0].chain = vec![place];
        let expected = "3.0 of 4 threads wait on average for the GIL, which lets one thread of the process at a time run Python: \
                        in work (app.py:3) < start; thread 7 (w) holds it for 75.0 % of that and runs, in work (app.py:3)";
        let none = Spins::default();
        assert_eq!(found(&[gil.clone()], &none), [("contended-gil", expected.to_owned())]);
        gil.time = 10;
        assert_eq!(found(&[gil], &none), []);
    }

    #[test]
    fn threads_that_spin_are_told_with_what_the_others_do() {
        let spins = |time| Spins {
            time,
            functions: vec![SpinFunction { name: code("wait_for_all"), time }],
            threads: vec![SpinningThread { thread: 1, spun: time, worked: 5 }],
            meanwhile: vec![CodeShare { name: code("serial"), share: 0.9 }],
            worker: Some((0, 0.9)),
        };
        let expected = "One thread spends 40.0 % of the CPU time in loops that wait for other threads in wait_for_all [app]; \
                        meanwhile others are in serial [app] (90.0 % of their time, most by thread 9 (main))";
        assert_eq!(found(&[], &spins(400)), [("spinning", expected.to_owned())]);
        assert_eq!(found(&[], &spins(150)), []);
    }

    /// Two threads of a team in 800 ns of their time, of which they waited for this long within regions.
    fn team(worked: [u64; 2], waited: u64) -> TeamTime {
        let member = |(thread, worked)| TeamMember { thread, worked, waited };
        let region = Some(CodeName { module: "app".to_owned(), ..code("main._omp_fn.0") });
        let members = (7..).zip(worked).map(member).collect();
        TeamTime { pid: 7, members, time: 800, waited, elsewhere: 0, region }
    }

    #[test]
    fn a_team_that_sleeps_for_one_with_more_work_gets_adaptive_loops() {
        let (none, guided) = (Spins::default(), Some(OpenLoops::Guided));
        let judged = |team: TeamTime, without_cpu, loops: Option<OpenLoops>| {
            let teams = [team];
            let case = ThreadCase {
                locks: &[],
                spins: &none,
                spinning: 0.0,
                without_cpu,
                threads: &[],
                ranks: &[],
                teams: &teams,
                loops: loops.map(|loops| ("./app", loops)),
            };
            rules::judge_threads(&case)
                .pop()
                .map(|found| (found.rule, found.says, found.cost.words(), found.remedy.commands))
        };
        let says = "2 threads of OpenMP wait 25.0 % of their time until others of their team are done, in main._omp_fn.0 [app]; thread 7 has \
                    75.0 % of the work";
        let (rule, said, cost, commands) = judged(team([300, 100], 210), 0.0, guided).unwrap();
        assert_eq!(
            (rule, said.as_str(), cost.as_str()),
            ("waiting-team", says, "at most 26.2 % of the time")
        );
        assert_eq!(commands, ["numa run --loops adaptive ./app"]);
        let fixed = judged(team([300, 100], 200), 0.0, Some(OpenLoops::Fixed)).unwrap();
        assert_eq!(fixed.3, ["OMP_SCHEDULE=dynamic numa run --loops adaptive ./app"]);
        let even = judged(team([300, 100], 200), 0.0, Some(OpenLoops::Even)).unwrap();
        assert_eq!(
            (even.0, even.3.len()),
            ("waiting-team", 0),
            "their iterations are too large to be evened out"
        );
        // Equal work, waits outside of regions, waits for files in them, CPUs of others, and loops that are static.
        let calm = [
            judged(team([300, 290], 200), 0.0, guided),
            judged(team([300, 100], 90), 0.0, guided),
            judged(TeamTime { elsewhere: 150, ..team([300, 100], 200) }, 0.0, guided),
            judged(team([300, 100], 200), 0.3, guided),
            judged(team([300, 100], 200), 0.0, None),
        ];
        assert!(calm.iter().all(Option::is_none), "{calm:?}");
    }

    #[test]
    fn what_to_do_about_spinning_follows_from_why_others_are_late() {
        let judged =
            |without_cpu, worked: [u64; 2], worker, loops: Option<(&str, OpenLoops)>, teams: &[TeamTime]| {
                let threads = [
                    SpinningThread { thread: 0, spun: 300, worked: worked[0] },
                    SpinningThread { thread: 1, spun: 100, worked: worked[1] },
                ];
                let name =
                    CodeName { module: "libgomp.so.1.0.0".to_owned(), ..code("gomp_team_barrier_wait_end") };
                let functions = vec![SpinFunction { name, time: 400 }];
                let spins =
                    Spins { time: 400, functions, threads: threads.into(), worker, ..Spins::default() };
                let case = ThreadCase {
                    locks: &[],
                    spins: &spins,
                    spinning: 0.4,
                    without_cpu,
                    threads: &[],
                    ranks: &[],
                    teams,
                    loops,
                };
                let found = rules::judge_threads(&case).remove(0);
                (found.remedy, found.cost)
            };
        let of = |without_cpu, worked, worker| {
            let (remedy, cost) = judged(without_cpu, worked, worker, None, &[]);
            (remedy.words, cost)
        };
        // Loops that can begin with static parts, unless the work is equal, or one thread does it.
        let guided = Some(("./app", OpenLoops::Guided));
        let tried = |worked, worker| judged(0.0, worked, worker, guided, &[]).0.commands;
        assert_eq!(tried([100, 300], None), ["numa run --loops adaptive ./app"]);
        assert_eq!(tried([200, 200], None), [""; 0]);
        // Threads that take iterations as they go do so already.
        let even = judged(0.0, [100, 300], None, Some(("./app", OpenLoops::Even)), &[]).0;
        assert!(
            even.commands.is_empty() && even.words.starts_with("Give each thread as much work"),
            "{even:?}"
        );
        assert_eq!(tried([200, 200], Some((0, 0.9))), [""; 0]);
        // Of two threads, the one with more work always works alone in the end.
        let of_team = judged(0.0, [100, 300], Some((0, 1.0)), guided, &[team([300, 100], 200)]);
        assert_eq!(of_team.0.commands, ["numa run --loops adaptive ./app"]);
        let starts = |(words, _): &(String, FindingCost), begin: &str| words.starts_with(begin);
        assert!(starts(&of(0.0, [100, 300], None), "Give each thread as much work"));
        assert!(starts(&of(0.0, [200, 200], Some((0, 0.9))), "Give each thread as much work"));
        assert!(starts(&of(0.0, [200, 210], Some((0, 0.5))), "Threads have equal work"));
        // The work of threads without a CPU is not known to be unequal.
        let starved = of(0.4, [100, 300], None);
        assert!(starts(&starved, "OMP_WAIT_POLICY=passive") && starved.0.contains("40.0 %"), "{starved:?}");
        assert!(matches!(starved.1, FindingCost::Unknown { .. }));
    }
}
