//! The values of a recording that are compared with those of another one, each with its noise.

use crate::blocks::Errors;
use crate::facts::Facts;
use crate::finding::Findings;
use crate::rules::{self, RuleKind};
use crate::series::{bind_series, is_of_recorder, shown_unit};
use crate::tally::{COMMAND, Tally};
use numakit_formulas::{Catalog, Formula, Index, Quantity};
use numakit_model::numbers::NumberStyle;
use numakit_model::{Instance, Kind, Series};
use numakit_recording::Header;

/// Series that show what other programs do to the observed one.
const BY_OTHERS: [&str; 3] = ["task.involuntary_switches", "task.migrations", "steal"];
/// Shares that say how much of something is used, and not what that costs.
const USED: [&str; 2] = ["dram_util", "link_util"];
/// Shares of which more is better.
const GOOD: [&str; 4] = ["locality", "use_locality", "page_locality", "huge_page_share"];
/// Run times that differ by less than this share are equal: one run each does not tell how runs vary.
const RUNS_VARY: f64 = 0.05;

/// A recording, ready to be compared.
#[derive(Debug, Clone)]
pub struct Profile {
    pub(crate) about: ProfileSource,
    pub(crate) measures: Vec<Measure>,
    pub(crate) findings: Findings,
    pub(crate) has_program: bool,
    /// Too short for any noise.
    pub(crate) is_short: bool,
}

impl Profile {
    /// What is wrong in it.
    pub fn into_findings(self) -> Findings {
        self.findings
    }
}

/// What was recorded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProfileSource {
    pub(crate) command: Option<String>,
    pub(crate) host: String,
    pub(crate) cpus: Option<usize>,
    pub(crate) seconds: f64,
    /// How long the command ran, and by how much that may vary.
    pub(crate) run: Option<(f64, f64)>,
    pub(crate) status: Option<i32>,
}

/// A value over the time of a report.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measure {
    /// A formula or a series.
    pub(crate) name: String,
    pub(crate) unit: String,
    pub(crate) value: f64,
    /// Half of the interval that contains the value; `None` where it cannot be told.
    pub(crate) noise: Option<f64>,
    /// Smaller differences are never looked at.
    pub(crate) floor: f64,
    /// A value that the recorder measured before the program ran and to which this one is proportional, such as the cost of
    /// an event; `None` if this value is counted alone.
    pub(crate) scale: Option<f64>,
    /// Whether the value is the program's own, and not the machine's.
    pub(crate) is_own: bool,
    /// Whether more of it is better; `None` if neither more nor less is.
    pub(crate) is_good: Option<bool>,
}

const FLOOR_PERCENT: f64 = 2.0;
const FLOOR_RATE: f64 = 10.0;
const FLOOR_COUNT: f64 = 0.5;
/// CPUs.
const FLOOR_RATIO: f64 = 0.02;
const FLOOR_BYTES: f64 = 1048576.0;
/// Differences below this share of the machine's memory are equal, for values that are not the program's own.
const FLOOR_MEMORY: f64 = 0.01;

pub(crate) fn profile(
    (header, index, formulas): (&Header, &Index<'_>, &Catalog),
    facts: &Facts<'_>,
    tally: &Tally,
    findings: &Findings,
) -> Profile {
    let errors = Errors::of(&tally.blocks);
    let mut measures = of_formulas(header, index, formulas, facts, &errors);
    let of_series = header.series.iter().enumerate();
    measures.extend(
        of_series.filter_map(|(at, series)| of_series_at(header, index, facts, &errors, (at, series))),
    );
    let cpu_noise = measures.iter().find(|m| m.name == "task.cpu");
    let varies = cpu_noise.and_then(|m| Some(m.noise? / m.value.max(f64::MIN_POSITIVE))).unwrap_or(0.0);
    let ran = tally.phases.iter().skip(1).find(|phase| phase.name == COMMAND);
    let ran = ran.filter(|_| tally.notes.exit_status.is_some()).map(|phase| phase.covered as f64 / 1e9);
    Profile {
        about: ProfileSource {
            command: header.command.clone(),
            host: header.host.clone(),
            cpus: header.topology.as_ref().map(|t| t.online.len()),
            seconds: facts.seconds,
            run: ran.map(|seconds| (seconds, seconds * varies.max(RUNS_VARY))),
            status: tally.notes.exit_status,
        },
        measures,
        findings: findings.clone(),
        has_program: facts.rate("task_cpu", Instance::Machine).is_some(),
        is_short: errors.is_unknown(),
    }
}

/// Adds the shares of the machine and of the program, and the formulas that rules follow.
fn of_formulas(
    header: &Header,
    index: &Index<'_>,
    formulas: &Catalog,
    facts: &Facts<'_>,
    errors: &Errors,
) -> Vec<Measure> {
    let mut seen = Vec::new();
    let measure = |formula: &Formula| {
        let bound = index.bind(formulas, formula, Instance::Machine).ok()?;
        let name = formula.name.as_str();
        let value = facts.rate(name, Instance::Machine)?;
        let read: Vec<&Series> = bound.columns().map(|at| &header.series[at]).collect();
        if name == "idle" || read.iter().all(|series| is_of_recorder(series)) {
            return None;
        }
        // Two names may lead to the same formula: its value is then compared once.
        if seen.contains(&bound) {
            return None;
        }
        let noise = errors.half(|means| bound.value(means));
        let measured = bound.columns().filter(|&at| is_of_recorder(&header.series[at]));
        let scale = measured.filter_map(|at| facts.mean_of(at)).reduce(|a, b| a * b);
        seen.push(bound);
        let (unit, floor) = unit_of(formula.quantity);
        Some(Measure {
            name: name.to_owned(),
            unit,
            value,
            noise,
            floor,
            scale,
            is_own: !BY_OTHERS.contains(&name) && read.iter().any(|series| is_of_program(series)),
            is_good: is_good(name).filter(|_| formula.quantity == Quantity::Percent),
        })
    };
    let is_followed = |name: &str| rules::RULES.iter().any(|rule| rule.follows(name));
    let is_wanted = |formula: &&Formula| formula.quantity == Quantity::Percent || is_followed(&formula.name);
    formulas.all().iter().filter(is_wanted).filter_map(measure).collect()
}

/// The unit of a formula, and the smallest difference that is looked at.
fn unit_of(quantity: Quantity) -> (String, f64) {
    match quantity {
        Quantity::Percent => ("%".to_owned(), FLOOR_PERCENT),
        Quantity::Bytes => ("bytes".to_owned(), FLOOR_BYTES),
        Quantity::Ratio => ("count".to_owned(), FLOOR_RATIO),
        other => (other.name().to_owned(), FLOOR_RATE),
    }
}

fn is_of_program(series: &Series) -> bool {
    matches!(series.metric.sensor(), "task" | "access") && !BY_OTHERS.contains(&series.metric.name.as_str())
}

/// Whether more of a share is better. Less is better for shares that rules of problems follow.
fn is_good(name: &str) -> Option<bool> {
    let is_bad = rules::RULES
        .iter()
        .any(|rule| rule.kind != RuleKind::Remark && rule.follows(name) && !USED.contains(&name));
    match is_bad {
        true => Some(false),
        false => GOOD.contains(&name).then_some(true),
    }
}

fn of_series_at(
    header: &Header,
    index: &Index<'_>,
    facts: &Facts<'_>,
    errors: &Errors,
    (at, series): (usize, &Series),
) -> Option<Measure> {
    // Idle time is the complement of the rest.
    if is_of_recorder(series) || series.metric.name == "cpu.idle" {
        return None;
    }
    let is_own = is_of_program(series);
    let is_level = series.metric.kind == Kind::Gauge;
    let (unit, factor) = shown_unit(index, at);
    let floor = match (is_level, unit.as_str()) {
        (true, "bytes") if is_own => FLOOR_BYTES,
        (true, "bytes") => FLOOR_MEMORY * memory(header),
        (true, _) => FLOOR_COUNT,
        (false, "%") => FLOOR_PERCENT,
        (false, "bytes/s") => FLOOR_RATE * 4096.0,
        (false, _) => FLOOR_RATE,
    };
    let bound = bind_series(index, at, NumberStyle::Count)?;
    let noise = errors.half(|means| bound.value(means)).map(|half| half * factor);
    Some(Measure {
        name: series.name(),
        unit,
        value: facts.mean_of(at)? * factor,
        noise,
        floor,
        scale: None,
        is_own,
        is_good: None,
    })
}

/// Memory of the machine, in bytes.
fn memory(header: &Header) -> f64 {
    let known = header.topology.as_ref().and_then(|topology| topology.memory_kb());
    known.map_or(FLOOR_BYTES / FLOOR_MEMORY, |kb| kb as f64 * 1024.0)
}
