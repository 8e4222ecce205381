//! The answer of an observation, judged: each object with the finding about it, and all findings in one list.

mod saved;

use crate::activity::ProgramActivity;
use crate::comparison::explained::without_addresses;
use crate::cure;
pub use crate::cure::SeparatedThreads;
use crate::fault_time::FaultCase;
use crate::finding::{Finding, FindingSubject, Worth};
use crate::next::{self, NextStep, ObservedAgain};
use crate::objects::{self, JudgedProgram};
use crate::rules::{self, RuleKind};
use crate::thread_waits::ThreadCase;
use crate::waits;
use numakit_cure::Cure;
use numakit_explain::objects::ObjectKind;
use numakit_explain::projection::Projection;
use numakit_explain::remote_costs::RemoteCosts;
use numakit_explain::{
    ExplainReport, Explained, ExplainedObject, ProjectedFacts, Regime, SampleCounts, SampledObject,
    lacks_words,
};
use numakit_model::numbers::{ABSENT, NumberStyle, duration};
use numakit_model::thresholds::MIN_SAMPLES;
use serde::{Serialize, Serializer};
use std::cmp::Reverse;

/// The content of a result file.
#[derive(Debug)]
pub struct JudgedReport {
    /// All that was observed, except the objects.
    pub report: ExplainReport,
    /// The objects. Those with a finding come first, and other values name them by their place here.
    pub objects: Vec<JudgedObject>,
    /// What is wrong, the most important first. The findings of the objects are among these.
    pub findings: Vec<Finding>,
    /// What the run would be on another machine, if the user asked for that.
    pub projected: Option<JudgedProjection>,
    /// What to type next, the most valuable first.
    pub next: Vec<NextStep>,
    /// Which policies the objects get by `numa run --apply`; `None` until the observation has ended.
    pub cure: Option<Cure>,
}

impl Serialize for JudgedReport {
    /// Serializes it with what the program does: `activity`, and `too_few_samples`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Keys<'a> {
            #[serde(flatten)]
            report: &'a ExplainReport,
            objects: &'a [JudgedObject],
            findings: &'a [Finding],
            projected: &'a Option<JudgedProjection>,
            next: &'a [NextStep],
            cure: &'a Option<Cure>,
            activity: ProgramActivity<'a>,
            too_few_samples: Option<String>,
        }
        let Self { report, objects, findings, projected, next, cure } = self;
        let (activity, too_few_samples) = (self.activity(), self.too_few_samples());
        Keys { report, objects, findings, projected, next, cure, activity, too_few_samples }
            .serialize(serializer)
    }
}

/// What the same run would be on another machine.
#[derive(Debug, Serialize)]
pub struct JudgedProjection {
    /// Everything except the objects.
    #[serde(flatten)]
    pub projection: Projection,
    /// The objects. Those with a finding come first.
    pub objects: Vec<JudgedObject>,
}

/// An object, and what is wrong with how it is used.
#[derive(Debug)]
pub struct JudgedObject {
    /// What it is and how it is used.
    pub object: ExplainedObject,
    /// What is wrong, if anything is.
    pub finding: Option<Finding>,
}

impl JudgedObject {
    /// The name of the object; with its size where others of these have the same name.
    pub fn distinct_name(&self, all: &[Self]) -> String {
        let SampledObject { name, size, .. } = &self.object.object;
        match all.iter().filter(|other| other.object.object.name == *name).count() {
            0 | 1 => name.clone(),
            _ if *size == 0 => format!("{name}, {ABSENT}"),
            _ => format!("{name}, {}", NumberStyle::Bytes.words(*size as f64)),
        }
    }

    /// Whether nothing is known of it: it is memory that only its address names, and nothing is wrong with its use.
    pub fn is_unknown(&self) -> bool {
        let SampledObject { kind, name, .. } = &self.object.object;
        self.finding.is_none() && *kind == ObjectKind::Mapping && without_addresses(name) != *name
    }
}

impl Serialize for JudgedObject {
    /// Serializes the object, with the parts of its finding as keys of its own: `verdict`, `do`, `try`, `expect` and
    /// `worth`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Verdict<'a> {
            rule: &'a str,
            says: &'a str,
        }
        #[derive(Serialize)]
        struct Keys<'a> {
            #[serde(flatten)]
            object: &'a ExplainedObject,
            verdict: Option<Verdict<'a>>,
            r#do: Option<&'a str>,
            r#try: Option<&'a String>,
            expect: Option<&'a str>,
            worth: Option<&'a Worth>,
        }
        let finding = self.finding.as_ref();
        let remedy = finding.map(|finding| &finding.remedy);
        let keys = Keys {
            object: &self.object,
            verdict: finding.map(|Finding { rule, says, .. }| Verdict { rule, says }),
            r#do: remedy.map(|remedy| remedy.words.as_str()),
            r#try: remedy.and_then(|remedy| remedy.commands.first()),
            expect: remedy.and_then(|remedy| remedy.expect.as_deref()),
            worth: remedy.and_then(|remedy| remedy.worth.as_ref()),
        };
        keys.serialize(serializer)
    }
}

/// What to do for more samples.
const LONGER: &str = "observe it while it works, for longer (--for), or with more samples (-F)";
/// From this CPU time on, in ns, the kernel's account of its own part is good enough: some of its ticks.
const MIN_ACCOUNTED: u64 = 50_000_000;
/// Where this many times the samples that are needed should have come, the method does not deliver them.
const MISSING: f64 = 2.0;
/// What saves a smaller part of the CPU time at most is not the cause.
const MIN_CAUSE: f64 = 0.05;

/// Why there are too few samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FewSamples {
    /// This many were lost.
    Lost(u64),
    /// The method did not deliver them.
    Method,
    /// The program used too little CPU time.
    Idle,
    /// It got too little CPU time, as a finding says.
    Starved,
}

impl JudgedReport {
    /// The finding that matters most, by its place in the list; `None` if nothing that was found saves much.
    pub fn cause(&self) -> Option<usize> {
        let others = self.others();
        others.filter(|place| *place == 0).or_else(|| self.own_cause()).or(others)
    }

    /// What is said beside the cause: of the program itself, where other programs matter more; else what others do.
    pub fn beside_cause(&self) -> Option<usize> {
        let cause = self.cause()?;
        let beside = if self.findings[cause].is_of_others() { self.own_cause() } else { self.others() };
        beside.filter(|place| *place != cause)
    }

    /// The finding about what other programs do.
    fn others(&self) -> Option<usize> {
        self.findings.iter().position(Finding::is_of_others)
    }

    /// The finding that matters most of those about the program itself.
    pub(crate) fn own_cause(&self) -> Option<usize> {
        let first = self.findings.iter().position(|finding| !finding.is_of_others())?;
        if self.findings[first].subject == FindingSubject::Program {
            return Some(first);
        }
        let bound = |finding: &Finding| finding.remedy.worth.as_ref().and_then(|worth| worth.at_most);
        let found = self.objects.iter().filter_map(|judged| judged.finding.as_ref());
        // Of equal ones the first costs most.
        let most = found.rev().max_by(|a, b| bound(a).unwrap_or(0.0).total_cmp(&bound(b).unwrap_or(0.0)))?;
        if bound(most).is_some_and(|share| share < MIN_CAUSE) {
            return None;
        }
        self.findings.iter().position(|finding| finding.subject == most.subject)
    }

    /// Why next to nothing was seen: calm is not what that shows. `None` where there are enough samples, or where the kernel did
    /// most of the work, which its own account says.
    pub fn few_samples(&self) -> Option<FewSamples> {
        let ExplainReport { explanation, missing, rate, .. } = &self.report;
        let seen = explanation.samples.total;
        let (user, kernel) = (explanation.threads.user, explanation.threads.kernel);
        if seen >= MIN_SAMPLES || kernel > user && user + kernel >= MIN_ACCOUNTED {
            return None;
        }
        let lost = missing.lost + missing.thinned + missing.late;
        Some(if seen + lost >= MIN_SAMPLES {
            // A few lost ones are not the reason.
            FewSamples::Lost(lost)
        } else if user as f64 / 1e9 * rate >= MISSING * MIN_SAMPLES as f64 {
            FewSamples::Method
        } else if self.findings.iter().any(waits::says_cpu_waits) {
            FewSamples::Starved
        } else {
            FewSamples::Idle
        })
    }

    /// Threads that use the same data on different nodes, and that `numa run --apply` would bring together; `None` where there are none.
    pub fn separated_threads(&self) -> Option<SeparatedThreads> {
        self.report.explanation.sharing.as_ref().and_then(cure::separated)
    }

    /// Whether too few samples were at memory outside of the caches for shares of objects.
    pub fn has_few_at_memory(&self) -> bool {
        let SampleCounts { recovered, in_cache, .. } = self.report.explanation.samples;
        self.report.regime == Regime::Precise && recovered.saturating_sub(in_cache) < MIN_SAMPLES
    }

    /// The same in words, with what to do.
    pub fn too_few_samples(&self) -> Option<String> {
        let ExplainReport { explanation, seconds, method, .. } = &self.report;
        let used = duration((explanation.threads.user + explanation.threads.kernel) as f64 / 1e9);
        let (why, action) = match self.few_samples()? {
            FewSamples::Lost(lost) => (format!("{lost} samples were lost"), LONGER),
            FewSamples::Method => (
                format!("its threads used {used} of CPU time, but hardly any sample {method} came"),
                "use another --method; 'numa doctor' says which are permitted here",
            ),
            FewSamples::Idle => {
                (format!("its threads used {used} of CPU time in {}", duration(*seconds)), LONGER)
            }
            FewSamples::Starved => (
                format!("its threads got {used} of CPU time in {}", duration(*seconds)),
                "observe it again when it gets CPUs",
            ),
        };
        let seen = explanation.samples.total;
        Some(format!("Too few samples to tell what it does: {seen}, since {why}; {action}"))
    }
}

/// Judges what an observation found; `again` is how it is repeated.
pub fn judge(explained: Explained, again: &ObservedAgain) -> JudgedReport {
    let waits = waits::judge(&explained).into_iter();
    let of_threads = rules::judge_threads(&ThreadCase::new(&explained));
    let of_faults = FaultCase::new(&explained).and_then(|case| rules::judge_faults(&case));
    let of_program = waits.chain(of_threads).chain(of_faults).collect();
    let Explained { mut report, objects, command, attached, open_loops, costs, projected, cured, .. } =
        explained;
    let program = JudgedProgram { command: &command, is_attached: !attached.is_empty(), open_loops };
    let (places, mut objects) = judged(objects, program, &costs);
    report.explanation.renumber_objects(&places);
    let cure =
        cured.map(|program| cure::of(&objects, program, &command, report.explanation.sharing.as_ref()));
    // What is kept here is not there for programs in a container.
    let word = again.cure.as_ref().filter(|_| !again.is_contained);
    if again.is_running {
        cure::advise_moving(&mut objects, &again.target);
    } else if let Some((cure, word)) = cure.as_ref().zip(word) {
        cure::advise(&mut objects, cure, &format!("numa run --apply {word} {command}"));
    }
    let projected = projected.map(|ProjectedFacts { projection, objects, costs }| {
        let (_, objects) = judged(objects, program, &costs);
        JudgedProjection { projection, objects }
    });
    let findings = ranked(of_program, &objects);
    let mut judged = JudgedReport { report, findings, objects, projected, next: Vec::new(), cure };
    judged.next = next::steps(&judged, again, (!lacks_words(&command)).then_some(&command));
    judged
}

/// The objects with their findings and in their new order, and the old place of each.
fn judged(
    objects: Vec<ExplainedObject>,
    program: JudgedProgram<'_>,
    costs: &RemoteCosts,
) -> (Vec<u32>, Vec<JudgedObject>) {
    let judged = |(place, object): (u32, ExplainedObject)| {
        let finding = objects::judge((place, &object), program, costs);
        (place, JudgedObject { object, finding })
    };
    let mut all: Vec<(u32, JudgedObject)> = (0..).zip(objects).map(judged).collect();
    all.sort_by_key(|(place, object)| (Reverse(order(object)), *place));
    let (places, mut objects): (Vec<u32>, Vec<JudgedObject>) = all.into_iter().unzip();
    for (new, object) in (0..).zip(&mut objects) {
        if let Some(finding) = &mut object.finding {
            finding.subject = FindingSubject::Object(new);
        }
    }
    (places, objects)
}

/// The key by which objects are sorted. Those with a finding come first, by the part of the time that the finding is about;
/// the others follow by their part of the time.
fn order(JudgedObject { object, finding }: &JudgedObject) -> (u64, u64) {
    let millionths = |share: f64| (share * 1e6) as u64;
    let about = object.remote.map_or(0.0, |remote| remote.share).max(object.contended);
    let judged = finding.as_ref().map_or(0, |_| 1 + millionths(object.time_share * about));
    (judged, millionths(object.time_share))
}

/// The findings of the program and of its objects, the most important first.
fn ranked(of_program: Vec<Finding>, objects: &[JudgedObject]) -> Vec<Finding> {
    let of_objects = objects.iter().filter_map(|object| object.finding.clone());
    let findings = of_program.into_iter().chain(of_objects);
    let mut found: Vec<(RuleKind, Finding)> = findings.map(|finding| (RuleKind::Problem, finding)).collect();
    rules::sort(&mut found);
    found.into_iter().map(|(_, finding)| finding).collect()
}
