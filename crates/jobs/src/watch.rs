//! Rounds through all processes, added up by job.

use crate::group::GroupMemory;
use crate::job::{Job, JobTime, guilty_first};
use crate::judged::JobJudge;
use crate::name::JobNames;
use crate::samples::JobSamples;
use numakit_model::{CpuSet, Fix, Topology, Unavailable};
use numakit_processes::{MemorySource, ProcessSample, Survey, WalkCandidate};
use numakit_sys::SysRoot;
use numakit_sys::clock::{self, Alarm};
use numakit_sys::proc::TaskDir;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Jobs that are shown one by one; all others are one.
pub const SHOWN: usize = 50;
/// Jobs whose memory is read by node.
pub const DETAILED: usize = 10;
/// The name of all jobs that are not shown.
pub const OTHER: &str = "other";

/// Jobs that are known at most; what is more belongs to [`OTHER`].
const MAX_KNOWN: usize = 5_000;
/// A job without processes is forgotten after this number of rounds: its last counts are scraped before.
const RETIRED: u32 = 6;
/// The control groups of a process are read again after this number of rounds: it may have been moved.
const RENAMED: u64 = 6;
/// A job that is shown stays unless another one has this many times its CPU time, so that series do not come and go.
const STAYS: f64 = 1.5;
/// How much of its rank a job keeps from round to round.
const DECAY: f64 = 0.8;

/// Time between two rounds in ns, and the part of the time that rounds may take.
const PAUSE: u64 = 10_000_000_000;
const SHARE: u64 = 2000;
/// The longest pause, in ns: a rate over five minutes has two rounds.
const MAX_PAUSE: u64 = 120_000_000_000;
/// Time for reading the memory of processes, in ns. Rounds that do are rare, so that their time is as small a part.
const WALK: u64 = 50_000_000;

/// The jobs after a round.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobsNow {
    /// The kernel's numbers of the nodes, in the order of values by node.
    pub nodes: Vec<u32>,
    /// Those that are shown: who is guilty first.
    pub jobs: Vec<Job>,
    /// All others together.
    pub other: Job,
    /// Number of jobs that are not shown.
    pub hidden: usize,
    /// Time since the round before, in ns.
    pub span: u64,
    /// When the round ended, in ns of the monotonic clock; 0 before the first one.
    pub ended: u64,
    /// Samples that were lost since the begin, for which the others stand; `None` without samples.
    pub samples_lost: Option<u64>,
    /// What cannot be told of jobs.
    pub absent: Vec<Unavailable>,
}

impl JobsNow {
    /// How old the round is, in ns; `None` before the first one.
    pub fn age(&self) -> Option<u64> {
        (self.ended > 0).then(|| clock::monotonic().saturating_sub(self.ended))
    }
}

/// A job that is followed.
#[derive(Debug, Default)]
struct Followed {
    job: Job,
    score: f64,
    stays: bool,
    empty: u32,
    /// Control groups of its process that ran most.
    groups: String,
    lead: (u64, u32),
    pages: Vec<u64>,
    /// Bytes of processes whose memory was read.
    read: u64,
    /// What it had waited, and where its time went, after the round before.
    before: (u64, JobTime),
}

/// Memory by node of jobs, by their names.
type MemoryOfJobs = HashMap<Arc<str>, Vec<u64>>;

/// A process with its job.
#[derive(Debug)]
struct Member {
    start: u64,
    job: Arc<str>,
    groups: String,
    named: u64,
    /// Its memory by node when it was last read, and in which round that was.
    memory: Option<(Vec<u64>, u64)>,
}

/// Looks at all processes.
#[derive(Debug)]
pub struct JobWatch {
    root: SysRoot,
    nodes: Vec<(u32, CpuSet)>,
    mounted: String,
    survey: Survey,
    names: JobNames,
    members: HashMap<u32, Member>,
    jobs: BTreeMap<Arc<str>, Followed>,
    other: Job,
    samples: Option<JobSamples>,
    judge: JobJudge,
    absent: Vec<Unavailable>,
    /// Jobs that are shown.
    shown: usize,
    /// The jobs of processes that ended since the round before, for their last samples.
    ended: HashMap<u32, Arc<str>>,
    rounds: u64,
    last: u64,
    lost: u64,
    /// Whether it may read the memory of all processes, and had time for that once.
    reads_memory: bool,
}

impl JobWatch {
    /// The jobs of a machine, with their samples or why there are none.
    pub fn new(
        root: &SysRoot,
        topology: &Topology,
        samples: Result<JobSamples, Unavailable>,
    ) -> Result<Self, Unavailable> {
        let survey = Survey::new(root, topology, None)?;
        let access = survey.access();
        let (samples, why) = match samples {
            Ok(samples) => (Some(samples), None),
            Err(why) => (None, Some(why)),
        };
        let mut absent: Vec<Unavailable> = why.into_iter().collect();
        if !access.is_capable() {
            let fix = Fix::CommandLine(access.fix());
            absent.push(Unavailable::new("memory by node of other users", "this user may not read it", fix));
        }
        let nodes = topology.nodes.iter().map(|node| (node.os_index, node.cpus.clone())).collect();
        Ok(Self {
            root: root.clone(),
            nodes,
            mounted: TaskDir::own(root).text("mounts").unwrap_or_default(),
            survey,
            names: JobNames::of(root),
            members: HashMap::new(),
            jobs: BTreeMap::new(),
            other: Job { name: OTHER.to_owned(), cpu_on: vec![0; topology.nodes.len()], ..Job::default() },
            judge: JobJudge::new(topology, samples.is_some()),
            samples,
            absent,
            shown: SHOWN,
            ended: HashMap::new(),
            rounds: 0,
            last: clock::monotonic(),
            lost: 0,
            reads_memory: false,
        })
    }

    /// Whether samples tell where the time of jobs goes.
    pub fn has_samples(&self) -> bool {
        self.samples.is_some()
    }

    /// Shows at most this number of jobs; all others are [`OTHER`].
    pub fn show(&mut self, shown: usize) {
        self.shown = shown.min(SHOWN);
    }

    /// Scans all processes, and reads the memory of those of the largest jobs while there is time.
    pub fn round(&mut self, time: &dyn Fn() -> bool) -> JobsNow {
        self.rounds += 1;
        self.reads_memory = self.reads_memory || time() && self.survey.access().is_capable();
        if self.rounds.is_multiple_of(RENAMED) {
            self.names.forget();
        }
        let Self { root, names, members, ended, jobs, survey, rounds, .. } = self;
        let mut naming = Naming { root, names, members, ended, round: *rounds };
        let mut choose = |candidates: &[WalkCandidate], user: &dyn Fn(u32) -> String| {
            naming.name_all(candidates, user);
            let mut wanted = detailed(candidates, naming.members, jobs);
            // What was read since every other one was waits until it is its turn again.
            let read =
                |pid: &u32| naming.members.get(pid).and_then(|member| member.memory.as_ref()).map(|m| m.1);
            let oldest = wanted.iter().map(read).min().flatten();
            if wanted.iter().any(|pid| read(pid) != oldest) {
                wanted.retain(|pid| read(pid) == oldest);
            }
            wanted
        };
        let samples = survey.measure_chosen(&mut choose, &|process| (process.ran, process.resident), time);
        self.begin();
        samples.iter().for_each(|sample| self.add(sample));
        self.add_samples();
        self.finish()
    }

    fn begin(&mut self) {
        for followed in self.jobs.values_mut() {
            let Followed { job, lead, pages, read, .. } = followed;
            (job.processes, job.resident, job.ran) = (0, 0, 0);
            (*lead, *read) = ((0, 0), 0);
            pages.clear();
        }
        (self.other.processes, self.other.resident, self.other.ran) = (0, 0, 0);
    }

    /// The job with this name, unless too many are known.
    fn followed(&mut self, name: &Arc<str>) -> Option<&mut Followed> {
        if !self.jobs.contains_key(name) {
            if self.jobs.len() >= MAX_KNOWN {
                return None;
            }
            let cpu_on = vec![0; self.nodes.len()];
            let time = self.samples.as_ref().map(|_| JobTime::default());
            let job = Job { name: name.to_string(), cpu_on, time, ..Job::default() };
            self.jobs.insert(Arc::clone(name), Followed { job, ..Followed::default() });
        }
        self.jobs.get_mut(name)
    }

    fn add(&mut self, sample: &ProcessSample) {
        let Some(member) = self.members.get_mut(&sample.pid) else { return };
        if let MemorySource::Memory(memory) = &sample.found {
            let by_node = (0..self.nodes.len()).map(|at| memory.on(at)).collect();
            member.memory = Some((by_node, self.rounds));
        }
        let (name, groups, memory) = (Arc::clone(&member.job), member.groups.clone(), member.memory.clone());
        let Some(followed) = self.followed(&name) else {
            add_counts(&mut self.other, sample);
            return;
        };
        followed.empty = 0;
        add_counts(&mut followed.job, sample);
        if (sample.ran, sample.pid) >= followed.lead {
            (followed.lead, followed.groups) = ((sample.ran, sample.pid), groups);
        }
        if let Some((by_node, _)) = memory {
            followed.read = followed.read.saturating_add(sample.resident);
            followed.pages.resize(by_node.len(), 0);
            for (sum, bytes) in followed.pages.iter_mut().zip(by_node) {
                *sum = sum.saturating_add(bytes);
            }
        }
    }

    fn add_samples(&mut self) {
        let Some(samples) = &self.samples else { return };
        let (all, lost) = samples.take();
        self.lost += lost;
        self.other.time.get_or_insert_default();
        for (pid, totals) in all {
            let member = self.members.get(&pid).map(|member| Arc::clone(&member.job));
            let has_ended = member.is_none();
            let job = match member
                .or_else(|| self.ended.get(&pid).cloned())
                .and_then(|name| self.followed(&name))
            {
                Some(followed) => &mut followed.job,
                // It started and ended between two rounds.
                None => &mut self.other,
            };
            job.time.get_or_insert_default().add(&totals);
            // Nobody has read its CPU time at the end. Without it, more time would be sampled than there was.
            let ran = if has_ended { totals.time.all() } else { 0 };
            (job.cpu, job.ran) = (job.cpu.saturating_add(ran), job.ran.saturating_add(ran));
        }
    }

    /// Ranks, judges and forgets jobs.
    fn finish(&mut self) -> JobsNow {
        let now = clock::monotonic();
        let span = now.saturating_sub(self.last);
        self.last = now;
        for followed in self.jobs.values_mut() {
            followed.empty += u32::from(followed.job.processes == 0);
            followed.score = followed.score * DECAY + followed.job.ran as f64;
        }
        self.jobs.retain(|_, followed| followed.empty < RETIRED);
        let (names, groups) = self.ranked();
        let shown: HashSet<&Arc<str>> = names.iter().take(self.shown).collect();
        let detailed: HashSet<&Arc<str>> = names.iter().take(DETAILED).collect();
        self.judge.keep(|name| shown.iter().any(|shown| ***shown == *name));
        let mut jobs = Vec::new();
        let online = online(&self.root);
        let Self { jobs: all, other, judge, root, nodes, .. } = self;
        for (name, followed) in all.iter_mut() {
            let is_shown = shown.contains(name);
            // Among jobs that did nothing yet, the order means nothing.
            followed.stays = is_shown && followed.score > 0.0;
            let counted = (followed.job.waited, followed.job.time.unwrap_or_default());
            let before = std::mem::replace(&mut followed.before, counted);
            if !is_shown {
                hide(other, &followed.job, before);
                continue;
            }
            let has_ended = followed.empty > 0;
            let of_pages = || followed.whole_memory().filter(|_| detailed.contains(name));
            let memory = groups.get(name).cloned().or_else(of_pages);
            let kept = || followed.job.memory_on.take().filter(|_| has_ended && detailed.contains(name));
            followed.job.memory_on = memory.or_else(kept);
            let mask = mask_nodes(root, followed.lead.1, nodes, online.as_ref());
            followed.job.mask_nodes = mask.or(followed.job.mask_nodes);
            judge.judge(&mut followed.job, now);
            jobs.push(followed.job.clone());
        }
        jobs.sort_by(guilty_first);
        let mut absent = self.absent.clone();
        let is_detailed = |job: &Job| detailed.iter().any(|name| ***name == *job.name);
        let is_unread = |job: &&Job| is_detailed(job) && job.resident > 0 && job.memory_on.is_none();
        let unread = jobs.iter().filter(is_unread).count();
        absent.extend((unread > 0 && self.reads_memory).then(|| unread_memory(unread)));
        JobsNow {
            nodes: self.nodes.iter().map(|(node, _)| *node).collect(),
            hidden: self.jobs.len() - jobs.len(),
            jobs,
            other: self.other.clone(),
            span,
            ended: now,
            samples_lost: self.samples.is_some().then_some(self.lost),
            absent,
        }
    }

    /// The names of jobs, the largest first, and the memory of the first ones as their control groups tell it.
    fn ranked(&self) -> (Vec<Arc<str>>, MemoryOfJobs) {
        let mut ranked: Vec<(&Arc<str>, &Followed)> = self.jobs.iter().collect();
        ranked
            .sort_by(|a, b| b.1.rank().total_cmp(&a.1.rank()).then(b.1.job.resident.cmp(&a.1.job.resident)));
        let numbers: Vec<u32> = self.nodes.iter().map(|(node, _)| *node).collect();
        let memory = |(name, followed): &(&Arc<str>, &Followed)| {
            let memory = GroupMemory::read(&self.root, &followed.groups, &self.mounted, &numbers)?;
            Some((Arc::clone(name), memory.0))
        };
        let groups = ranked.iter().take(DETAILED).filter_map(memory).collect();
        (ranked.into_iter().map(|(name, _)| Arc::clone(name)).collect(), groups)
    }
}

impl Followed {
    fn rank(&self) -> f64 {
        if self.stays { STAYS * self.score } else { self.score }
    }

    /// Its memory by node, if almost all of it was read.
    fn whole_memory(&self) -> Option<Vec<u64>> {
        let is_whole = self.read > 0 && self.read >= self.job.resident / 10 * 9;
        is_whole.then(|| self.pages.clone())
    }
}

/// Names processes.
struct Naming<'a> {
    root: &'a SysRoot,
    names: &'a mut JobNames,
    members: &'a mut HashMap<u32, Member>,
    ended: &'a mut HashMap<u32, Arc<str>>,
    round: u64,
}

impl Naming<'_> {
    fn name_all(&mut self, candidates: &[WalkCandidate], user: &dyn Fn(u32) -> String) {
        let running: HashMap<u32, u64> = candidates.iter().map(|c| (c.pid, c.start)).collect();
        let gone = self.members.extract_if(|pid, member| running.get(pid) != Some(&member.start));
        *self.ended = gone.map(|(pid, member)| (pid, member.job)).collect();
        for &WalkCandidate { pid, start, .. } in candidates {
            let known = self.members.get(&pid);
            if known.is_some_and(|member| self.round < member.named + RENAMED) {
                continue;
            }
            let groups = TaskDir::of(self.root, pid).text("cgroup").unwrap_or_default();
            // It ended after the scan.
            if groups.is_empty() && !TaskDir::of(self.root, pid).exists() {
                continue;
            }
            let job = self.names.name(&groups, &user(pid)).into();
            let memory = self.members.remove(&pid).and_then(|member| member.memory);
            self.members.insert(pid, Member { start, job, groups, named: self.round, memory });
        }
    }
}

/// The processes of the jobs that have most CPU time, and then most memory.
fn detailed(
    candidates: &[WalkCandidate],
    members: &HashMap<u32, Member>,
    jobs: &BTreeMap<Arc<str>, Followed>,
) -> HashSet<u32> {
    let mut sums: HashMap<&Arc<str>, (f64, u64)> = HashMap::new();
    for candidate in candidates {
        let Some(member) = members.get(&candidate.pid) else { continue };
        let sum = sums.entry(&member.job).or_default();
        *sum = (sum.0 + candidate.ran as f64, sum.1.saturating_add(candidate.resident));
    }
    for (name, sum) in &mut sums {
        sum.0 += jobs.get(*name).map_or(0.0, |followed| followed.score * DECAY);
    }
    let mut ranked: Vec<_> = sums.into_iter().collect();
    ranked.sort_by(|a, b| b.1.0.total_cmp(&a.1.0).then(b.1.1.cmp(&a.1.1)));
    let chosen: HashSet<&Arc<str>> = ranked.iter().take(DETAILED).map(|(name, _)| *name).collect();
    let is_chosen = |pid: &u32| members.get(pid).is_some_and(|member| chosen.contains(&member.job));
    candidates.iter().map(|candidate| candidate.pid).filter(is_chosen).collect()
}

fn add_counts(job: &mut Job, sample: &ProcessSample) {
    job.processes += 1;
    job.cpu = job.cpu.saturating_add(sample.ran);
    job.ran = job.ran.saturating_add(sample.ran);
    job.waited = job.waited.saturating_add(sample.waited);
    job.resident = job.resident.saturating_add(sample.resident);
    for (sum, ran) in job.cpu_on.iter_mut().zip(&sample.ran_on) {
        *sum = sum.saturating_add(*ran);
    }
}

/// The memory by node of this number of jobs is not known.
fn unread_memory(jobs: usize) -> Unavailable {
    let seen = format!(
        "of {jobs} of the {DETAILED} largest, it could not be read in the time that reading may take"
    );
    let fix = Fix::CommandLine("take a longer look with 'numa jobs --interval 10s'".to_owned());
    Unavailable::new("memory by node of jobs", seen, fix)
}

/// Adds what a job did since the last round to all that are not shown.
fn hide(other: &mut Job, job: &Job, (waited, time): (u64, JobTime)) {
    other.processes += job.processes;
    other.cpu = other.cpu.saturating_add(job.ran);
    other.ran = other.ran.saturating_add(job.ran);
    other.resident = other.resident.saturating_add(job.resident);
    other.waited = other.waited.saturating_add(job.waited.saturating_sub(waited));
    if let Some(now) = &job.time {
        other.time.get_or_insert_default().add_since(now, &time);
    }
}

/// The CPUs that are online.
fn online(root: &SysRoot) -> Option<CpuSet> {
    CpuSet::parse_list(root.text("/sys/devices/system/cpu/online").ok()?.trim()).ok()
}

/// How many nodes the CPU mask of a process covers. A mask has CPUs that are offline too.
fn mask_nodes(root: &SysRoot, pid: u32, nodes: &[(u32, CpuSet)], online: Option<&CpuSet>) -> Option<u64> {
    let mask = TaskDir::of(root, pid).status().ok()?.allowed_cpus()?;
    let mask = online.map_or_else(|| mask.clone(), |online| mask.and(online));
    Some(nodes.iter().filter(|(_, cpus)| cpus.intersects(&mask)).count() as u64)
}

/// What a thread that watches jobs shares with others. Dropping it ends the thread.
#[derive(Debug)]
pub struct JobBoard {
    now: Arc<Mutex<Arc<JobsNow>>>,
    stop: Arc<(AtomicBool, Alarm)>,
}

impl JobBoard {
    /// Watches jobs in a thread. Its rounds take at most a two-thousandth of the time of a CPU, and reading memory as much again.
    pub fn start(mut watch: JobWatch) -> io::Result<Self> {
        let board = Self { now: Arc::default(), stop: Arc::new((AtomicBool::new(false), Alarm::new())) };
        let (now, stop) = (Arc::clone(&board.now), Arc::clone(&board.stop));
        std::thread::Builder::new().name("jobs".into()).spawn(move || {
            let mut next_walk = 0;
            while !stop.0.load(Ordering::Acquire) {
                let (began, cpu) = (clock::monotonic(), clock::thread_cpu());
                let walks = began >= next_walk;
                let jobs = Arc::new(watch.round(&|| walks && clock::monotonic() < began + WALK));
                *now.lock().unwrap_or_else(PoisonError::into_inner) = jobs;
                let took = clock::thread_cpu().saturating_sub(cpu).saturating_mul(SHARE);
                let pause = match walks {
                    true => PAUSE,
                    false => took.clamp(PAUSE, MAX_PAUSE),
                };
                if walks {
                    next_walk = began.saturating_add(took.min(MAX_PAUSE));
                }
                stop.1.sleep_until(began.saturating_add(pause));
            }
        })?;
        Ok(board)
    }

    /// The jobs after the last round.
    pub fn now(&self) -> Arc<JobsNow> {
        Arc::clone(&self.now.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for JobBoard {
    fn drop(&mut self) {
        self.stop.0.store(true, Ordering::Release);
        self.stop.1.ring();
    }
}

#[cfg(test)]
mod tests;
