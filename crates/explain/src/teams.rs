//! Teams of gcc's OpenMP: how much each member works in parallel regions, and how long members wait in libgomp for the others.

use crate::account::ThreadTimes;
use crate::call_tree::NO_CHAIN;
use crate::chain_names::ChainNames;
use crate::code::CodeName;
use crate::observation::Observation;
use crate::report::SampledThread;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// The begin of the name of gcc's library.
const LIBRARY: &str = "libgomp.";
/// What gcc adds to the name of a function to name the body of a parallel region in it.
const BODY: &str = "._omp_fn.";
/// A thread that works outside of regions for this part of its samples has a team of its own, or none.
const OUTSIDE: f64 = 0.1;
/// With fewer samples of a thread, the part of its work within regions is chance.
const FEW: usize = 10;

/// Sleep of a thread in libgomp until other threads are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TeamSleep {
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// How long, in ns.
    pub time: u64,
}

/// A thread of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamMember {
    /// The thread, by the kernel's number.
    pub thread: u32,
    /// CPU time in ns in which it worked in parallel regions.
    pub worked: u64,
    /// Time in ns in which it waited in libgomp, asleep or in loops.
    pub waited: u64,
}

/// The team of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamTime {
    /// The process.
    pub pid: u32,
    /// Its threads, that with most work first.
    pub members: Vec<TeamMember>,
    /// The time of all members, in ns.
    pub time: u64,
    /// The time in ns in which members waited in libgomp while a parallel region ran: not for work, which they do while the
    /// program is outside of regions.
    pub waited: u64,
    /// The time in ns in which members other than the first thread slept elsewhere.
    pub elsewhere: u64,
    /// The parallel region in which most of the work was, if it has a name.
    pub region: Option<CodeName>,
}

impl TeamTime {
    /// The time in ns by which members with less work than the one with most would have to wait for it.
    pub fn lacking(&self) -> u64 {
        let most = self.members.iter().map(|member| member.worked).max().unwrap_or(0);
        self.members.iter().map(|member| most - member.worked).sum()
    }
}

/// What is known of the threads of all processes.
pub(crate) struct TeamScene<'a> {
    pub(crate) observations: &'a [Observation],
    /// The threads and processes that observations name by their places.
    pub(crate) threads: &'a [SampledThread],
    pub(crate) times: &'a HashMap<(u32, u32), ThreadTimes>,
    pub(crate) slept: &'a [TeamSleep],
    /// Whether a sample is in a loop that only waits.
    pub(crate) spins: &'a dyn Fn(&Observation) -> bool,
}

/// Samples of a thread, by what they show.
#[derive(Debug, Default)]
struct MemberSamples {
    inside: u64,
    outside: u64,
    spun: u64,
    all: u64,
    seen: usize,
    regions: BTreeMap<CodeName, u64>,
}

/// Where a call chain is.
#[derive(Debug, Clone, Default)]
struct ChainPlace {
    /// In libgomp itself.
    in_library: bool,
    /// In a parallel region, or in libgomp; `None` where nothing is known of the callers.
    inside: Option<bool>,
    region: Option<CodeName>,
}

/// The teams of processes whose threads wait in libgomp.
pub(crate) fn find(scene: &TeamScene<'_>, names: &mut ChainNames<'_>) -> Vec<TeamTime> {
    // Most programs wait in neither way: none of their call chains needs names.
    if scene.slept.is_empty() && !scene.observations.iter().any(scene.spins) {
        return Vec::new();
    }
    let mut places: HashMap<u32, ChainPlace> = HashMap::new();
    let mut samples: BTreeMap<(u32, u32), MemberSamples> = BTreeMap::new();
    for at in scene.observations {
        let Some(thread) = scene.threads.get(at.thread as usize) else { continue };
        let place = places.entry(at.chain).or_insert_with(|| place_of(at.chain, names));
        samples.entry((thread.pid, thread.tid)).or_default().add(at, place, (scene.spins)(at));
    }
    let mut processes: Vec<u32> = scene.slept.iter().map(|sleep| sleep.pid).collect();
    processes.extend(samples.iter().filter(|(_, of)| of.spun > 0).map(|((pid, _), _)| *pid));
    processes.sort_unstable();
    processes.dedup();
    processes.into_iter().filter_map(|pid| team(pid, scene, &samples)).collect()
}

impl MemberSamples {
    fn add(&mut self, at: &Observation, place: &ChainPlace, spins: bool) {
        self.all += at.weight;
        if spins && place.in_library {
            self.spun += at.weight;
            return;
        }
        match place.inside {
            Some(true) => self.inside += at.weight,
            Some(false) => self.outside += at.weight,
            None => return,
        }
        self.seen += 1;
        if let Some(region) = &place.region {
            *self.regions.entry(region.clone()).or_default() += at.weight;
        }
    }

    /// The part of its work that was within regions; `None` if too few samples tell it.
    fn inside(&self) -> Option<f64> {
        let known = self.inside + self.outside;
        (self.seen >= FEW).then(|| self.inside as f64 / known.max(1) as f64)
    }

    /// The CPU time in loops that wait, of a thread that ran for this long in user mode.
    fn spun_of(&self, user: u64) -> u64 {
        (user as f64 * self.spun as f64 / self.all.max(1) as f64) as u64
    }
}

fn place_of(chain: u32, names: &mut ChainNames<'_>) -> ChainPlace {
    if chain == NO_CHAIN {
        return ChainPlace::default();
    }
    let chain = names.of(chain);
    let is_library = |code: &CodeName| code.module.starts_with(LIBRARY);
    let is_body = |code: &&CodeName| code.function.as_deref().is_some_and(|name| name.contains(BODY));
    let body = chain.iter().find(is_body);
    let is_inside = body.is_some() || chain.iter().any(is_library);
    // A chain of one function does not tell who called it.
    let inside = (is_inside || chain.len() > 1).then_some(is_inside);
    let region = body.map(|code| CodeName { file: None, line: None, ..code.clone() });
    ChainPlace { in_library: chain.first().is_some_and(is_library), inside, region }
}

/// The team of a process; `None` if it has none, or more than one, or where samples do not tell what is in regions.
fn team(pid: u32, scene: &TeamScene<'_>, samples: &BTreeMap<(u32, u32), MemberSamples>) -> Option<TeamTime> {
    let none = MemberSamples::default();
    let mut slept: BTreeMap<u32, u64> = BTreeMap::new();
    for sleep in scene.slept.iter().filter(|sleep| sleep.pid == pid) {
        *slept.entry(sleep.tid).or_default() += sleep.time;
    }
    let (mut team, mut serial, mut regions) =
        (TeamTime { pid, ..TeamTime::default() }, None, BTreeMap::new());
    let mut waited = 0;
    for ((_, tid), times) in scene.times.iter().filter(|((process, _), _)| *process == pid) {
        let of = samples.get(&(pid, *tid)).unwrap_or(&none);
        let asleep = slept.get(tid).copied().unwrap_or(0).min(times.asleep);
        let spun = of.spun_of(times.user);
        if asleep + spun == 0 && of.inside == 0 {
            continue;
        }
        let ran = (times.user + times.kernel).saturating_sub(spun);
        let is_first = *tid == pid;
        let inside = match of.inside() {
            Some(inside) if !is_first && inside < 1.0 - OUTSIDE => return None,
            // One that hardly ran was always in its team: only the first thread is elsewhere.
            None if !is_first => 1.0,
            inside => inside?,
        };
        let worked = (ran as f64 * inside) as u64;
        let elsewhere = times.asleep - asleep;
        match is_first {
            true => serial = Some(ran - worked + elsewhere),
            false => team.elsewhere += elsewhere,
        }
        team.members.push(TeamMember { thread: *tid, worked, waited: asleep + spun });
        team.time += times.total();
        waited += asleep + spun;
        of.regions.iter().for_each(|(name, time)| *regions.entry(name.clone()).or_default() += *time);
    }
    let idle = serial? * (team.members.len() as u64).checked_sub(1).filter(|others| *others > 0)?;
    team.waited = waited.saturating_sub(idle);
    team.members.sort_by_key(|member| (Reverse(member.worked), member.thread));
    let most = regions.into_iter().max_by_key(|(_, time): &(CodeName, u64)| *time);
    Some(TeamTime { region: most.map(|(name, _)| name), ..team })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Waited;
    use crate::call_tree::CallTree;
    use crate::code::CodeNames;

    const MS: u64 = 1_000_000;
    /// Addresses of functions, far enough from each other for calls behind them.
    const ADD_UP: u64 = 0x1000;
    const BODY_OF_MAIN: u64 = 0x2000;
    const LIBGOMP: u64 = 0x3000;
    const MAIN: u64 = 0x4000;

    struct Names;

    impl CodeNames for Names {
        fn name(&mut self, _: u32, address: u64) -> CodeName {
            let (function, module) = match (address + 1) & !0xff {
                ADD_UP => (Some("add_up"), "app"),
                BODY_OF_MAIN => (Some("main._omp_fn.0"), "app"),
                MAIN => (Some("main"), "app"),
                // Debian's has no names.
                _ => (None, "libgomp.so.1.0.0"),
            };
            CodeName {
                function: function.map(str::to_owned),
                module: module.to_owned(),
                ..CodeName::default()
            }
        }
    }

    /// What threads 7 (the first), 8 and so on of process 7 do, in milliseconds: work in regions, outside of them, spin in libgomp,
    /// sleep in libgomp, and sleep elsewhere.
    fn found(threads: &[[u64; 5]], has_chains: bool) -> Vec<TeamTime> {
        let mut calls = CallTree::default();
        let chains = [&[ADD_UP, BODY_OF_MAIN, LIBGOMP, MAIN][..], &[ADD_UP, MAIN], &[LIBGOMP, LIBGOMP, MAIN]];
        let chains = chains.map(|chain| if has_chains { calls.number(0, chain) } else { NO_CHAIN });
        let (mut observations, mut sampled, mut times, mut slept) =
            (Vec::new(), Vec::new(), HashMap::new(), Vec::new());
        for (thread, parts) in (0..).zip(threads) {
            let tid = 7 + thread;
            sampled.push(SampledThread { pid: 7, tid, name: "app".to_owned() });
            for (nth, chain) in chains.into_iter().enumerate() {
                let at = |time: u64| Observation {
                    thread,
                    process: 0,
                    time: time * MS,
                    weight: 5 * MS,
                    cpu_node: None,
                    instruction: nth as u64,
                    waited: Waited::Computing,
                    chain,
                };
                observations.extend((0..parts[nth] / 5).map(at));
            }
            let [inside, outside, spun, in_team, elsewhere] = parts.map(|part| part * MS);
            let (user, asleep) = (inside + outside + spun, in_team + elsewhere);
            times.insert((7, tid), ThreadTimes { user, asleep, ..ThreadTimes::default() });
            if in_team > 0 {
                slept.push(TeamSleep { pid: 7, tid, time: in_team });
            }
        }
        let scene = TeamScene {
            observations: &observations,
            threads: &sampled,
            times: &times,
            slept: &slept,
            spins: &|at| at.instruction == 2,
        };
        find(&scene, &mut ChainNames::new(&calls, &mut Names))
    }

    fn only(threads: &[[u64; 5]]) -> TeamTime {
        let found = found(threads, true);
        assert_eq!(found.len(), 1, "{found:?}");
        found.into_iter().next().unwrap()
    }

    #[test]
    fn members_with_less_work_wait_for_the_one_with_most() {
        let team = only(&[[100, 0, 0, 300, 0], [400, 0, 0, 0, 0]]);
        let member = |thread, worked, waited| TeamMember { thread, worked: worked * MS, waited: waited * MS };
        assert_eq!(team.members, [member(8, 400, 0), member(7, 100, 300)]);
        assert_eq!((team.waited, team.lacking(), team.time), (300 * MS, 300 * MS, 800 * MS));
        assert_eq!(team.region.unwrap().function.as_deref(), Some("main._omp_fn.0"));
        // In loops, or asleep: it is the same.
        let spun = only(&[[100, 0, 300, 0, 0], [400, 0, 0, 0, 0]]);
        assert_eq!((spun.waited, spun.members), (300 * MS, vec![member(8, 400, 0), member(7, 100, 300)]));
    }

    #[test]
    fn waits_for_work_are_none_for_others() {
        // The first thread works alone, or waits for files, and the team for it.
        let serial = only(&[[200, 300, 0, 0, 0], [200, 0, 0, 300, 0], [200, 0, 0, 300, 0]]);
        assert_eq!((serial.waited, serial.lacking()), (0, 0));
        let idle = only(&[[200, 0, 0, 0, 300], [200, 0, 0, 300, 0]]);
        assert_eq!((idle.waited, idle.lacking()), (0, 0));
        // What others sleep for in a region is known.
        let reads = only(&[[100, 0, 0, 300, 0], [100, 0, 0, 0, 300]]);
        assert_eq!((reads.elsewhere, reads.lacking()), (300 * MS, 0));
    }

    #[test]
    fn threads_without_a_team_and_what_samples_do_not_tell_are_none() {
        assert_eq!(found(&[[0, 400, 0, 0, 0], [0, 400, 0, 0, 0]], true), [], "no wait in libgomp");
        assert_eq!(found(&[[100, 0, 0, 300, 0]], true), [], "one thread");
        assert_eq!(found(&[[100, 0, 0, 300, 0], [400, 0, 0, 0, 0]], false), [], "no call chains");
        assert_eq!(found(&[[100, 200, 0, 100, 0], [200, 200, 0, 0, 0]], true), [], "two first threads");
    }
}
