//! Reads the kernel's account of the time of threads from /proc.

use crate::account::ThreadTimes;
use crate::cpu_waits::MaskedThreads;
use numakit_model::CpuSet;
use numakit_sys::clock::EndedUsage;
use numakit_sys::proc::TaskDir;
use numakit_sys::proc::machine::numbers;
use numakit_sys::{SysRoot, sched};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Ticks in which the kernel counts CPU time, in ns. The same on all architectures that numakit knows.
pub(crate) const TICK: u64 = 10_000_000;

/// A thread is busy from one in this many parts of the observed time on.
const BUSY_PART: u64 = 10;
/// One that works, and mostly waits meanwhile, runs for one in this many parts.
const WORKING_PART: u64 = 100;
/// One that could run for more than one in this many parts, and had no CPU, wants to work however little it ran.
const STARVED_PART: u64 = 4;

/// The counts of a thread since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    user: u64,
    kernel: u64,
    runnable: u64,
    faults: u64,
}

#[derive(Debug)]
struct Account {
    name: String,
    /// Its start time in ticks since boot.
    start: u64,
    /// When it was seen first, and its counts then.
    since: u64,
    before: Counts,
    /// When it was seen last, and its counts then.
    until: u64,
    now: Counts,
    /// The CPUs on which it may run, where the kernel says that.
    cpus: Option<CpuSet>,
    /// Whether a signal or a debugger has stopped it.
    stopped: bool,
}

/// The accounts of all threads that were seen.
#[derive(Debug)]
pub struct ThreadAccounts {
    root: SysRoot,
    /// Whether counts from before the first visit belong to the observation: those of a command that was started for it.
    from_start: bool,
    threads: HashMap<(u32, u32), Account>,
    /// User mode and kernel of whole processes: at their first visit and at the last, with the threads that have ended.
    processes: HashMap<u32, [[u64; 2]; 2]>,
    /// The pages that processes had resident: at their first visit, and the maximum.
    resident: HashMap<u32, [u64; 2]>,
    /// User mode and kernel by samples, since the account of the thread was read last. A thread that ends takes its account
    /// with it, and then this is all that is known.
    unread: HashMap<(u32, u32), [u64; 2]>,
    /// Processes that ran before they were observed and are to be visited for the first time.
    joining: HashSet<u32>,
    visits: u64,
}

impl ThreadAccounts {
    /// Accounts of a command from its start, or of a running process from now on.
    pub fn new(root: &SysRoot, from_start: bool) -> Self {
        Self {
            root: root.clone(),
            from_start,
            threads: HashMap::new(),
            processes: HashMap::new(),
            resident: HashMap::new(),
            unread: HashMap::new(),
            joining: HashSet::new(),
            visits: 0,
        }
    }

    /// Counts a process from its next visit on, since it ran before it was observed.
    pub fn join(&mut self, pid: u32) {
        self.joining.insert(pid);
    }

    /// Adds the CPU time that a sample of a thread means. `time` is when it was taken, in ns.
    pub fn sampled(&mut self, thread: (u32, u32), time: u64, in_kernel: bool, weight: u64) {
        if self.threads.get(&thread).is_none_or(|account| time > account.until) {
            self.unread.entry(thread).or_default()[usize::from(in_kernel)] += weight;
        }
    }

    /// Reads the accounts of all threads of these processes. `now` is the time in ns. Threads that have ended keep what
    /// was read last.
    pub fn visit(&mut self, processes: &[u32], now: u64) {
        self.visits += 1;
        for &pid in processes {
            let root = self.root.clone();
            let process = TaskDir::of(&root, pid);
            // Processes and threads that appear later started in between; their counts are all new.
            let is_new = (self.from_start || self.visits > 1) && !self.joining.remove(&pid);
            if let Ok(stat) = process.stat() {
                let now = [stat.user, stat.own[2].saturating_sub(stat.user)].map(|ticks| ticks * TICK);
                let first = if is_new { [0; 2] } else { now };
                self.processes.entry(pid).or_insert([first, now])[1] = now;
                let first = if is_new { 0 } else { stat.resident };
                let most = &mut self.resident.entry(pid).or_insert([first, first])[1];
                *most = stat.resident.max(*most);
            }
            for tid in process.threads().unwrap_or_default() {
                self.read(&process.thread(tid), (pid, tid), now, is_new);
            }
        }
    }

    fn read(&mut self, thread: &TaskDir<'_>, key: (u32, u32), now: u64, is_new: bool) {
        let Ok(stat) = thread.stat() else { return };
        if stat.exited {
            return;
        }
        let schedule = thread.bytes("schedstat").unwrap_or_default();
        let mut schedule = numbers(&schedule);
        let ran = schedule.next().unwrap_or(stat.own[2].saturating_mul(TICK));
        let counts = Counts {
            user: part(ran, stat.user, stat.own[2]),
            kernel: ran - part(ran, stat.user, stat.own[2]),
            runnable: schedule.next().unwrap_or(0),
            faults: stat.own[0].saturating_add(stat.own[1]),
        };
        let before = if is_new { Counts::default() } else { counts };
        let lived = ran.saturating_add(counts.runnable);
        let since = if before == counts { now } else { now.saturating_sub(lived) };
        let name = stat.name();
        let account = self.threads.entry(key).or_insert_with(|| Account {
            name: name.clone(),
            start: stat.start,
            since,
            before,
            until: now,
            now: counts,
            cpus: None,
            stopped: false,
        });
        // Another machine's threads cannot be asked.
        let cpus = self.root.is_host().then(|| sched::affinity_of(key.1).ok()).flatten();
        account.cpus = cpus.or(account.cpus.take());
        account.name = name;
        account.stopped = stat.stopped;
        account.until = now;
        account.now = counts;
        self.unread.remove(&key);
    }

    /// The name of a thread.
    pub fn name(&self, pid: u32, tid: u32) -> Option<&str> {
        self.threads.get(&(pid, tid)).map(|account| account.name.as_str())
    }

    /// The start times of all threads that were seen, in ticks since boot, by process and thread.
    pub fn starts(&self) -> impl Iterator<Item = ((u32, u32), u64)> {
        self.threads.iter().map(|(key, account)| (*key, account.start))
    }

    /// The CPUs on which the threads of a process might run, together: a runtime binds each to CPUs of its own.
    pub fn cpus_of(&self, pid: u32) -> CpuSet {
        let of_process = self.threads.iter().filter(|((process, _), _)| *process == pid);
        of_process.filter_map(|(_, account)| account.cpus.as_ref()).flat_map(CpuSet::iter).collect()
    }

    /// Whether a thread was stopped at the last visit.
    pub fn is_stopped(&self, thread: (u32, u32)) -> bool {
        self.threads.get(&thread).is_some_and(|account| account.stopped)
    }

    /// The times of each thread that was seen, by its process and number.
    pub fn times(&self) -> impl Iterator<Item = ((u32, u32), ThreadTimes)> {
        self.threads.iter().map(|(key, account)| (*key, account.times()))
    }

    /// The time of the threads of a process together, and how long its first thread was observed, in ns.
    pub fn of_process(&self, pid: u32) -> (ThreadTimes, u64) {
        let first = self.threads.get(&(pid, pid));
        (self.seen(Some(pid)), first.map_or(0, |account| account.times().total()))
    }

    /// The threads that lived at the last visit, with the time that each was asleep so far, in ns.
    pub fn asleep(&self) -> impl Iterator<Item = ((u32, u32), u64)> {
        let latest = self.threads.values().map(|account| account.until).max();
        let lives = move |account: &Account| Some(account.until) == latest;
        self.threads.iter().filter(move |(_, a)| lives(a)).map(|(key, a)| (*key, a.times().asleep))
    }

    /// Threads that used at least this much CPU time, in ns.
    pub fn busy(&self, least: u64) -> impl Iterator<Item = (u32, u32)> {
        let ran = |a: &Account| (a.now.user + a.now.kernel).saturating_sub(a.before.user + a.before.kernel);
        self.threads.iter().filter(move |(_, account)| ran(account) >= least).map(|(key, _)| *key)
    }

    /// How many pages more than at first the processes had at most.
    pub fn grown_pages(&self) -> u64 {
        self.resident.values().map(|[first, most]| most - first).sum()
    }

    /// The threads that work: ran for one in [`WORKING_PART`] parts of the time in which they did not wait for a CPU, or were kept
    /// from it. Others of a pool wait for work.
    pub fn working(&self) -> HashSet<(u32, u32)> {
        let works = |account: &Account| {
            let ran = account.ran();
            account.is_starved() || ran >= ((ran + account.times().asleep) / WORKING_PART).max(1)
        };
        self.threads.iter().filter(|(_, account)| works(account)).map(|(thread, _)| *thread).collect()
    }

    /// How many threads lived at the same time: a shell that starts one program after another has two.
    pub fn at_once(&self) -> usize {
        most_at_once(self.threads.values().map(Account::span))
    }

    /// How many threads that were busy in this observed time lived at the same time.
    pub fn busy_at_once(&self, observed: u64) -> usize {
        most_at_once(self.threads.values().filter(|account| account.is_busy(observed)).map(Account::span))
    }

    /// The threads that were busy in this observed time, by their CPU masks; those that waited for a CPU longest first.
    pub fn masks(&self, observed: u64) -> Vec<MaskedThreads> {
        let mut masks: Vec<(CpuSet, Vec<&Account>)> = Vec::new();
        for account in self.threads.values().filter(|account| account.is_busy(observed)) {
            let Some(cpus) = &account.cpus else { continue };
            match masks.iter_mut().find(|(known, _)| known == cpus) {
                Some((_, accounts)) => accounts.push(account),
                None => masks.push((cpus.clone(), vec![account])),
            }
        }
        let masked = |(cpus, accounts): (CpuSet, Vec<&Account>)| MaskedThreads {
            cpus,
            threads: most_at_once(accounts.iter().map(|account| account.span())),
            ran: accounts.iter().map(|account| account.ran()).sum(),
            waited: accounts.iter().map(|account| account.times().runnable).sum(),
            asleep: accounts.iter().map(|account| account.times().asleep).sum(),
        };
        let mut masks: Vec<MaskedThreads> = masks.into_iter().map(masked).collect();
        masks.sort_by_key(|masked| (Reverse(masked.waited), Reverse(masked.threads)));
        masks
    }

    /// The time of all threads. A thread that lived too short to be seen has only CPU time, which is the rest of its
    /// process's CPU time, or the rest of the time that ended processes used.
    pub fn total(&self, ended: Option<EndedUsage>) -> ThreadTimes {
        let mut seen = self.seen(None);
        let of_all = ended.map_or_else(
            || self.unseen(),
            |all| {
                let rest = |all: u64, seen: u64| all.saturating_sub(seen);
                [rest(all.user, seen.user), rest(all.kernel, seen.kernel), rest(all.faults, seen.faults)]
            },
        );
        let [user, kernel, faults] = of_all;
        seen += ThreadTimes { user, kernel, faults, ..ThreadTimes::default() };
        seen
    }

    /// What processes used beyond the time of those threads that were seen: by the account of the process, which has the
    /// threads that have ended, or by samples that came since the last account, whichever knows of more.
    fn unseen(&self) -> [u64; 3] {
        let mut sampled: HashMap<u32, [u64; 2]> = HashMap::new();
        for ((pid, _), [user, kernel]) in &self.unread {
            let of_process = sampled.entry(*pid).or_default();
            *of_process = [of_process[0] + user, of_process[1] + kernel];
        }
        let processes: BTreeSet<u32> = self.processes.keys().chain(sampled.keys()).copied().collect();
        processes.into_iter().fold([0; 3], |sum, pid| {
            let seen = self.seen(Some(pid));
            let [first, last] = self.processes.get(&pid).copied().unwrap_or_default();
            let by_samples = sampled.get(&pid).copied().unwrap_or_default();
            let rest = |at: usize, seen: u64| last[at].saturating_sub(first[at]).saturating_sub(seen);
            let more = |at: usize, seen: u64| rest(at, seen).max(by_samples[at]);
            [sum[0] + more(0, seen.user), sum[1] + more(1, seen.kernel), 0]
        })
    }

    /// The time of the threads that were seen, of one process or of all.
    fn seen(&self, pid: Option<u32>) -> ThreadTimes {
        let of_process =
            self.threads.iter().filter(|((process, _), _)| pid.is_none_or(|pid| pid == *process));
        of_process.fold(ThreadTimes::default(), |mut sum, (_, account)| {
            sum += account.times();
            sum
        })
    }
}

impl Account {
    /// From when to when it was seen, in ns.
    fn span(&self) -> (u64, u64) {
        (self.since, self.until)
    }

    /// Its CPU time, in ns.
    fn ran(&self) -> u64 {
        let times = self.times();
        times.user + times.kernel
    }

    /// Whether it ran, or waited for a CPU, for one in [`BUSY_PART`] parts of the observed time, and would have run for as much
    /// of it with a CPU of its own, or is starved: on a busy machine, one that sleeps most of the time waits for a CPU at each
    /// wakeup.
    fn is_busy(&self, observed: u64) -> bool {
        let (ran, ThreadTimes { runnable, asleep, .. }) = (self.ran(), self.times());
        let wants = self.is_starved() || ran >= (ran + asleep) / BUSY_PART;
        wants && ran + runnable >= (observed / BUSY_PART).max(1)
    }

    /// Whether it waited for a CPU for much of its time. How little it ran then says nothing about how much it would run.
    fn is_starved(&self) -> bool {
        let times = self.times();
        times.runnable > times.total() / STARVED_PART
    }

    /// The times of the thread since it was seen first.
    fn times(&self) -> ThreadTimes {
        let grown = |of: fn(&Counts) -> u64| of(&self.now).saturating_sub(of(&self.before));
        ThreadTimes::between(
            self.until.saturating_sub(self.since),
            grown(|c| c.user),
            grown(|c| c.kernel),
            grown(|c| c.runnable),
            grown(|c| c.faults),
        )
    }
}

/// How many of these spans of time have a moment in common, at most. One that ends when another one begins does not.
fn most_at_once(spans: impl Iterator<Item = (u64, u64)>) -> usize {
    let mut changes: Vec<(u64, isize)> =
        spans.flat_map(|(from, to)| [(from, 1), (to.max(from + 1), -1)]).collect();
    changes.sort_unstable();
    let (mut now, mut most) = (0isize, 0);
    for (_, change) in changes {
        now += change;
        most = most.max(now);
    }
    most.unsigned_abs()
}

/// The part of a time that these ticks have in all ticks.
fn part(time: u64, ticks: u64, all: u64) -> u64 {
    match all {
        // Less than a tick: most threads that end so early were in the program.
        0 => time,
        all => (u128::from(time) * u128::from(ticks.min(all)) / u128::from(all)) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sys::root::FileTree;

    const MS: u64 = 1_000_000;

    fn thread(tree: &mut FileTree, tid: u32, ticks: [u64; 2], faults: u64, schedule: &str) {
        let [user, kernel] = ticks;
        let stat =
            format!("{tid} (w {tid}) R 1 7 7 0 -1 0 {faults} 0 0 0 {user} {kernel} 0 0 20 0 1 0 5 0 0\n");
        tree.file(&format!("/proc/7/task/{tid}/stat"), stat);
        tree.file(&format!("/proc/7/task/{tid}/schedstat"), schedule);
    }

    fn machine() -> SysRoot {
        let mut tree = FileTree::new();
        thread(&mut tree, 7, [30, 10], 100, "400000000 50000000 9\n");
        SysRoot::of_tree(tree)
    }

    #[test]
    fn a_command_counts_from_its_start_and_a_process_from_the_first_visit() {
        for (from_start, user, kernel, runnable, asleep, faults) in
            [(true, 600, 200, 100, 550, 150), (false, 300, 100, 50, 550, 50)]
        {
            let root = machine();
            let mut accounts = ThreadAccounts::new(&root, from_start);
            accounts.visit(&[7], 1000 * MS);
            root.change(|tree| thread(tree, 7, [60, 20], 150, "800000000 100000000 9\n"));
            accounts.visit(&[7], 2000 * MS);
            let expected = ThreadTimes {
                user: user * MS,
                kernel: kernel * MS,
                runnable: runnable * MS,
                asleep: asleep * MS,
                faults,
            };
            assert_eq!(accounts.total(None), expected, "{from_start}");
        }
    }

    #[test]
    fn threads_that_end_keep_their_time_and_new_ones_count_from_their_start() {
        let root = machine();
        let mut accounts = ThreadAccounts::new(&root, false);
        accounts.visit(&[7], 1000 * MS);
        root.change(|tree| {
            tree.remove("/proc/7/task/7");
            thread(tree, 8, [5, 0], 3, "50000000 0 1\n");
        });
        accounts.visit(&[7, 99], 1100 * MS);
        assert_eq!(accounts.total(None), ThreadTimes { user: 50 * MS, faults: 3, ..ThreadTimes::default() });
        assert_eq!((accounts.name(7, 8), accounts.name(7, 9)), (Some("w 8"), None));
        assert_eq!(accounts.busy(1).collect::<Vec<_>>(), [(7, 8)]);
    }

    #[test]
    fn threads_that_follow_each_other_are_one_at_once() {
        let root = machine();
        let mut accounts = ThreadAccounts::new(&root, true);
        accounts.visit(&[7], 1000 * MS);
        let next = |tid, after: u64, accounts: &mut ThreadAccounts| {
            root.change(|tree| {
                tree.remove(&format!("/proc/7/task/{}", tid - 1));
                thread(tree, tid, [30, 10], 1, "400000000 100000000 9\n");
            });
            accounts.visit(&[7], after * MS);
        };
        next(8, 1600, &mut accounts);
        next(9, 2200, &mut accounts);
        let busy = |accounts: &ThreadAccounts, observed: u64| accounts.busy_at_once(observed * MS);
        assert_eq!((accounts.at_once(), busy(&accounts, 1200), busy(&accounts, 6000)), (1, 1, 0));
        root.change(|tree| thread(tree, 10, [30, 10], 1, "400000000 100000000 9\n"));
        accounts.visit(&[7], 2700 * MS);
        assert_eq!((accounts.at_once(), most_at_once([(1, 5), (5, 9), (5, 5), (2, 3)].into_iter())), (2, 2));
    }

    #[test]
    fn a_thread_that_mostly_sleeps_is_not_busy_because_it_waits_for_cpus() {
        let root = machine();
        let mut accounts = ThreadAccounts::new(&root, false);
        accounts.visit(&[7], 1000 * MS);
        // Of five seconds it ran for 100 ms, and waited for one second.
        root.change(|tree| thread(tree, 7, [38, 12], 100, "500000000 1050000000 9\n"));
        accounts.visit(&[7], 6000 * MS);
        assert_eq!(accounts.busy_at_once(5000 * MS), 0);
        // Now it runs or waits all the time.
        root.change(|tree| thread(tree, 7, [60, 20], 100, "800000000 4550000000 9\n"));
        accounts.visit(&[7], 6000 * MS);
        assert_eq!(accounts.busy_at_once(5000 * MS), 1);
    }

    #[test]
    fn a_starved_thread_is_busy_and_works_however_little_it_ran() {
        let root = machine();
        let mut accounts = ThreadAccounts::new(&root, false);
        accounts.visit(&[7], 1000 * MS);
        // Of ten seconds it ran for 30 ms, and waited for a CPU for six.
        root.change(|tree| thread(tree, 7, [32, 11], 100, "430000000 6050000000 9\n"));
        accounts.visit(&[7], 11_000 * MS);
        assert_eq!((accounts.busy_at_once(10_000 * MS), accounts.working().len()), (1, 1));
        // It waited for a fifth of its time.
        root.change(|tree| thread(tree, 7, [32, 11], 100, "430000000 2050000000 9\n"));
        accounts.visit(&[7], 11_000 * MS);
        assert_eq!((accounts.busy_at_once(10_000 * MS), accounts.working().len()), (0, 0));
    }

    #[test]
    fn threads_that_work_are_told_from_those_that_wait_for_work() {
        let root = machine();
        let mut accounts = ThreadAccounts::new(&root, false);
        accounts.visit(&[7], 1000 * MS);
        // Of five seconds it ran for 20 ms, and waited for a CPU for 400 ms.
        root.change(|tree| thread(tree, 7, [31, 11], 100, "420000000 450000000 9\n"));
        accounts.visit(&[7], 6000 * MS);
        assert_eq!(accounts.working(), HashSet::new());
        root.change(|tree| thread(tree, 7, [38, 12], 100, "500000000 50000000 9\n"));
        accounts.visit(&[7], 6000 * MS);
        assert_eq!(accounts.working(), HashSet::from([(7, 7)]));
    }

    #[test]
    fn memory_grows_by_the_most_that_was_resident() {
        let root = SysRoot::of_tree(FileTree::new());
        let mut accounts = ThreadAccounts::new(&root, false);
        for (at, pages) in [(1000, 300), (2000, 900), (3000, 100)] {
            root.change(|tree| {
                let stat = format!("7 (w) R 1 7 7 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 5 0 {pages}\n");
                _ = tree.file("/proc/7/stat", stat);
            });
            accounts.visit(&[7], at * MS);
        }
        assert_eq!(accounts.grown_pages(), 600);
    }

    #[test]
    fn a_process_that_ends_before_the_second_visit_has_the_time_of_its_samples() {
        let root = machine();
        let mut accounts = ThreadAccounts::new(&root, false);
        accounts.visit(&[7], 1000 * MS);
        // The first one is in the account already.
        for (time, in_kernel) in [(999, false), (1005, false), (1010, false), (1015, true)] {
            accounts.sampled((7, 7), time * MS, in_kernel, 5 * MS);
        }
        let expected = ThreadTimes { user: 10 * MS, kernel: 5 * MS, ..ThreadTimes::default() };
        assert_eq!(accounts.total(None), expected);
        // The account of a thread that still runs has all of it.
        root.change(|tree| thread(tree, 7, [33, 11], 100, "440000000 50000000 9\n"));
        accounts.visit(&[7], 1050 * MS);
        let read = accounts.total(None);
        assert_eq!((read.user, read.kernel, read.asleep), (30 * MS, 10 * MS, 10 * MS));
        // Of a thread that nobody visited, samples are all that is known.
        accounts.sampled((9, 9), 1060 * MS, false, 5 * MS);
        assert_eq!(accounts.total(None).user, 35 * MS);
    }

    #[test]
    fn a_thread_is_stopped_as_long_as_the_kernel_says_that() {
        let root = machine();
        let mut accounts = ThreadAccounts::new(&root, false);
        accounts.visit(&[7], 1000 * MS);
        assert!(!accounts.is_stopped((7, 7)) && !accounts.is_stopped((9, 9)));
        root.change(|tree| {
            _ = tree.file("/proc/7/task/7/stat", "7 (w) T 1 7 7 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 5 0 0\n");
        });
        accounts.visit(&[7], 1100 * MS);
        assert!(accounts.is_stopped((7, 7)));
    }

    #[test]
    fn a_process_that_joins_counts_from_then_on() {
        let root = machine();
        let mut accounts = ThreadAccounts::new(&root, false);
        accounts.visit(&[], 1000 * MS);
        accounts.join(7);
        accounts.visit(&[7], 1100 * MS);
        assert_eq!(accounts.total(None), ThreadTimes::default());
    }

    #[test]
    fn ticks_divide_the_exact_time() {
        assert_eq!((part(1000, 3, 4), part(1000, 0, 0), part(1000, 9, 4)), (750, 1000, 1000));
    }
}
