//! Findings, of recordings and of samples: what is wrong, how much it costs, since when, who causes it, and what to do.

use crate::rules;
use crate::waits;
use numakit_model::numbers::NumberStyle;
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::fmt;

/// What a recording shows, the most important first.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Findings {
    /// The first three lines of a report.
    pub headline: Headline,
    /// Problems of the observed program, then of the machine, the most costly first.
    pub problems: Vec<Finding>,
    /// What is worth knowing although it is no problem.
    pub remarks: Vec<Finding>,
    /// What this recording cannot tell, and why.
    pub untold: Vec<Untold>,
}

/// The answer in three lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Headline {
    /// What is wrong, or that nothing is.
    pub verdict: String,
    /// What it costs, or what is not known.
    pub cost: String,
    /// What to do next.
    pub action: String,
}

/// The name of a rule. serde takes a reference for a part of the text that it reads.
pub type RuleName = &'static str;

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The name of the rule.
    #[serde(deserialize_with = "rule_name")]
    pub rule: RuleName,
    /// Who causes it.
    pub subject: FindingSubject,
    /// What was found, in one sentence.
    pub says: String,
    /// When it began, since the start.
    pub since_seconds: f64,
    /// When it ended; none: it lasted to the end.
    pub until_seconds: Option<f64>,
    /// What it costs.
    pub cost: FindingCost,
    /// How sure it is.
    pub certainty: Certainty,
    /// The numbers.
    pub evidence: Vec<FindingEvidence>,
    /// What to do.
    pub remedy: FindingRemedy,
}

impl Finding {
    /// Whether it is about what other programs do, and not about the observed one.
    pub fn is_of_others(&self) -> bool {
        self.rule == waits::OTHERS_RUN.name
    }
}

/// The name of a rule in a saved finding.
pub(crate) fn rule_name<'de, D: Deserializer<'de>>(from: D) -> Result<RuleName, D::Error> {
    let name = String::deserialize(from)?;
    rules::name(&name).ok_or_else(|| serde::de::Error::custom(format!("unknown rule '{name}'")))
}

/// Who causes what a finding says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", content = "number", rename_all = "kebab-case")]
pub enum FindingSubject {
    /// The observed program with its descendants.
    Program,
    /// The machine, with all that runs on it.
    Machine,
    /// A node.
    Node(u32),
    /// A package.
    Package(u32),
    /// A CPU.
    Cpu(u32),
    /// A link or a card between nodes, by its package or number.
    Link(u32),
    /// Data of the observed program, by its place in the list of objects.
    Object(u32),
    /// The recording itself.
    Recording,
}

impl fmt::Display for FindingSubject {
    /// `program`, `node 2`, `CPU 7`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program => f.write_str("program"),
            Self::Machine => f.write_str("machine"),
            Self::Recording => f.write_str("recording"),
            Self::Node(number) => write!(f, "node {number}"),
            Self::Package(number) => write!(f, "package {number}"),
            Self::Cpu(number) => write!(f, "CPU {number}"),
            Self::Link(number) => write!(f, "link {number}"),
            Self::Object(place) => write!(f, "object {place}"),
        }
    }
}

/// What a cost is a share of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CostBasis {
    /// The CPU time of the subject.
    CpuTime,
    /// The time that threads waited for memory.
    MemoryTime,
    /// The time that passed.
    WallTime,
}

impl CostBasis {
    /// As in "12 % of the CPU time".
    pub fn words(self) -> &'static str {
        match self {
            Self::CpuTime => "CPU time",
            Self::MemoryTime => "time at memory",
            Self::WallTime => "time",
        }
    }
}

/// What a finding costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FindingCost {
    /// A share that is lost.
    Share {
        /// What it is a share of.
        of: CostBasis,
        /// The share.
        percent: f64,
        /// The bounds of the cost: a 95 % interval where samples were counted.
        low: f64,
        /// The upper bound.
        high: f64,
    },
    /// The cost cannot be told.
    Unknown {
        /// Why.
        why: String,
    },
}

impl FindingCost {
    /// A share that is known to within a part of itself.
    pub(crate) fn about(of: CostBasis, percent: f64, within: f64) -> Self {
        let bound = |factor: f64| (percent * factor).clamp(0.0, 100.0);
        Self::Share { of, percent: bound(1.0), low: bound(1.0 - within), high: bound(1.0 + within) }
    }

    /// A share that is an upper bound of the cost: other programs may have waited, or the time overlaps with other work.
    pub(crate) fn at_most(of: CostBasis, percent: f64) -> Self {
        Self::Share { of, percent, low: 0.0, high: percent }
    }

    /// The share of time in which threads waited, as a cost; `unknown` says why the cost is unknown without it.
    pub(crate) fn of_waiting(share: Option<f64>, unknown: &str) -> Self {
        match share {
            Some(share) => Self::at_most(CostBasis::WallTime, share),
            None => Self::unknown(unknown),
        }
    }

    /// It cannot be told.
    pub(crate) fn unknown(why: &str) -> Self {
        Self::Unknown { why: why.to_owned() }
    }

    /// `34 % of the CPU time (17 to 51 %)`, `at most 34 % of the CPU time`, or why it cannot be told.
    pub fn words(&self) -> String {
        let percent = |value: f64| NumberStyle::Percent.words(value);
        match self {
            Self::Unknown { why } => format!("cannot be told: {why}"),
            // An upper bound alone: what it really costs may be nothing.
            Self::Share { of, percent: share, low, .. } if *low <= 0.0 && *share > 0.0 => {
                format!("at most {} of the {}", percent(*share), of.words())
            }
            Self::Share { of, percent: share, low, high } => {
                let bounds = match high - low {
                    width if width < 0.1 => String::new(),
                    _ => format!(" ({} to {})", percent(*low), percent(*high)),
                };
                format!("{} of the {}{bounds}", percent(*share), of.words())
            }
        }
    }

    /// The share in percent, if it is known.
    pub fn percent(&self) -> Option<f64> {
        match self {
            Self::Share { percent, .. } => Some(*percent),
            Self::Unknown { .. } => None,
        }
    }
}

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// The observation may have a different cause.
    Possible,
    /// It was observed; its cost, or who causes it, was estimated.
    Likely,
    /// It was counted, not estimated.
    Measured,
}

impl Certainty {
    /// As in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Measured => "measured",
        }
    }
}

/// A number that supports a finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FindingEvidence {
    /// The formula or series.
    pub series: String,
    /// Its value over the time of the report, in the unit of the formula or series.
    pub value: f64,
    /// What the value shows, in words.
    pub says: String,
    /// How the value developed: seconds since the start and values; empty if one number says it all.
    pub course: Vec<(f64, f64)>,
}

/// What to do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FindingRemedy {
    /// In words.
    pub words: String,
    /// Commands to run, the first one first.
    pub commands: Vec<String>,
    /// What the first command does, if the words do not say that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<Cow<'static, str>>,
    /// What the remedy can be worth, if that differs from what the finding costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worth: Option<Worth>,
}

/// An upper bound of what a remedy gains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Worth {
    /// The gain as a part of all CPU time, between 0 and 1; `None` if it cannot be told.
    pub at_most: Option<f64>,
    /// How the gain was computed, or why it was not.
    pub why: String,
}

/// Something that a recording cannot tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Untold {
    /// What it cannot tell.
    pub what: &'static str,
    /// Why.
    pub why: String,
}
