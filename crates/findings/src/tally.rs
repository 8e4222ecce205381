//! One pass over the rows: sums by phase, and for the selected phase how each series moved.
//! Memory depends on the number of series and phases, not on the length of the recording.

mod samples;

use crate::blocks::Blocks;
use crate::bottlenecks::BottleneckRule;
use crate::course::Watched;
use crate::histogram::Histogram;
use crate::onset::Spell;
use crate::rules::Rule;
use crate::series::convert;
use crate::spread::Spread;
use numakit_formulas::Index;
use numakit_model::label::RecorderEvent;
use numakit_model::numbers::NumberStyle;
use numakit_model::{Instance, Kind, Metric, Series};
use numakit_recording::{Batch, Header, Rates};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of phases; labels beyond it are counted.
const MAX_PHASES: usize = 64;
/// Maximum number of events of one kind that are kept with their text; later ones are counted.
const MAX_NOTES: usize = 20;
/// Rates are means over at least this time, so that one event in a short interval is not a peak.
pub(crate) const SLOT: Duration = Duration::from_millis(100);

/// The phase of the observed command.
pub(crate) const COMMAND: &str = "command";

/// What happened in one phase.
#[derive(Debug, Clone, Default)]
pub(crate) struct Phase {
    pub(crate) name: String,
    /// How often it began.
    pub(crate) times: u64,
    pub(crate) samples: u64,
    /// Samples that have a sample before them, with no pause between.
    pub(crate) intervals: u64,
    /// Time that its samples cover, ns; pauses are not part of it.
    pub(crate) covered: u64,
    /// The increase of each counter, and the integral of each rate and level; `None` without two values.
    pub(crate) sums: Vec<Option<u64>>,
}

/// How a series changed in the selected phase.
#[derive(Debug, Clone)]
pub(crate) enum Movement {
    /// Rates per second, and the time (ns) of the largest.
    Rates { rates: Histogram, peak_at: u64 },
    /// A level.
    Level(Option<Level>),
}

impl Movement {
    /// Adds a rate to how the series changed; a level has none.
    fn add_rate(&mut self, time: u64, rate: f64) {
        let Self::Rates { rates, peak_at } = self else { return };
        let size = rate.abs();
        if rates.largest().is_none_or(|largest| size > largest) {
            *peak_at = time;
        }
        rates.add(size);
    }

    /// A value of a level.
    fn add_level(&mut self, value: u64) {
        let Self::Level(level) = self else { return };
        let level = level.get_or_insert(Level { begin: value, end: value, least: value, most: value });
        level.end = value;
        level.least = level.least.min(value);
        level.most = level.most.max(value);
    }
}

/// A gauge from the first sample to the last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Level {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) least: u64,
    pub(crate) most: u64,
}

/// A level of memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LevelBytes {
    pub(crate) begin: f64,
    pub(crate) end: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

/// The recorder's own labels.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes {
    pub(crate) exit_status: Option<i32>,
    pub(crate) lost: u64,
    pub(crate) dropped: u64,
    pub(crate) damaged: u64,
    pub(crate) pauses: u64,
    pub(crate) paused: u64,
    pub(crate) clock_steps: Vec<(u64, i64)>,
    pub(crate) intervals: Vec<(u64, u64)>,
    pub(crate) failures: Vec<(u64, String)>,
    /// Notes beyond the maximum.
    pub(crate) more: u64,
    /// User labels that began a phase beyond the maximum.
    pub(crate) more_phases: u64,
}

/// The running state.
pub(crate) struct Tally {
    selected: Option<String>,
    kinds: Vec<Kind>,
    last: Vec<Option<u64>>,
    /// For the integral of each rate, the fraction below 1 that is left, times 1e9.
    rest: Vec<u128>,
    slots: Rates,
    /// When the last slot ended.
    slot_at: Option<u64>,
    /// The columns that the watched formulas read.
    is_used: Vec<bool>,
    wakeup_at: Option<usize>,
    last_time: Option<u64>,
    current: Option<usize>,
    command: Command,
    paused_at: Option<u64>,
    inside: bool,
    pub(crate) first: Option<u64>,
    pub(crate) end: u64,
    /// The whole recording comes first; then the phases in the order in which they began.
    pub(crate) phases: Vec<Phase>,
    pub(crate) movements: Vec<Movement>,
    /// How much neighbouring values of each series differ.
    pub(crate) spreads: Vec<Spread>,
    /// Means of all series over blocks of the selected phase.
    pub(crate) blocks: Blocks,
    /// Rules about shares, evaluated in the selected phase.
    pub(crate) bottlenecks: Vec<Watched<BottleneckRule>>,
    /// Rules of findings, evaluated in the selected phase.
    pub(crate) rules: Vec<Watched<Rule>>,
    pub(crate) wakeup: Histogram,
    pub(crate) took: Histogram,
    pub(crate) notes: Notes,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Command {
    Outside,
    Runs(usize),
    /// The command has ended since the last sample, so a part of the next interval belongs to it.
    Ended(usize),
}

impl Tally {
    pub(crate) fn new(
        header: &Header,
        selected: Option<&str>,
        bottlenecks: Vec<Watched<BottleneckRule>>,
        rules: Vec<Watched<Rule>>,
    ) -> Self {
        let series = &header.series;
        let movement = |s: &Series| match s.metric.kind {
            Kind::Gauge => Movement::Level(None),
            _ => Movement::Rates { rates: Histogram::default(), peak_at: 0 },
        };
        Self {
            selected: selected.map(str::to_owned),
            kinds: series.iter().map(|s| s.metric.kind).collect(),
            last: vec![None; series.len()],
            rest: vec![0; series.len()],
            slots: Rates::new(&over_slots(series)),
            slot_at: None,
            is_used: used(series.len(), &bottlenecks, &rules),
            wakeup_at: series.iter().position(|s| s.metric.name == "self.wakeup"),
            last_time: None,
            current: None,
            command: Command::Outside,
            paused_at: None,
            inside: selected.is_none(),
            first: None,
            end: 0,
            phases: vec![Phase { times: 1, sums: vec![None; series.len()], ..Phase::default() }],
            movements: series.iter().map(movement).collect(),
            spreads: vec![Spread::default(); series.len()],
            blocks: Blocks::new(series.len()),
            bottlenecks,
            rules,
            wakeup: Histogram::default(),
            took: Histogram::default(),
            notes: Notes::default(),
        }
    }

    /// The next rows: samples between two labels column by column.
    pub(crate) fn batch(&mut self, batch: &Batch) {
        let mut from = 0;
        for (row, label) in batch.label.iter().enumerate().take(batch.len()) {
            let Some(text) = label else { continue };
            self.samples(batch, from..row);
            from = row + 1;
            let time = batch.time[row];
            self.first.get_or_insert(time);
            self.end = self.end.max(time);
            self.label(time, text);
        }
        self.samples(batch, from..batch.len());
    }

    /// Adds the means over one bucket of a history, which take the place of rows. A bucket without means is a gap.
    pub(crate) fn bucket(&mut self, bucket: Range<u64>, rates: &[Option<f64>]) {
        if rates.iter().all(Option::is_none) {
            return self.gap();
        }
        if self.last_time.is_none() {
            self.start_courses(bucket.start);
        }
        let elapsed = bucket.end.saturating_sub(bucket.start);
        let whole = &mut self.phases[0];
        whole.samples += 1;
        whole.intervals += 1;
        whole.covered = whole.covered.saturating_add(elapsed);
        for (at, rate) in rates.iter().enumerate() {
            let Some(rate) = rate.filter(|&rate| rate >= 0.0) else { continue };
            let moved = carried((rate * elapsed as f64) as u128, &mut self.rest[at]);
            let sum = &mut whole.sums[at];
            *sum = Some(sum.unwrap_or(0).saturating_add(moved.unwrap_or(u64::MAX)));
        }
        self.bottlenecks.iter_mut().for_each(|w| w.push(bucket.end, rates));
        self.rules.iter_mut().for_each(|w| w.push(bucket.end, rates));
        for (movement, rate) in self.movements.iter_mut().zip(rates) {
            let Some(rate) = *rate else { continue };
            movement.add_rate(bucket.end, rate);
            movement.add_level(rate as u64);
        }
        (self.last_time, self.end) = (Some(bucket.end), bucket.end);
    }

    /// Keeps the means of a bucket that begins at this time for the noise of the mean of all.
    pub(crate) fn block(&mut self, begins: u64, rates: &[Option<f64>]) {
        self.blocks.reach(&[begins]);
        for (at, rate) in rates.iter().enumerate() {
            if let Some(rate) = *rate {
                self.blocks.add(begins, at, rate);
            }
        }
    }

    /// Share of the ticks that came too late, in percent.
    pub(crate) fn lost_percent(&self) -> f64 {
        let Notes { lost, dropped, damaged, .. } = self.notes;
        let due = self.phases[0].samples.saturating_add(dropped).saturating_add(lost).saturating_add(damaged);
        if due == 0 { 0.0 } else { 100.0 * (lost as f64 / due as f64) }
    }

    /// How a level of memory changed at a place; `None` if it has no values or is not of memory.
    pub(crate) fn memory(&self, index: &Index<'_>, name: &str, place: Instance) -> Option<LevelBytes> {
        let at = *index.find(name, place).first()?;
        let Movement::Level(Some(level)) = &self.movements[at] else { return None };
        let bytes = |value: u64| convert(index, at, NumberStyle::Bytes, value);
        Some(LevelBytes {
            begin: bytes(level.begin)?,
            end: bytes(level.end)?,
            least: bytes(level.least)?,
            most: bytes(level.most)?,
        })
    }

    /// Since the first row, in seconds.
    pub(crate) fn seconds(&self, time: u64) -> f64 {
        time.saturating_sub(self.first.unwrap_or(0)) as f64 / 1e9
    }

    /// The time from the first row to the last.
    pub(crate) fn whole(&self) -> Spell {
        Spell { from: self.first.unwrap_or(0), to: self.end }
    }

    /// Since the first row, ns.
    fn since_start(&self, time: u64) -> u64 {
        time.saturating_sub(self.first.unwrap_or(time))
    }

    pub(crate) fn label(&mut self, time: u64, text: &str) {
        let at = self.since_start(time);
        match RecorderEvent::parse(text) {
            None => self.current = self.begin(text),
            Some(RecorderEvent::CommandStarted(_)) => {
                if let Some(phase) = self.begin(COMMAND) {
                    self.command = Command::Runs(phase);
                }
            }
            Some(RecorderEvent::CommandEnded(status)) => {
                self.notes.exit_status = Some(status);
                if let Command::Runs(phase) = self.command {
                    self.command = Command::Ended(phase);
                }
            }
            Some(RecorderEvent::Paused) => {
                self.notes.pauses += 1;
                self.paused_at = Some(time);
                self.gap();
            }
            Some(RecorderEvent::Resumed) => {
                let paused = self.paused_at.take().map_or(0, |since| time.saturating_sub(since));
                self.notes.paused = self.notes.paused.saturating_add(paused);
                self.gap();
            }
            Some(RecorderEvent::Lost(n)) => self.notes.lost = self.notes.lost.saturating_add(n),
            Some(RecorderEvent::Dropped(n)) => self.notes.dropped = self.notes.dropped.saturating_add(n),
            Some(RecorderEvent::Damaged(n)) => self.notes.damaged = self.notes.damaged.saturating_add(n),
            Some(RecorderEvent::Interval(ns)) => {
                note(&mut self.notes.intervals, (at, ns), &mut self.notes.more)
            }
            Some(RecorderEvent::ClockStep(ns)) => {
                note(&mut self.notes.clock_steps, (at, ns), &mut self.notes.more)
            }
            Some(RecorderEvent::Absent(what)) => {
                note(&mut self.notes.failures, (at, what), &mut self.notes.more)
            }
            Some(RecorderEvent::Back(what)) => {
                note(&mut self.notes.failures, (at, format!("{what} is back")), &mut self.notes.more);
            }
        }
    }

    fn begin(&mut self, name: &str) -> Option<usize> {
        if let Some(at) = self.phases.iter().skip(1).position(|p| p.name == name) {
            self.phases[at + 1].times += 1;
            return Some(at + 1);
        }
        if self.phases.len() > MAX_PHASES {
            self.notes.more_phases += 1;
            return None;
        }
        let sums = vec![None; self.last.len()];
        self.phases.push(Phase { name: name.to_owned(), times: 1, sums, ..Phase::default() });
        Some(self.phases.len() - 1)
    }

    fn gap(&mut self) {
        self.last.fill(None);
        self.last_time = None;
        self.forget_slots();
    }

    /// No rate and no course spans a gap in the samples.
    fn forget_slots(&mut self) {
        self.slots.forget();
        self.slot_at = None;
        self.spreads.iter_mut().for_each(Spread::gap);
        self.bottlenecks.iter_mut().for_each(Watched::gap);
        self.rules.iter_mut().for_each(Watched::gap);
    }

    /// The first values cover the time from here.
    fn start_courses(&mut self, time: u64) {
        self.bottlenecks.iter_mut().for_each(|w| w.start(time));
        self.rules.iter_mut().for_each(|w| w.start(time));
    }
}

/// An integral in units and ns in units and seconds; the fraction is carried on.
fn carried(product: u128, rest: &mut u128) -> Option<u64> {
    const NS_PER_S: u64 = 1_000_000_000;
    let product = product.saturating_add(*rest);
    // Dividing 128 bits takes ten times as long.
    if let Ok(product) = u64::try_from(product) {
        *rest = u128::from(product % NS_PER_S);
        return Some(product / NS_PER_S);
    }
    *rest = product % u128::from(NS_PER_S);
    u64::try_from(product / u128::from(NS_PER_S)).ok()
}

fn note<T>(notes: &mut Vec<T>, what: T, more: &mut u64) {
    if notes.len() < MAX_NOTES { notes.push(what) } else { *more += 1 }
}

/// Which columns formulas read.
fn used(columns: usize, bottlenecks: &[Watched<BottleneckRule>], rules: &[Watched<Rule>]) -> Vec<bool> {
    let mut is_used = vec![false; columns];
    let read = bottlenecks.iter().flat_map(Watched::columns).chain(rules.iter().flat_map(Watched::columns));
    read.for_each(|at| is_used[at] = true);
    is_used
}

/// The series with a resolution of at least a slot.
fn over_slots(series: &[Series]) -> Vec<Series> {
    let longer = |s: &Series| {
        let resolution = s.metric.resolution.max(SLOT);
        Series { metric: Arc::new(Metric { resolution, ..(*s.metric).clone() }), instance: s.instance }
    };
    series.iter().map(longer).collect()
}

#[cfg(test)]
mod tests;
