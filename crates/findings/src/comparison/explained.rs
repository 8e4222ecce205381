//! What differs between two results of the same program, before and after a change.
//!
//! A difference counts if the 95 % intervals of the two values do not overlap. Results hold intervals for far shares;
//! for other shares they are computed here from the samples, which are not independent within 100 ms of a thread.

mod judged;
pub mod kept;
pub mod saved;

pub use judged::ComparedFinding;

use super::RECORDINGS_VARY;
use numakit_explain::TimeShares;
use numakit_explain::code::PlaceTimes;
use numakit_explain::contended::Sharing;
use numakit_explain::share::{self, ShareEstimate};
use saved::SavedResult;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Two caches that differ by less than this factor are the same: the share of the last level depends on the threads.
const SAME_CACHE: f64 = 1.05;

/// The part of the time that the kernel counts, and does not sample.
const KERNEL: &str = "kernel";
/// Parts of the CPU time, in ns, in which the kernel's part is taken to vary: its account is exact, but runs differ.
const COUNTED: u64 = 20_000_000;

/// What a share that changed is a part of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "kind", content = "name", rename_all = "kebab-case")]
pub enum ChangedShare {
    /// A part of the CPU time, by its name in the file.
    Time(&'static str),
    /// A part of the time of all threads in which they did not run.
    Threads(&'static str),
    /// Far memory in the time at memory.
    #[serde(rename = "remote-share")]
    Far,
    /// An object in the time at memory.
    Object(String),
    /// The part of the time at an object that is at other nodes.
    Remote(String),
    /// The contended lines of an object in the CPU time.
    Line(String, Sharing),
    /// A function in the CPU time.
    Function(String),
}

/// A share before and after.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShareChange {
    /// What it is of.
    pub what: ChangedShare,
    /// Before.
    pub before: ShareEstimate,
    /// After.
    pub after: ShareEstimate,
}

impl ShareChange {
    /// Whether the intervals do not overlap.
    pub fn is_beyond_noise(&self) -> bool {
        self.before.interval().is_apart_from(self.after.interval())
    }

    fn size(&self) -> f64 {
        (self.after.share - self.before.share).abs()
    }
}

/// Why two results may differ for other reasons than a change of the program; before, after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", content = "of", rename_all = "kebab-case")]
pub enum UnlikeResults {
    /// The results are of different programs or command lines.
    Program(String, String),
    /// The results are of different machines.
    Machine(String, String),
    /// Samples of the two results mean different things.
    Regime,
    /// Samples of the two results were taken by different methods.
    Method(String, String),
    /// Only one of the results distinguishes near from far memory.
    Nodes,
    /// An observation had not ended when its result was written.
    Incomplete(bool, bool),
}

/// What two results say together: the JSON of `numa show --json A B` for results of `numa explain`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ResultComparison {
    /// What else differs.
    pub unlike: Vec<UnlikeResults>,
    /// Length of the observations in seconds. There is one run of each, so this has no interval.
    pub seconds: (f64, f64),
    /// CPU time of all threads in ns. This has no interval either.
    pub cpu_time: (u64, u64),
    /// Findings of the result before that the one after does not have.
    pub gone: Vec<ComparedFinding>,
    /// Findings of the result after that the one before does not have.
    pub new: Vec<ComparedFinding>,
    /// What changed beyond noise. Parts of the time come first; of each kind, the share that changed most comes first.
    pub changes: Vec<ShareChange>,
    /// How many shares were compared.
    pub compared: usize,
    /// Values that one of the results does not have, by their names.
    pub absent: BTreeSet<&'static str>,
}

impl ResultComparison {
    /// The CPU time after, as a multiple of that before; `None` if there was none before.
    pub fn cpu_factor(&self) -> Option<f64> {
        let (before, after) = self.cpu_time;
        (before > 0).then(|| after as f64 / before as f64)
    }

    /// Whether one run takes as much CPU time as the other, as far as one run of each tells.
    pub fn is_as_fast(&self) -> bool {
        let (before, after) = self.cpu_time;
        before.abs_diff(after) as f64 <= RECORDINGS_VARY * before.max(after) as f64
    }
}

/// Compares two results.
pub fn compare(before: &SavedResult, after: &SavedResult) -> ResultComparison {
    let mut absent = BTreeSet::new();
    let mut shares = times(before, after, &mut absent);
    match (before.remote_share, after.remote_share) {
        (Some(before), Some(after)) => shares.push(ShareChange { what: ChangedShare::Far, before, after }),
        // On one node, no memory is remote.
        (None, None) => {}
        _ => _ = absent.insert("remote share"),
    }
    // Shares of time can only be compared if samples mean the same in both results.
    if before.regime == after.regime {
        let parts = [
            objects(before, after, &mut absent),
            remote(before, after),
            lines(before, after),
            functions(before, after),
        ];
        shares.extend(parts.into_iter().flatten());
    }
    let compared = shares.len();
    let mut changes: Vec<ShareChange> = shares.into_iter().filter(ShareChange::is_beyond_noise).collect();
    // Parts of the time stay in the order of the first line.
    let size = |change: &ShareChange| if group(&change.what) == 0 { 0.0 } else { change.size() };
    changes.sort_by(|one, other| {
        group(&one.what).cmp(&group(&other.what)).then(size(other).total_cmp(&size(one)))
    });
    let [gone, new] = judged::changed(before, after, &mut absent);
    ResultComparison {
        gone,
        new,
        unlike: unlike(before, after),
        seconds: (before.seconds, after.seconds),
        cpu_time: (cpu_time(before), cpu_time(after)),
        changes,
        compared,
        absent,
    }
}

fn group(what: &ChangedShare) -> u8 {
    match what {
        ChangedShare::Time(_) => 0,
        ChangedShare::Far => 1,
        ChangedShare::Object(_) => 2,
        ChangedShare::Remote(_) => 3,
        ChangedShare::Line(..) => 4,
        ChangedShare::Function(_) => 5,
        ChangedShare::Threads(_) => 6,
    }
}

fn cpu_time(result: &SavedResult) -> u64 {
    result.threads.user.saturating_add(result.threads.kernel)
}

fn unlike(before: &SavedResult, after: &SavedResult) -> Vec<UnlikeResults> {
    let mut found = Vec::new();
    let both = |one: &str, other: &str| (one.to_owned(), other.to_owned());
    if !before.is_run_of(after) {
        let (one, other) = both(&before.program, &after.program);
        found.push(UnlikeResults::Program(one, other));
    }
    if let Some((one, other)) = machines(before, after) {
        found.push(UnlikeResults::Machine(one, other));
    }
    if before.regime != after.regime {
        found.push(UnlikeResults::Regime);
    }
    if before.method != after.method {
        let (one, other) = both(&before.method, &after.method);
        found.push(UnlikeResults::Method(one, other));
    }
    if before.regime == after.regime && before.remote_share.is_some() != after.remote_share.is_some() {
        found.push(UnlikeResults::Nodes);
    }
    if !before.complete || !after.complete {
        found.push(UnlikeResults::Incomplete(before.complete, after.complete));
    }
    found
}

/// Two machines, by their names, or by their private caches if the results do not name them.
fn machines(before: &SavedResult, after: &SavedResult) -> Option<(String, String)> {
    if let (Some(one), Some(other)) = (&before.machine, &after.machine) {
        return (one != other).then(|| (one.clone(), other.clone()));
    }
    let [one, other] = [before, after].map(|result| result.caches.private);
    let factor = one.max(other) as f64 / one.min(other).max(1) as f64;
    let named = |size: u64| format!("private caches of {} KiB", size >> 10);
    (one > 0 && other > 0 && factor > SAME_CACHE).then(|| (named(one), named(other)))
}

/// The interval of a share of the CPU time of a result.
fn estimate(result: &SavedResult, share: f64, samples: u64) -> ShareEstimate {
    let clusters = (cpu_time(result) / share::CLUSTER).clamp(1, samples.max(1));
    ShareEstimate::of_samples(share.clamp(0.0, 1.0), clusters as f64)
}

fn times(before: &SavedResult, after: &SavedResult, absent: &mut BTreeSet<&'static str>) -> Vec<ShareChange> {
    let (Some(one), Some(other)) = (before.time, after.time) else {
        absent.insert("shares of time");
        return Vec::new();
    };
    let of = |result: &SavedResult, what: &ChangedShare, share: f64| match what {
        ChangedShare::Time(KERNEL) | ChangedShare::Threads(_) => {
            let parts = (cpu_time(result) / COUNTED).max(1);
            ShareEstimate::of_samples(share.clamp(0.0, 1.0), parts as f64)
        }
        _ => estimate(result, share, result.samples.total),
    };
    let pair = |((what, one), (_, other)): ((ChangedShare, f64), (ChangedShare, f64))| {
        let (before, after) = (of(before, &what, one), of(after, &what, other));
        ShareChange { what, before, after }
    };
    parts(one).into_iter().zip(parts(other)).map(pair).collect()
}

/// The parts of the CPU time, and those of the time of all threads in which they did not run.
fn parts(time: TimeShares) -> [(ChangedShare, f64); 9] {
    use ChangedShare::{Threads, Time};
    let cpu = (1.0 - time.runnable - time.asleep).max(1e-9);
    [
        (Time("computing"), time.computing / cpu),
        (Time("caches"), time.cached / cpu),
        (Time("local memory"), time.local / cpu),
        (Time("remote memory"), time.remote / cpu),
        (Time("memory of unknown node"), time.unknown / cpu),
        (Time("contended lines"), time.contended / cpu),
        (Time(KERNEL), time.kernel / cpu),
        (Threads("runnable without a CPU"), time.runnable),
        (Threads("asleep"), time.asleep),
    ]
}

/// The shares of both results by name. Shares with the same name are added; a name that one result does not have was not
/// sampled there.
fn pairs<K: Ord + Clone>(
    before: (&SavedResult, BTreeMap<K, f64>, u64),
    after: (&SavedResult, BTreeMap<K, f64>, u64),
    what: impl Fn(K) -> ChangedShare,
) -> Vec<ShareChange> {
    let names: BTreeSet<K> = before.1.keys().chain(after.1.keys()).cloned().collect();
    let of = |(result, shares, samples): &(&SavedResult, BTreeMap<K, f64>, u64), name: &K| {
        estimate(result, shares.get(name).copied().unwrap_or(0.0), *samples)
    };
    let pair = |name: K| {
        let (before, after) = (of(&before, &name), of(&after, &name));
        ShareChange { what: what(name), before, after }
    };
    names.into_iter().map(pair).collect()
}

/// The name without addresses, so that it is the same in each run.
pub(crate) fn without_addresses(name: &str) -> String {
    let mut parts = name.split(" at 0x");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push_str(part.trim_start_matches(|letter: char| letter.is_ascii_hexdigit()));
    }
    kept
}

fn objects(
    before: &SavedResult,
    after: &SavedResult,
    absent: &mut BTreeSet<&'static str>,
) -> Vec<ShareChange> {
    let shares = |result: &SavedResult| {
        let mut sums: BTreeMap<String, f64> = BTreeMap::new();
        for object in &result.objects {
            *sums.entry(without_addresses(&object.name)).or_default() += object.time_share?;
        }
        Some(sums)
    };
    let (Some(one), Some(other)) = (shares(before), shares(after)) else {
        absent.insert("time at objects");
        return Vec::new();
    };
    pairs((before, one, before.samples.memory), (after, other, after.samples.memory), ChangedShare::Object)
}

/// The changed remote shares of objects. Of several objects with one name, such as those of several processes, the one with
/// most time counts.
fn remote(before: &SavedResult, after: &SavedResult) -> Vec<ShareChange> {
    let of = |result: &SavedResult| {
        let mut first: BTreeMap<String, (f64, ShareEstimate)> = BTreeMap::new();
        for object in &result.objects {
            let Some(remote) = object.remote else { continue };
            let share = object.time_share.unwrap_or(0.0);
            let known = first.entry(without_addresses(&object.name)).or_insert((share, remote));
            if share > known.0 {
                *known = (share, remote);
            }
        }
        first
    };
    let other = of(after);
    let pair = |(name, (_, before)): (String, (f64, ShareEstimate))| {
        let after = other.get(&name)?.1;
        Some(ShareChange { what: ChangedShare::Remote(name), before, after })
    };
    of(before).into_iter().filter_map(pair).collect()
}

/// The sum of values of a file, which may be anything.
fn total(time: &PlaceTimes) -> f64 {
    let PlaceTimes { computing, private_cache, shared_cache, contended, local, remote, unknown } = *time;
    [computing, private_cache, shared_cache, contended, local, remote, unknown]
        .map(|part| part as f64)
        .iter()
        .sum()
}

fn sampled(result: &SavedResult) -> f64 {
    result.functions.iter().map(|code| total(&code.time)).sum()
}

fn lines(before: &SavedResult, after: &SavedResult) -> Vec<ShareChange> {
    let shares = |result: &SavedResult| {
        let mut sums: BTreeMap<(String, Sharing), f64> = BTreeMap::new();
        let all = sampled(result).max(1.0);
        for line in &result.lines {
            let object = line.object.and_then(|at| result.objects.get(at as usize));
            let name = without_addresses(object.map_or("unknown memory", |object| &object.name));
            *sums.entry((name, line.sharing)).or_default() += line.weight as f64 / all;
        }
        sums
    };
    let what = |(name, sharing)| ChangedShare::Line(name, sharing);
    pairs((before, shares(before), before.samples.total), (after, shares(after), after.samples.total), what)
}

fn functions(before: &SavedResult, after: &SavedResult) -> Vec<ShareChange> {
    let shares = |result: &SavedResult| {
        let mut sums: BTreeMap<String, f64> = BTreeMap::new();
        let all = sampled(result).max(1.0);
        for code in &result.functions {
            let name = code.name.function.clone().unwrap_or_else(|| format!("code of {}", code.name.module));
            *sums.entry(name).or_default() += total(&code.time) / all;
        }
        sums
    };
    let of = |result| (result, shares(result), result.samples.total);
    pairs(of(before), of(after), ChangedShare::Function)
}

#[cfg(test)]
mod tests;
