//! What a rule may look at: the sums of the selected time, and how the share that it follows developed.

use crate::course::Watched;
use crate::facts::Facts;
use crate::finding::{
    Certainty, CostBasis, Finding, FindingCost, FindingEvidence, FindingRemedy, FindingSubject,
};
use crate::rules::Rule;
use crate::tally::{LevelBytes, Tally};
use numakit_formulas::Index;
use numakit_model::Instance;
use numakit_model::numbers::NumberStyle;

/// If the program used at least this share of the busy CPU time, in percent, the machine's values are taken for the
/// program's.
const MOST: f64 = 50.0;

/// A finding that costs less CPU time than this, in CPUs, is not worth telling. A program that leaks 43 MiB a second spends
/// .027 CPUs in page faults of 2.3 us; that it grows is what its owner must know.
const WORTH: f64 = 0.05;

/// With less CPU time than this, in seconds, the samples of a program (200 for each second of CPU time) are too few to tell
/// anything.
const MIN_SECONDS: f64 = 0.25;

/// A rule at one place.
pub(crate) struct Case<'a> {
    pub(crate) facts: &'a Facts<'a>,
    pub(crate) watched: &'a Watched<Rule>,
    pub(crate) tally: &'a Tally,
    pub(crate) index: &'a Index<'a>,
}

/// A finding before its rule and its times are added.
pub(crate) struct Draft {
    pub(crate) subject: FindingSubject,
    pub(crate) says: String,
    pub(crate) cost: FindingCost,
    pub(crate) certainty: Certainty,
    pub(crate) evidence: Vec<FindingEvidence>,
    pub(crate) remedy: FindingRemedy,
}

impl Case<'_> {
    /// The place of this case.
    pub(crate) fn place(&self) -> Instance {
        self.watched.place
    }

    /// The formula that the rule follows.
    pub(crate) fn formula(&self) -> &'static str {
        self.watched.formula
    }

    /// A formula over the whole time, at the place of this case.
    pub(crate) fn rate(&self, formula: &str) -> Option<f64> {
        self.facts.rate(formula, self.place())
    }

    /// A formula over the whole time, of the machine.
    pub(crate) fn overall(&self, formula: &str) -> Option<f64> {
        self.facts.rate(formula, Instance::Machine)
    }

    /// The increase of a metric of the machine.
    pub(crate) fn count(&self, metric: &str) -> Option<f64> {
        self.facts.count(metric, Instance::Machine)
    }

    /// How a level of memory changed at a place.
    pub(crate) fn memory(&self, metric: &str, place: Instance) -> Option<LevelBytes> {
        self.tally.memory(self.index, metric, place)
    }

    /// Whether the recording has values of the observed program itself.
    pub(crate) fn has_program(&self) -> bool {
        self.overall("task_cpu").is_some()
    }

    /// Whether samples say whose memory the program uses: counters of the machine, and who allocated it, say less.
    pub(crate) fn is_use_known(&self) -> bool {
        self.overall("remote_time_share").or_else(|| self.overall("remote_pages_share")).is_some()
    }

    /// The number of CPUs that the machine has, or that had values.
    pub(crate) fn cpus(&self) -> f64 {
        let known = self.facts.topology().map(|t| t.online.len() as f64).filter(|&n| n > 0.0);
        known.or_else(|| self.overall("cpu_time")).unwrap_or(1.0)
    }

    /// The busy CPU time of the machine, in CPUs.
    pub(crate) fn busy(&self) -> Option<f64> {
        Some(self.overall("cpu_time")? * (1.0 - self.overall("idle")? / 100.0))
    }

    /// Whether a share of the program's CPU time, or of the machine's without a program, is worth a finding.
    pub(crate) fn is_worth(&self, share: f64) -> bool {
        self.is_worth_of(share, self.overall("task_cpu").or_else(|| self.busy()))
    }

    /// Whether this share of a number of CPUs is worth a finding. If their number is not known, it is.
    pub(crate) fn is_worth_of(&self, share: f64, cpus: Option<f64>) -> bool {
        cpus.is_none_or(|cpus| cpus * share / 100.0 >= WORTH)
    }

    /// Whether the program ran long enough for its samples to tell something.
    pub(crate) fn has_run(&self) -> bool {
        self.overall("task_cpu").is_some_and(|cpus| cpus * self.facts.seconds >= MIN_SECONDS)
    }

    /// Who caused the machine's values: the program, if it used most of the CPU time.
    pub(crate) fn owner(&self) -> FindingSubject {
        let share = self.overall("task_cpu").zip(self.busy()).map(|(own, all)| 100.0 * own / all.max(0.01));
        if share.is_some_and(|share| share >= MOST) {
            FindingSubject::Program
        } else {
            FindingSubject::Machine
        }
    }

    /// A formula at the place of this case as evidence, with its course if it is the rule's own.
    pub(crate) fn evidence(&self, formula: &str, says: String) -> FindingEvidence {
        let is_own = formula == self.formula();
        let course = if is_own { self.watched.trend.points() } else { Vec::new() };
        FindingEvidence {
            series: named(formula, self.place()),
            value: self.rate(formula).unwrap_or_default(),
            says,
            course: course.into_iter().map(|(time, value)| (self.tally.seconds(time), value)).collect(),
        }
    }

    /// A number that is no formula.
    pub(crate) fn number(&self, series: &str, value: f64, says: String) -> FindingEvidence {
        FindingEvidence { series: series.to_owned(), value, says, course: Vec::new() }
    }

    /// The command line of the observed program, or a word for it.
    pub(crate) fn program(&self) -> &str {
        self.facts.command().unwrap_or("COMMAND")
    }

    /// The remedy for a problem of this subject. If it is not the program's problem, commands that run the program again are
    /// left out: they are no remedy.
    pub(crate) fn of_others(&self, subject: FindingSubject, remedy: FindingRemedy) -> FindingRemedy {
        let own = self.facts.command().filter(|_| self.has_program() && subject == FindingSubject::Machine);
        let Some(own) = own else { return remedy };
        let commands = remedy.commands.into_iter().filter(|command| !command.contains(own)).collect();
        FindingRemedy { commands, ..remedy }
    }

    /// A remedy; `{command}` becomes the command line of the observed program.
    pub(crate) fn remedy(&self, words: &str, commands: &[&str]) -> FindingRemedy {
        let fill = |text: &&str| text.replace("{command}", self.program());
        FindingRemedy {
            words: words.to_owned(),
            commands: commands.iter().map(fill).collect(),
            ..FindingRemedy::default()
        }
    }
}

impl Draft {
    /// A problem whose cost is a share of CPU time, estimated from what one event costs.
    pub(crate) fn estimated(
        subject: FindingSubject,
        says: String,
        percent: f64,
        remedy: FindingRemedy,
    ) -> Self {
        let cost = FindingCost::about(CostBasis::CpuTime, percent, 0.5);
        Self { subject, says, cost, certainty: Certainty::Likely, evidence: Vec::new(), remedy }
    }

    /// A problem that was counted.
    pub(crate) fn measured(
        subject: FindingSubject,
        says: String,
        cost: FindingCost,
        remedy: FindingRemedy,
    ) -> Self {
        Self { subject, says, cost, certainty: Certainty::Measured, evidence: Vec::new(), remedy }
    }

    /// The finding of this rule, as far as no time is known from which on it holds.
    pub(crate) fn of_all_time(self, rule: &'static str) -> Finding {
        let Self { subject, says, cost, certainty, evidence, remedy } = self;
        Finding {
            rule,
            subject,
            says,
            since_seconds: 0.0,
            until_seconds: None,
            cost,
            certainty,
            evidence,
            remedy,
        }
    }

    /// Adds evidence.
    pub(crate) fn with(mut self, evidence: impl IntoIterator<Item = FindingEvidence>) -> Self {
        self.evidence.extend(evidence);
        self
    }

    /// Replaces the certainty.
    pub(crate) fn certainty(self, certainty: Certainty) -> Self {
        Self { certainty, ..self }
    }
}

/// A place in words, as in "node 2 uses all of its bandwidth".
pub(crate) fn place_words(place: Instance) -> String {
    match place {
        Instance::Machine => "the machine".to_owned(),
        Instance::Node(n) => format!("node {n}"),
        Instance::Package(p) => format!("package {p}"),
        Instance::Link(p, l) => format!("link {l} of package {p}"),
        place => place.to_string().trim_start_matches('@').to_owned(),
    }
}

/// Words at the beginning of a sentence.
pub(crate) fn capitalised(words: &str) -> String {
    first_letter(words, |c| c.to_uppercase().to_string())
}

/// A sentence inside another one.
pub fn lowered(sentence: &str) -> String {
    // Names such as MPI keep their letters.
    match sentence.chars().nth(1).is_some_and(char::is_uppercase) {
        true => sentence.to_owned(),
        false => first_letter(sentence, |c| c.to_lowercase().to_string()),
    }
}

fn first_letter(text: &str, change: impl Fn(char) -> String) -> String {
    let mut chars = text.chars();
    chars.next().map(change).unwrap_or_default() + chars.as_str()
}

/// The subject that a place is.
pub(crate) fn subject_of(place: Instance) -> FindingSubject {
    match place {
        Instance::Node(n) => FindingSubject::Node(n),
        Instance::Package(n) => FindingSubject::Package(n),
        Instance::Cpu(n) => FindingSubject::Cpu(n),
        Instance::Link(_, n) | Instance::Device(n) => FindingSubject::Link(n),
        _ => FindingSubject::Machine,
    }
}

/// A formula with its place, as series are named.
fn named(formula: &str, place: Instance) -> String {
    if place == Instance::Machine { formula.to_owned() } else { format!("{formula}{place}") }
}

/// A share in words.
pub(crate) fn percent(value: f64) -> String {
    NumberStyle::Percent.words(value)
}

/// A rate of events in words.
pub(crate) fn per_second(value: f64) -> String {
    NumberStyle::Rate.words(value)
}

/// Memory in words.
pub(crate) fn bytes(value: f64) -> String {
    NumberStyle::Bytes.words(value)
}

/// Numbers as `1, 2 and 3`.
pub(crate) fn listed(numbers: &[u32]) -> String {
    let words: Vec<String> = numbers.iter().map(u32::to_string).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_listed_as_in_a_sentence() {
        assert_eq!([listed(&[]), listed(&[4]), listed(&[1, 2, 3])], ["", "4", "1, 2 and 3"]);
    }

    #[test]
    fn a_place_has_a_subject_and_a_name() {
        assert_eq!(subject_of(Instance::Node(2)), FindingSubject::Node(2));
        assert_eq!(capitalised(&place_words(Instance::Machine)), "The machine");
        assert_eq!(lowered("Node 2 was full"), "node 2 was full");
        assert_eq!(lowered("MPI waits"), "MPI waits");
        assert_eq!(named("idle", Instance::Cpu(3)), "idle@cpu3");
    }
}
