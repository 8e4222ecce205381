//! The answer: the time of each wait, with names.

use super::futex;
use super::java;
use super::lock_names::{self, LockAddress, LockName};
use super::open_files::{FileIdentity, OpenFile};
use super::peers::OtherEnd;
use super::targets::WaitTarget;
use super::watch::{SeenHolder, SeenWait, WaitScene, WaitWatch};
use super::{LockHolder, LockTime, ThreadWaits, WaitKind, WaitTime, WorkingThreads};
use crate::account::ThreadTimes;
use crate::chain_names::ChainNames;
use crate::code::CodeName;
use crate::java::waits::{JavaPlace, JavaWaits};
use crate::teams::TeamSleep;
use numakit_sys::proc::syscall;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Of more files than this, those with less than one in this many parts of the time of all waits are not distinguished: a file that
/// one look saw is chance.
const MANY_FILES: usize = 8;
const SMALL_FILE: u64 = 4;
/// Functions of a chain that are kept.
const MAX_FUNCTIONS: usize = 12;
/// Functions of a chain that may say what a wait is for.
const TELLING: usize = 8;
/// Threads that held a lock and are named.
const MAX_HOLDERS: usize = 4;
/// The begins of the names of C libraries.
const C_LIBRARIES: &[&str] = &["libc.so", "libc-", "libpthread", "ld-musl", "libc.musl"];
/// A sample of a running thread shows what it did at a time if it is this near, in ns.
const NEAR: u64 = 10_000_000;

/// A thread, by its process and number.
type Thread = (u32, u32);

/// A wait with its time and names.
#[derive(Debug)]
struct NamedWait {
    process: u32,
    kind: WaitKind,
    what: Option<String>,
    is_gil: bool,
    end: OtherEnd,
    call: Option<String>,
    address: Option<u64>,
    /// The object of a Java machine, by its place.
    java: Option<usize>,
    /// All functions of the chain, innermost first.
    chain: Vec<CodeName>,
    /// The time of each thread.
    threads: BTreeMap<Thread, SeenTime>,
}

/// The time of a thread at a wait.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SeenTime {
    /// In ns.
    pub time: u64,
    /// How often the thread was seen there.
    pub looks: u64,
}

impl WaitWatch {
    /// What all threads waited for until this time; names have members if this is the `complete` answer.
    pub(crate) fn answer(&mut self, scene: &mut WaitScene<'_>, complete: bool, end: u64) -> ThreadWaits {
        if complete {
            self.find_peers(true);
        }
        let is_ours = |(process, thread): Thread| {
            scene.accounts.name(process, thread).is_some_and(|name| scene.java.answers(process, name))
        };
        let times: HashMap<Thread, ThreadTimes> =
            scene.accounts.times().filter(|(thread, _)| !is_ours(*thread)).collect();
        let mut by_wait: Vec<BTreeMap<Thread, SeenTime>> = vec![BTreeMap::new(); self.waits.len()];
        let mut unseen = 0;
        for (thread, time) in &times {
            let seen = self.threads.get(thread).map(|watched| &watched.seen);
            let looks: u64 = seen.iter().flat_map(|seen| seen.values()).map(|looks| u64::from(*looks)).sum();
            if looks == 0 {
                unseen += time.asleep;
            }
            for (place, count) in seen.into_iter().flatten() {
                let part = u128::from(time.asleep) * u128::from(*count) / u128::from(looks.max(1));
                if let Some(threads) = by_wait.get_mut(*place) {
                    threads.insert(*thread, SeenTime { time: part as u64, looks: (*count).into() });
                }
            }
        }
        let named = self.named(by_wait, scene, complete);
        let observed = end.saturating_sub(self.started);
        let works = scene.accounts.working();
        let mut working = WorkingThreads::default();
        for (_, time) in times.iter().filter(|(thread, _)| works.contains(thread)) {
            working.threads += 1;
            working.times += *time;
        }
        // Programs that follow each other, as in a shell's loop, count as one.
        working.threads = working.threads.min(scene.accounts.at_once());
        ThreadWaits {
            threads: scene.accounts.at_once(),
            busy: scene.accounts.busy_at_once(observed),
            locks: self.locks(&named, &times, scene),
            rows: rows(&named, &works),
            in_teams: in_teams(&named),
            working,
            unseen,
            looks: self.looks,
            cost: self.cost,
            refused: self.refused.as_ref().map(ToString::to_string),
        }
    }

    /// The names of the locks for which threads waited.
    fn lock_names(
        &self,
        by_wait: &[BTreeMap<Thread, SeenTime>],
        scene: &mut WaitScene<'_>,
        complete: bool,
    ) -> HashMap<(u32, u64), LockName> {
        let time = |threads: &BTreeMap<Thread, SeenTime>| threads.values().map(|seen| seen.time).sum::<u64>();
        let mut locks: Vec<(u64, LockAddress)> = Vec::new();
        for (wait, threads) in self.waits.iter().zip(by_wait) {
            let WaitTarget::Futex { address, object: Some(object) } = wait.target else { continue };
            locks.push((time(threads), LockAddress { process: wait.process, address, object }));
        }
        locks.sort_by_key(|(time, _)| Reverse(*time));
        let mut known = BTreeSet::new();
        let is_new = |lock: &LockAddress| known.insert((lock.process, lock.address));
        let locks: Vec<LockAddress> = locks.into_iter().map(|(_, lock)| lock).filter(is_new).collect();
        lock_names::names(&locks, scene.processes, complete)
    }

    /// The waits with names.
    fn named(
        &self,
        by_wait: Vec<BTreeMap<Thread, SeenTime>>,
        scene: &mut WaitScene<'_>,
        complete: bool,
    ) -> Vec<NamedWait> {
        let locks = self.lock_names(&by_wait, scene, complete);
        let mut named: Vec<NamedWait> = Vec::new();
        for (wait, mut threads) in self.waits.iter().zip(by_wait) {
            if let Some(told) = scene.java.waits(wait.process).filter(|_| java::is_of_threads(wait)) {
                let (of_java, left) = java::divide(threads, told);
                named.extend(of_java.into_iter().map(|(place, times)| java_wait(wait, told, place, times)));
                threads = left;
            }
            if threads.is_empty() {
                continue;
            }
            let chain = ChainNames::new(&scene.collector.calls, scene.processes).of(wait.chain);
            let (kind, runtime_lock) = match wait.kind.is_for_threads() {
                true => futex::by_code(wait.kind, chain.get(..TELLING).unwrap_or(&chain)),
                false => (wait.kind, None),
            };
            let only = scene.java.waits(wait.process).and_then(|told| Some((told, told.only_monitor()?)));
            if let (Some(futex::JAVA_MONITOR), Some((told, place))) = (runtime_lock, only) {
                named.push(java_wait(wait, told, place, threads));
                continue;
            }
            let is_gil = runtime_lock == Some(futex::GIL) || matches!(wait.target, WaitTarget::Gil(_));
            let (what, end) = match runtime_lock {
                Some(lock) => (Some(lock.to_owned()), OtherEnd::default()),
                None => self.target(wait, kind, &locks, scene),
            };
            let address = match wait.target {
                WaitTarget::Futex { address, .. } if runtime_lock.is_none() => Some(address),
                WaitTarget::Gil(address) => Some(address),
                _ => None,
            };
            let kind = if end.listens { WaitKind::Connections } else { kind };
            let (process, call) = (wait.process, call(wait));
            let java = None;
            named.push(NamedWait { process, kind, what, is_gil, end, call, address, java, chain, threads });
        }
        named
    }

    /// The name of what a thread waits for, and its other end.
    fn target(
        &self,
        wait: &SeenWait,
        kind: WaitKind,
        locks: &HashMap<(u32, u64), LockName>,
        scene: &WaitScene<'_>,
    ) -> (Option<String>, OtherEnd) {
        let none = OtherEnd::default;
        match wait.target {
            WaitTarget::Nothing | WaitTarget::Many(0, _) => (None, none()),
            WaitTarget::Many(count, sockets) => self.one_of(count, &sockets),
            WaitTarget::Gil(_) => (Some(futex::GIL.to_owned()), none()),
            WaitTarget::Thread(thread) => {
                let name = scene.accounts.name(wait.process, thread).unwrap_or("thread");
                (Some(format!("{name} ({thread})")), none())
            }
            WaitTarget::Open(file) => {
                let Some(identity) = self.files.get(file) else { return (None, none()) };
                let end = self.peers.of(identity);
                (file_name(identity, &end), end)
            }
            WaitTarget::Futex { address, .. } => {
                let known = locks.get(&(wait.process, address));
                // The address distinguishes a lock from others; of what else has no name, the code says more.
                let name = match (known, kind) {
                    (Some(LockName { name, is_vague }), _) if !is_vague || kind == WaitKind::Lock => {
                        Some(name.clone())
                    }
                    (None, WaitKind::Lock) => Some(format!("{address:#x}")),
                    _ => None,
                };
                (name, none())
            }
        }
    }

    /// One of these descriptors: those of them that listen, by their addresses.
    fn one_of(&self, count: u64, sockets: &[Option<OpenFile>]) -> (Option<String>, OtherEnd) {
        let ends = sockets.iter().flatten().filter_map(|file| Some(self.peers.of(self.files.get(*file)?)));
        let (listening, connected): (Vec<OtherEnd>, Vec<OtherEnd>) = ends.partition(|end| end.listens);
        let addresses: Vec<String> = listening.into_iter().filter_map(|end| end.address).collect();
        let others = count.saturating_sub(addresses.len() as u64);
        let listens = !addresses.is_empty();
        let first = connected.into_iter().find_map(|end| end.address);
        let name = match (listens, others) {
            (false, _) => first.map_or_else(
                || format!("{count} descriptors"),
                |socket| format!("{count} descriptors with {socket}"),
            ),
            (true, 0) => addresses.join(", "),
            (true, 1) => format!("{}, or 1 other descriptor", addresses.join(", ")),
            (true, others) => format!("{}, or {others} other descriptors", addresses.join(", ")),
        };
        (Some(name), OtherEnd { listens, ..OtherEnd::default() })
    }

    /// The locks for which threads waited.
    fn locks(
        &self,
        named: &[NamedWait],
        times: &HashMap<Thread, ThreadTimes>,
        scene: &mut WaitScene<'_>,
    ) -> Vec<LockTime> {
        let mut locks: BTreeMap<_, Vec<&NamedWait>> = BTreeMap::new();
        for wait in named.iter().filter(|wait| wait.kind == WaitKind::Lock) {
            let what = wait.what.as_deref().unwrap_or_default();
            locks.entry((wait.process, wait.address, wait.java, what)).or_default().push(wait);
        }
        let mut found: Vec<LockTime> = Vec::new();
        for ((process, address, object, what), waits) in locks {
            let of_java = object.zip(scene.java.waits(process)).map(|(object, told)| told.holders(object));
            let threads: BTreeSet<Thread> =
                waits.iter().flat_map(|wait| wait.threads.keys().copied()).collect();
            let worked =
                |thread| times.get(thread).map_or(0, |t: &ThreadTimes| t.user + t.kernel + t.runnable);
            let most = waits.iter().max_by_key(|wait| wait.time());
            found.push(LockTime {
                what: what.to_owned(),
                is_gil: waits.iter().any(|wait| wait.is_gil),
                time: waits.iter().map(|wait| wait.time()).sum(),
                worked: threads.iter().map(worked).sum(),
                threads: threads.len(),
                looks: waits.iter().flat_map(|wait| wait.threads.values()).map(|seen| seen.looks).sum(),
                chain: most.map(|wait| outside(&wait.chain)).unwrap_or_default(),
                holders: of_java
                    .or_else(|| address.map(|address| self.holders_of(process, address, scene)))
                    .unwrap_or_default(),
            });
        }
        found.sort_by_key(|lock| Reverse(lock.time));
        found
    }

    /// Who held a lock.
    fn holders_of(&self, process: u32, address: u64, scene: &mut WaitScene<'_>) -> Vec<LockHolder> {
        let mut threads: BTreeMap<u32, Vec<(&SeenHolder, u32)>> = BTreeMap::new();
        for (seen, count) in &self.holders {
            if (seen.process, seen.address) == (process, address) {
                threads.entry(seen.thread).or_default().push((seen, *count));
            }
        }
        let all: u32 = threads.values().flatten().map(|(_, count)| count).sum();
        let mut holders: Vec<LockHolder> = Vec::new();
        for (thread, seen) in threads {
            let looks: u32 = seen.iter().map(|(_, count)| count).sum();
            let ran: u32 = seen.iter().filter(|(s, _)| s.chain.is_none()).map(|(_, count)| count).sum();
            let runs = ran * 2 >= looks;
            let waited = seen.iter().filter(|(s, _)| s.chain.is_some()).max_by_key(|(_, count)| count);
            let chain = match runs {
                true => scripts(&seen).or_else(|| self.running_chain(process, address, thread, scene)),
                false => waited.and_then(|(seen, _)| seen.chain),
            };
            let chain = chain.map(|chain| ChainNames::new(&scene.collector.calls, scene.processes).of(chain));
            let chain = outside(&chain.unwrap_or_default());
            let name = scene.accounts.name(process, thread).unwrap_or_default().to_owned();
            let share = f64::from(looks) / f64::from(all.max(1));
            holders.push(LockHolder { thread, name, share, runs, chain });
        }
        holders.sort_by(|a, b| b.share.total_cmp(&a.share));
        holders.truncate(MAX_HOLDERS);
        holders
    }

    /// What a thread did most while it ran and held a lock: the call chain of its samples at these times.
    fn running_chain(&self, process: u32, address: u64, thread: u32, scene: &WaitScene<'_>) -> Option<u32> {
        let collector = &scene.collector;
        let is_it = |sampled: &crate::SampledThread| (sampled.pid, sampled.tid) == (process, thread);
        let place = collector.sampled_threads.iter().position(is_it)? as u32;
        let start = collector.first_time()?;
        let samples: Vec<(u64, u32)> = collector
            .observations
            .iter()
            .filter(|at| at.thread == place && at.chain != 0)
            .map(|at| (at.time + start, at.chain))
            .collect();
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        let held = self
            .held
            .iter()
            .filter(|(seen, _)| (seen.process, seen.address, seen.thread) == (process, address, thread));
        for (_, time) in held {
            let at = samples.partition_point(|(sampled, _)| sampled < time);
            let near = samples[at.saturating_sub(1)..].iter().take(2);
            if let Some((sampled, chain)) = near.min_by_key(|(sampled, _)| sampled.abs_diff(*time))
                && sampled.abs_diff(*time) <= NEAR
            {
                *counts.entry(*chain).or_default() += 1;
            }
        }
        counts.into_iter().max_by_key(|(_, count)| *count).map(|(chain, _)| chain)
    }
}

/// The functions of Python in which a thread was most while it ran and held a lock.
fn scripts(seen: &[(&SeenHolder, u32)]) -> Option<u32> {
    let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
    for (holder, count) in seen.iter().filter(|(holder, _)| holder.chain.is_none()) {
        holder.script.into_iter().for_each(|script| *counts.entry(script).or_default() += count);
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(script, _)| script)
}

impl NamedWait {
    fn time(&self) -> u64 {
        self.threads.values().map(|seen| seen.time).sum()
    }
}

/// The wait of Java threads for an object.
fn java_wait(
    wait: &SeenWait,
    told: &JavaWaits,
    place: JavaPlace,
    threads: BTreeMap<Thread, SeenTime>,
) -> NamedWait {
    let (kind, what) = told.named(place);
    let (process, end, call, chain) = (wait.process, OtherEnd::default(), call(wait), told.methods(place));
    NamedWait {
        process,
        kind,
        what,
        end,
        call,
        is_gil: false,
        address: None,
        java: Some(place.object),
        chain,
        threads,
    }
}

/// The name of the call in which a thread waits.
fn call(wait: &SeenWait) -> Option<String> {
    let name = |number: i64| {
        syscall::call(number).map_or_else(|| format!("call {number}"), |(name, _)| name.to_owned())
    };
    wait.call.map(name)
}

/// The sleep of threads that wait for their team of OpenMP in gcc's library.
fn in_teams(named: &[NamedWait]) -> Vec<TeamSleep> {
    let is_of_team = |wait: &&NamedWait| {
        let first = wait.chain.iter().find(|code| !is_c_library(code));
        wait.kind == WaitKind::Barrier && first.is_some_and(|code| code.module.starts_with("libgomp."))
    };
    let sleep =
        |((pid, tid), seen): (&Thread, &SeenTime)| TeamSleep { pid: *pid, tid: *tid, time: seen.time };
    named.iter().filter(is_of_team).flat_map(|wait| wait.threads.iter().map(sleep)).collect()
}

/// Some of the threads of a wait.
type SomeThreads<'a> = BTreeMap<&'a Thread, &'a SeenTime>;

/// Waits for the same in the same function as one row, the longest time first, and those of threads that work as another one. Files for which hardly anybody waits are one row
/// together: who reads a thousand files waits for storage.
fn rows(named: &[NamedWait], works: &HashSet<Thread>) -> Vec<WaitTime> {
    let all: u64 = named.iter().map(NamedWait::time).sum();
    let mut of_file: BTreeMap<&Option<String>, u64> = BTreeMap::new();
    for wait in named.iter().filter(|wait| wait.kind == WaitKind::Storage) {
        *of_file.entry(&wait.what).or_default() += wait.time();
    }
    let is_many = of_file.len() > MANY_FILES;
    let is_small =
        |wait: &NamedWait| is_many && of_file.get(&wait.what).is_some_and(|time| time * SMALL_FILE < all);
    let mut groups: BTreeMap<_, Vec<(&NamedWait, SomeThreads<'_>)>> = BTreeMap::new();
    for wait in named {
        let caller = outside(&wait.chain).first().map(|code| (code.function.clone(), code.module.clone()));
        let what = if wait.kind == WaitKind::Storage && is_small(wait) { None } else { wait.what.clone() };
        let (working, idle): (SomeThreads<'_>, SomeThreads<'_>) =
            wait.threads.iter().partition(|(thread, _)| works.contains(thread));
        for (is_working, threads) in [(true, working), (false, idle)] {
            if !threads.is_empty() {
                let (call, caller, peers) = (wait.call.clone(), caller.clone(), wait.end.processes.clone());
                let key = (wait.kind, what.clone(), call, caller, peers, is_working);
                groups.entry(key).or_default().push((wait, threads));
            }
        }
    }
    let row = |((kind, what, call, _, peers, is_working), waits): ((_, _, _, _, _, bool), Vec<_>)| {
        let row = WaitTime { peers, call, ..row(kind, what, &waits) };
        WaitTime { of_working: if is_working { row.time } else { 0 }, ..row }
    };
    let mut rows: Vec<WaitTime> = groups.into_iter().map(row).filter(|row| row.time > 0).collect();
    rows.sort_by_key(|row| Reverse(row.time));
    rows
}

/// Waits of these threads as a row.
fn row(kind: WaitKind, what: Option<String>, waits: &[(&NamedWait, SomeThreads<'_>)]) -> WaitTime {
    let time_of = |threads: &SomeThreads<'_>| threads.values().map(|seen| seen.time).sum::<u64>();
    let threads: BTreeSet<Thread> =
        waits.iter().flat_map(|(_, threads)| threads.keys().map(|thread| **thread)).collect();
    let processes: BTreeSet<u32> = threads.iter().map(|(process, _)| *process).collect();
    let most = waits.iter().max_by_key(|(_, threads)| time_of(threads));
    let files: BTreeSet<&String> = waits.iter().filter_map(|(wait, _)| wait.what.as_ref()).collect();
    let small = (files.len() > 1).then(|| format!("{} files", files.len()));
    WaitTime {
        kind,
        what: what.or(small).or_else(|| files.first().map(|file| (*file).clone())),
        peers: Vec::new(),
        call: None,
        time: waits.iter().map(|(_, threads)| time_of(threads)).sum(),
        of_working: 0,
        threads: threads.len(),
        processes: processes.len(),
        chain: most.map(|(wait, _)| outside(&wait.chain)).unwrap_or_default(),
    }
}

/// The part of a chain that is the program's: without the functions of the C library in which the thread waits, and those that
/// start threads and programs. All of it where nothing else is left.
fn outside(chain: &[CodeName]) -> Vec<CodeName> {
    let is_library = |code: &&CodeName| is_c_library(code);
    let is_start = |code: &&CodeName| {
        is_library(code) || code.function.as_deref() == Some("_start") || starts_script(code)
    };
    let ends = chain.len() - chain.iter().rev().take_while(is_start).count();
    let begins = chain.iter().take_while(is_library).count();
    let shown = if begins < ends { &chain[begins..ends] } else { chain };
    shown.iter().take(MAX_FUNCTIONS).cloned().collect()
}

/// Whether code is of a C library.
fn is_c_library(code: &CodeName) -> bool {
    C_LIBRARIES.iter().any(|library| code.module.starts_with(library))
}

/// Whether a function of Python's library starts what a thread runs.
fn starts_script(code: &CodeName) -> bool {
    let function = code.function.as_deref().unwrap_or_default();
    let function = function.strip_prefix("Thread.").unwrap_or(function);
    let starts = ["_bootstrap", "_bootstrap_inner", "run"];
    code.module == "threading.py" && code.is_script() && starts.contains(&function)
}

/// A file by its path; a socket by its addresses. The number of a pipe says nothing.
fn file_name(identity: &FileIdentity, end: &OtherEnd) -> Option<String> {
    let is_numbered = identity.inode().is_some();
    end.address.clone().or_else(|| (!is_numbered).then(|| identity.link.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_shown_from_where_the_program_waits() {
        let code = |function: &str, module: &str| CodeName {
            function: Some(function.to_owned()),
            module: module.to_owned(),
            ..CodeName::default()
        };
        let shown = |chain: &[CodeName]| -> Vec<String> {
            outside(chain).into_iter().filter_map(|code| code.function).collect()
        };
        let (libc, start) = ("libc.so.6", code("start_thread", "libc.so.6"));
        let wait = code("futex_wait", libc);
        assert_eq!(
            shown(&[wait.clone(), code("add", "app"), code("worker", "app"), start.clone()]),
            ["add", "worker"]
        );
        let team = [code("gomp_team", "libgomp.so.1"), start.clone()];
        assert_eq!(shown(&team), ["gomp_team"], "a thread of a runtime");
        assert_eq!(shown(&[wait, start]), ["futex_wait", "start_thread"]);
        assert_eq!(
            shown(&[code("pause", "app"), code("main", "app")]),
            ["pause", "main"],
            "without libraries"
        );
        let script = |function: &str, module: &str| CodeName {
            file: Some(format!("/lib/{module}")),
            line: Some(7),
            ..code(function, module)
        };
        let starts = [script("Thread.run", "threading.py"), script("_bootstrap", "threading.py")];
        let of_script = [&[script("run", "app.py")], &starts[..]].concat();
        assert_eq!(shown(&of_script), ["run"], "a thread of Python");
        assert!(outside(&[]).is_empty());
    }

    #[test]
    fn files_that_hardly_anybody_waits_for_are_one_row() {
        let wait = |file: u32, time| NamedWait {
            process: 7,
            kind: WaitKind::Storage,
            what: Some(format!("/data/{file}")),
            end: OtherEnd::default(),
            call: Some("read".to_owned()),
            address: None,
            is_gil: false,
            java: None,
            chain: Vec::new(),
            threads: BTreeMap::from([((7, file), SeenTime { time, looks: 1 })]),
        };
        let named: Vec<NamedWait> = (1..40).map(|file| wait(file, 10)).chain([wait(99, 200)]).collect();
        let works = HashSet::new();
        let rows: Vec<_> = super::rows(&named, &works)
            .into_iter()
            .map(|row| (row.what.unwrap(), row.time, row.threads))
            .collect();
        let of = |what: &str, time, threads| (what.to_owned(), time, threads);
        let working: HashSet<_> = HashSet::from([(7, 1), (7, 2), (7, 99)]);
        assert_eq!(rows, [of("39 files", 390, 39), of("/data/99", 200, 1)]);
        // Those of threads that work are not mixed with others.
        let rows = super::rows(&named, &working).into_iter();
        let rows: Vec<_> = rows.map(|row| (row.time, row.of_working, row.threads)).collect();
        assert_eq!(rows, [(370, 0, 37), (200, 200, 1), (20, 20, 2)]);

        let few: Vec<NamedWait> = (1..4).map(|file| wait(file, 10)).collect();
        assert_eq!(super::rows(&few, &works).len(), 3);
    }
}
