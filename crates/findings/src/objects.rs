//! The judgement on an object that samples saw: what is wrong with how it is used, what to do, and what that is worth.

pub(crate) mod layout;
pub(crate) mod remedy;
pub(crate) mod remote;
#[cfg(test)]
mod tests;

use crate::case::{Draft, percent};
use crate::finding::{
    Certainty, CostBasis, Finding, FindingCost, FindingEvidence, FindingRemedy, FindingSubject, Worth,
};
use crate::rules::{self, Judge, Rule, RuleKind};
use numakit_explain::object_use::ObjectUse;
use numakit_explain::remote_costs::{RemoteCosts, Slowdown};
use numakit_explain::{ExplainedObject, ObjectFacts, OpenLoops, SampledObject};
use numakit_model::thresholds::MIN_SAMPLES;
use std::borrow::Cow;

/// Objects with less of the time at memory are not worth a finding.
const MIN_SHARE: f64 = 0.02;
/// The part of an access that misses the TLB which finding its page takes, at most: the last entry of the page table comes
/// from memory once, as the data does.
const WALK: f64 = 0.5;
/// Why there is no share of time.
const NO_TIME: &str = "samples of this machine do not tell time";

/// The program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JudgedProgram<'a> {
    /// How to start it again.
    pub(crate) command: &'a str,
    /// Whether it runs already, and was not started for the observation.
    pub(crate) is_attached: bool,
    /// Its OpenMP loops that `numa run --loops adaptive` changes.
    pub(crate) open_loops: Option<OpenLoops>,
}

/// What a rule may look at: the use of an object.
#[derive(Debug)]
pub(crate) struct ObjectCase<'a> {
    /// Its place in the list of objects.
    pub(crate) place: u32,
    pub(crate) object: &'a SampledObject,
    pub(crate) used: &'a ObjectUse,
    pub(crate) facts: &'a ObjectFacts,
    /// Its part of the time of all objects at memory; where time cannot be told, of the pages in use.
    pub(crate) share: f64,
    pub(crate) program: JudgedProgram<'a>,
    /// What remote memory costs on the machine.
    pub(crate) costs: &'a RemoteCosts,
}

/// What a remedy can save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gain {
    /// The difference between remote and local memory.
    Distance,
    /// The time at contended lines.
    Contention,
    /// The walks through page tables beside the accesses.
    PageWalks,
    /// Those of all objects, where a command changes the pages of more than one.
    AllPageWalks,
    /// The time at the object.
    Waiting,
    /// The time at the object, and the page faults of memory that is not needed any more.
    Lines,
    /// Not known.
    Unknown,
}

/// A rule about objects.
const fn rule(name: &'static str, finds: &'static str, judge: fn(&ObjectCase<'_>) -> Option<Draft>) -> Rule {
    Rule { name, finds, kind: RuleKind::Problem, judge: Judge::Object(judge) }
}

/// The finding about an object; `None` where nothing is wrong, or too little is known.
pub(crate) fn judge(
    (place, object): (u32, &ExplainedObject),
    program: JudgedProgram<'_>,
    costs: &RemoteCosts,
) -> Option<Finding> {
    let ExplainedObject { object, facts, time_share, .. } = object;
    let case = ObjectCase { place, object, used: &facts.used, facts, share: *time_share, program, costs };
    let is_known = case.share >= MIN_SHARE && case.used.samples >= MIN_SAMPLES;
    is_known.then(|| rules::judge_object(&case)).flatten()
}

impl ObjectCase<'_> {
    /// The finding, without a command to try.
    fn draft(&self, says: impl Into<String>, change: impl Into<String>, gain: Gain) -> Draft {
        let worth = self.worth(gain);
        let cost = match worth.at_most {
            Some(share) => FindingCost::at_most(CostBasis::CpuTime, 100.0 * share),
            None => FindingCost::unknown(&worth.why),
        };
        let remedy = FindingRemedy { words: change.into(), worth: Some(worth), ..FindingRemedy::default() };
        Draft {
            subject: FindingSubject::Object(self.place),
            says: says.into(),
            cost,
            certainty: Certainty::Likely,
            evidence: self.evidence(),
            remedy,
        }
    }

    /// The shares that the finding rests on.
    fn evidence(&self) -> Vec<FindingEvidence> {
        let what = match self.facts.of_cpu_time {
            Some(_) => "time at memory",
            None => "pages in use",
        };
        let number = |series: &str, share: f64, says: String| FindingEvidence {
            series: series.to_owned(),
            value: 100.0 * share,
            says,
            course: Vec::new(),
        };
        let own =
            number("object.share", self.share, format!("{} of the {what}", percent(100.0 * self.share)));
        let remote = self.used.remote.map(|remote| {
            let [share, low, high] =
                [remote.share, remote.low, remote.high].map(|part| percent(100.0 * part));
            number("object.remote", remote.share, format!("{share} of that at other nodes ({low} to {high})"))
        });
        std::iter::once(own).chain(remote).collect()
    }

    fn worth(&self, gain: Gain) -> Worth {
        let unknown = |why: &str| Worth { at_most: None, why: why.to_owned() };
        let bound = |saved: f64, why: &str| match self.of_cpu_time(self.used.time.outside()) {
            Some(part) => Worth { at_most: Some(part * saved), why: why.to_owned() },
            None => unknown(NO_TIME),
        };
        match gain {
            Gain::Unknown => unknown("it is not known before it is tried"),
            Gain::Lines => {
                let waiting =
                    bound(1.0, "the time that threads wait for it, and page faults of what is not used");
                let kernel = self.facts.kernel.unwrap_or(0.0);
                Worth { at_most: waiting.at_most.map(|share| share + kernel), ..waiting }
            }
            Gain::PageWalks | Gain::AllPageWalks => {
                let (of, part) = match gain {
                    Gain::AllPageWalks => (" to any memory", self.share.max(f64::EPSILON)),
                    _ => ("", 1.0),
                };
                let why = format!(
                    "a miss of the TLB takes as long as the access{of} itself, at most, and fewer page faults save time of the \
                     kernel"
                );
                let accesses = bound(WALK, &why);
                let kernel = self.facts.kernel.unwrap_or(0.0);
                Worth { at_most: accesses.at_most.map(|share| (share / part + kernel).min(1.0)), ..accesses }
            }
            Gain::Waiting => bound(1.0, "the time that threads wait for it"),
            Gain::Contention => match self.of_cpu_time(self.used.time.contended) {
                Some(part) => Worth { at_most: Some(part), why: "the time at contended lines".to_owned() },
                None => unknown(NO_TIME),
            },
            Gain::Distance => match (self.of_cpu_time(self.used.time.remote), self.costs.slowdown(self.used))
            {
                (Some(part), Some(Slowdown { times, known_by })) => Worth {
                    at_most: Some(part * (1.0 - 1.0 / times)),
                    why: format!("remote memory takes {times:.1} times as long, {known_by}"),
                },
                (None, _) => unknown(NO_TIME),
                (_, None) => unknown(
                    "neither the distances of its nodes nor their measured latencies ('numa bench all') are known",
                ),
            },
        }
    }

    /// The part of all CPU time that a part of the time at the object is.
    fn of_cpu_time(&self, time: u64) -> Option<f64> {
        Some(self.facts.of_cpu_time? * time as f64 / self.used.time.outside().max(1) as f64)
    }
}

impl Draft {
    /// Adds a command to try now, and what it does where that is not what the words say.
    pub(crate) fn trying(
        mut self,
        command: impl Into<Option<String>>,
        expect: impl Into<Option<&'static str>>,
    ) -> Self {
        self.remedy.commands.extend(command.into());
        self.remedy.expect = expect.into().map(Cow::Borrowed).filter(|_| !self.remedy.commands.is_empty());
        self
    }
}
