//! What is wrong with how an object is used, and what to do about it: a table of rules.

mod far;
mod far_costs;
mod layout;
mod remedy;

pub use self::far_costs::FarCosts;
pub use self::remedy::ProgramRuntime;

use self::far_costs::Slowdown;
use crate::contended::Sharing;
use crate::memory_policies::MemoryBinding;
use crate::object_use::ObjectUse;
use crate::report::SampledObject;
use crate::walk::MemoryWalk;
use serde::Serialize;

/// Objects with less of the time at memory are not worth a verdict.
const MIN_SHARE: f64 = 0.02;
/// The part of an access that misses the TLB which finding its page takes, at most: the last entry of the page table comes
/// from memory once, as the data does.
const WALK: f64 = 0.5;
/// With fewer samples nothing is said.
pub(crate) const MIN_SAMPLES: u64 = 30;

/// What is known of an object.
#[derive(Debug)]
pub struct ObjectEvidence<'a> {
    /// Its use.
    pub used: &'a ObjectUse,
    /// What it is.
    pub object: &'a SampledObject,
    /// How instructions walk through it.
    pub walk: Option<&'a MemoryWalk>,
    /// What its most contended line is contended for.
    pub sharing: Option<Sharing>,
    /// What threads use of that line, where it is known.
    pub fields: Vec<&'a str>,
    /// Its part of the time of all objects at memory; where time cannot be told, of the pages in use.
    pub share: f64,
    /// The part of all CPU time that waited for it; `None` where time cannot be told.
    pub of_cpu_time: Option<f64>,
    /// The part of all CPU time that was in the kernel, where that can be told.
    pub kernel: Option<f64>,
    /// The part of its process's memory that is in huge pages, if that is known.
    pub huge_pages: Option<f64>,
    /// What binds most of its memory to nodes, if anything is known to.
    pub bound: Option<&'a MemoryBinding>,
    /// What the program is written with.
    pub runtime: ProgramRuntime,
    /// How to start it again.
    pub command: &'a str,
}

/// A finding about an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ObjectVerdict {
    /// The rule that applies.
    pub rule: &'static str,
    /// What it found, as a sentence without its end.
    pub says: String,
}

/// What to do about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Remedy {
    /// The change in the source.
    pub change: String,
    /// A command to try now, if there is one.
    pub command: Option<String>,
    /// What that command does: not always what the change in the source does.
    pub expect: Option<&'static str>,
    /// What that can be worth.
    pub worth: Worth,
}

/// An upper bound of a gain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Worth {
    /// Of all CPU time, between 0 and 1; `None` if it cannot be told.
    pub at_most: Option<f64>,
    /// How that was found, or why it was not.
    pub why: String,
}

/// A rule: when it applies, and what it says then.
struct Rule {
    word: &'static str,
    /// What is seen when it applies.
    seen: &'static str,
    applies: fn(&ObjectEvidence<'_>) -> bool,
    says: fn(&ObjectEvidence<'_>) -> String,
    change: fn(&ObjectEvidence<'_>) -> String,
    command: fn(&ObjectEvidence<'_>) -> Option<String>,
    /// What the command does, of rules that have one.
    expect: fn(&ObjectEvidence<'_>) -> Option<&'static str>,
    gain: Gain,
}

/// What a remedy can save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gain {
    /// The difference between far and near memory.
    Distance,
    /// The time at contended lines.
    Contention,
    /// The walks through page tables beside the accesses.
    PageWalks,
    /// The time at the object.
    Waiting,
    /// Not known.
    Unknown,
}

/// The rules; the first one that applies is the verdict.
const RULES: [&[Rule]; 2] = [&far::RULES, &layout::RULES];

/// The words of all verdicts and what is seen then, in the order in which they are tried.
pub fn rules() -> impl Iterator<Item = (&'static str, &'static str)> {
    RULES.into_iter().flatten().map(|rule| (rule.word, rule.seen))
}

/// The verdict on an object; `None` where nothing is wrong, or too little is known.
pub fn of(evidence: &ObjectEvidence<'_>, costs: &FarCosts) -> Option<(ObjectVerdict, Remedy)> {
    if evidence.share < MIN_SHARE || evidence.used.samples < MIN_SAMPLES {
        return None;
    }
    let rule = RULES.iter().copied().flatten().find(|rule| (rule.applies)(evidence))?;
    let verdict = ObjectVerdict { rule: rule.word, says: (rule.says)(evidence) };
    let (change, command) = ((rule.change)(evidence), (rule.command)(evidence));
    let expect = command.as_ref().and_then(|_| (rule.expect)(evidence));
    Some((verdict, Remedy { change, command, expect, worth: worth(rule.gain, evidence, costs) }))
}

fn worth(gain: Gain, evidence: &ObjectEvidence<'_>, costs: &FarCosts) -> Worth {
    let unknown = |why: &str| Worth { at_most: None, why: why.to_owned() };
    let times = &evidence.used.time;
    let part = |time: u64| Some(evidence.of_cpu_time? * time as f64 / times.outside().max(1) as f64);
    let bound = |saved: f64, why: &str| match part(times.outside()) {
        Some(part) => Worth { at_most: Some(part * saved), why: why.to_owned() },
        None => unknown("samples of this machine do not tell time"),
    };
    match gain {
        Gain::Unknown => unknown("it is not known before it is tried"),
        Gain::PageWalks => {
            let why = "a miss of the TLB takes as long as the access itself, at most, and fewer page faults save time of the \
                       kernel";
            let accesses = bound(WALK, why);
            Worth {
                at_most: accesses.at_most.map(|share| share + evidence.kernel.unwrap_or(0.0)),
                ..accesses
            }
        }
        Gain::Waiting => bound(1.0, "the time that threads wait for it"),
        Gain::Contention => match part(times.contended) {
            Some(part) => Worth { at_most: Some(part), why: "the time at contended lines".to_owned() },
            None => unknown("samples of this machine do not tell time"),
        },
        Gain::Distance => match (part(times.far), costs.slowdown(evidence.used)) {
            (Some(part), Some(Slowdown { times, known_by })) => Worth {
                at_most: Some(part * (1.0 - 1.0 / times)),
                why: format!("remote memory takes {times:.1} times as long, {known_by}"),
            },
            (None, _) => unknown("samples of this machine do not tell time"),
            (_, None) => {
                unknown("the firmware has no distances, and 'numa bench all' has not measured this machine")
            }
        },
    }
}

#[cfg(test)]
mod tests;
