//! Sums samples between two labels, column by column: most columns have one value in all of these samples, which costs one
//! step.

use super::{Command, Movement, SLOT, Tally, carried};
use numakit_model::Kind;
use numakit_recording::rates::difference;
use numakit_recording::{Batch, Column, Samples};
use std::ops::Range;

/// The rate of a column at a row.
type Rated = (usize, usize, f64);

impl Tally {
    pub(super) fn samples(&mut self, batch: &Batch, rows: Range<usize>) {
        let Some(&first) = batch.time[rows.clone()].first() else { return };
        self.first.get_or_insert(first);
        self.end = batch.time[rows.clone()].iter().fold(self.end, |end, time| end.max(*time));
        let mut from = rows.start;
        // Of the samples after the end of the command, only the first has an interval that belongs to it.
        if matches!(self.command, Command::Ended(_)) {
            from += 1;
            self.between_labels(&Samples::new(batch, rows.start..from));
        }
        if from < rows.end {
            self.between_labels(&Samples::new(batch, from..rows.end));
        }
    }

    /// An interval with a label belongs to the phase that begins there. The command has the intervals of its start and
    /// of its end.
    fn between_labels(&mut self, samples: &Samples<'_>) {
        let command = match self.command {
            Command::Outside => None,
            Command::Runs(phase) => Some(phase),
            Command::Ended(phase) => {
                self.command = Command::Outside;
                Some(phase)
            }
        };
        let phases = [Some(0), self.current, command.filter(|c| Some(*c) != self.current)];
        let phases: Vec<usize> = phases.into_iter().flatten().collect();
        let elapsed = Elapsed::new(self.last_time, samples.times());
        let count = samples.rows.len() as u64;
        for &phase in &phases {
            let phase = &mut self.phases[phase];
            phase.samples += count;
            phase.intervals += count - u64::from(self.last_time.is_none());
            phase.covered = phase.covered.saturating_add(elapsed.total);
        }
        let selected = self.selected.as_deref();
        let inside = selected.is_none_or(|name| phases[1..].iter().any(|&p| self.phases[p].name == name));
        let slots = if inside { self.selected_rows(samples) } else { Vec::new() };
        let mut rated = Vec::new();
        for at in 0..self.last.len() {
            let Some(column) = samples.batch.columns.get(at) else { continue };
            let still = column.still(samples.rows.clone());
            if inside {
                self.movement(at, samples, still, &mut rated);
                self.levels(at, samples, &slots);
            }
            self.sum(at, &phases, &elapsed, samples, still);
        }
        if inside {
            self.watch(samples, &slots, rated);
        }
        self.inside = inside;
        self.last_time = samples.times().last().copied();
    }

    /// The rows at which a slot ends. Also adds the values of the selected phase that belong to no single column.
    fn selected_rows(&mut self, samples: &Samples<'_>) -> Vec<usize> {
        if !self.inside {
            // The first interval of the phase began with the sample before it.
            self.forget_slots();
            if let Some(last) = self.last_time {
                self.slots.push(last, &self.last);
                self.slot_at = Some(last);
                self.start_courses(samples.times().first().copied().unwrap_or(last));
            }
        }
        for row in samples.rows.clone() {
            self.took.add(samples.batch.took.get(row).copied().unwrap_or(0) as f64);
        }
        if let Some(late) = self.wakeup_at.and_then(|at| samples.batch.columns.get(at)) {
            samples.rows.clone().filter_map(|row| late.get(row)).for_each(|v| self.wakeup.add(v as f64));
        }
        self.blocks.reach(samples.times());
        let slot = SLOT.as_nanos() as u64;
        let mut slots = Vec::new();
        for (row, &time) in samples.rows.clone().zip(samples.times()) {
            if self.slot_at.is_none_or(|last| time.saturating_sub(last) >= slot) {
                self.slot_at = Some(time);
                slots.push(row);
            }
        }
        slots
    }

    /// How a column moved, and its rates in `rated` where a formula reads it.
    fn movement(&mut self, at: usize, samples: &Samples<'_>, still: Option<u64>, rated: &mut Vec<Rated>) {
        let (times, is_counter) = (&samples.batch.time, matches!(self.kinds[at], Kind::Counter { .. }));
        let (movement, spread, blocks) = (&mut self.movements[at], &mut self.spreads[at], &mut self.blocks);
        if let Movement::Level(_) = movement {
            let column = &samples.batch.columns[at];
            // If all values are equal, the first one says as much as all of them.
            let rows = samples.rows.clone().take(if still.is_some() { 1 } else { usize::MAX });
            return rows.filter_map(|row| column.get(row)).for_each(|value| movement.add_level(value));
        }
        self.slots.rated(at, samples, |row, rate| {
            movement.add_rate(times[row], rate);
            if is_counter {
                spread.push(rate);
                blocks.add(times[row], at, rate);
                rated.extend(self.is_used[at].then_some((row, at, rate)));
            }
        });
    }

    /// The values of a level at the ends of slots.
    fn levels(&mut self, at: usize, samples: &Samples<'_>, slots: &[usize]) {
        if matches!(self.kinds[at], Kind::Counter { .. }) {
            return;
        }
        for &row in slots {
            if let Some(value) = self.level(at, samples, row) {
                self.spreads[at].push(value);
                self.blocks.add(samples.batch.time[row], at, value);
            }
        }
    }

    /// The value of a level or rate; a counter has none.
    fn level(&self, at: usize, samples: &Samples<'_>, row: usize) -> Option<f64> {
        let value = samples.batch.columns.get(at)?.get(row)?;
        match self.kinds[at] {
            Kind::Counter { .. } => None,
            Kind::Gauge => Some(value as f64),
            Kind::Rate => Some(value as i64 as f64),
        }
    }

    /// Evaluates the watched formulas at the ends of slots, and where a counter has a rate.
    fn watch(&mut self, samples: &Samples<'_>, slots: &[usize], mut rated: Vec<Rated>) {
        rated.sort_unstable_by_key(|&(row, at, _)| (row, at));
        let mut rows: Vec<usize> = slots.iter().copied().chain(rated.iter().map(|rated| rated.0)).collect();
        rows.sort_unstable();
        rows.dedup();
        let levels: Vec<usize> = (0..self.kinds.len())
            .filter(|&at| self.is_used[at] && !matches!(self.kinds[at], Kind::Counter { .. }))
            .collect();
        let mut values = vec![None; self.kinds.len()];
        let mut next = 0;
        for row in rows {
            levels.iter().for_each(|&at| values[at] = self.level(at, samples, row));
            let counted = &rated[next..next + rated[next..].partition_point(|rated| rated.0 == row)];
            counted.iter().for_each(|&(_, at, rate)| values[at] = Some(rate));
            let time = samples.batch.time[row];
            self.bottlenecks.iter_mut().for_each(|w| w.push(time, &values));
            self.rules.iter_mut().for_each(|w| w.push(time, &values));
            counted.iter().for_each(|&(_, at, _)| values[at] = None);
            next += counted.len();
        }
    }

    /// Adds what a column gained to the phases.
    fn sum(
        &mut self,
        at: usize,
        phases: &[usize],
        elapsed: &Elapsed,
        samples: &Samples<'_>,
        still: Option<u64>,
    ) {
        let column = &samples.batch.columns[at];
        let (last, rest) = (&mut self.last[at], &mut self.rest[at]);
        let gained = match self.kinds[at] {
            Kind::Counter { bits } => counted(column, samples.rows.clone(), still, bits, *last),
            Kind::Gauge => match still {
                Some(value) if elapsed.is_short && value < MAX_LEVEL => elapsed.integral(value, rest),
                _ => elapsed.integrals(column, samples.rows.clone(), rest, Some),
            },
            Kind::Rate => {
                elapsed.integrals(column, samples.rows.clone(), rest, |rate| u64::try_from(rate as i64).ok())
            }
        };
        *last = samples.rows.clone().rev().find_map(|row| column.get(row)).or(*last);
        let Some(gained) = gained else { return };
        for &phase in phases {
            let sum = &mut self.phases[phase].sums[at];
            *sum = Some(sum.unwrap_or(0).saturating_add(gained));
        }
    }
}

/// The increase of a counter since `last`; `None` without two values.
fn counted(
    column: &Column,
    rows: Range<usize>,
    still: Option<u64>,
    bits: u8,
    last: Option<u64>,
) -> Option<u64> {
    if let Some(value) = still
        && last.is_none_or(|last| last == value)
    {
        return (last.is_some() || rows.len() > 1).then_some(0);
    }
    let (mut last, mut gained) = (last, None::<u64>);
    for value in rows.filter_map(|row| column.get(row)) {
        if let Some(moved) = last.and_then(|last| difference(last, value, bits)) {
            gained = Some(gained.unwrap_or(0).saturating_add(moved));
        }
        last = Some(value);
    }
    gained
}

/// The time before each of some samples, ns.
struct Elapsed {
    each: Vec<u64>,
    total: u64,
    /// Whether the time is so short that the products of times and levels below [`MAX_LEVEL`] do not overflow, nor do their
    /// sums.
    is_short: bool,
}

/// The product of a level below this and a time below [`MAX_ELAPSED`] does not overflow.
const MAX_LEVEL: u64 = 1 << 53;
const MAX_ELAPSED: u64 = 1 << 40;

impl Elapsed {
    fn new(last: Option<u64>, times: &[u64]) -> Self {
        let mut before = last;
        let since = |time: &u64| before.replace(*time).map_or(0, |before| time.saturating_sub(before));
        let each: Vec<u64> = times.iter().map(since).collect();
        let total = each.iter().fold(0u64, |total, one| total.saturating_add(*one));
        Self { is_short: total < MAX_ELAPSED, each, total }
    }

    /// The integral of a level that stays the same, in units and seconds. The fractions below 1 of many integrals add up in
    /// `rest`, so that nothing of the sum is lost.
    fn integral(&self, level: u64, rest: &mut u128) -> Option<u64> {
        (self.total > 0).then(|| integral(level, self.total, rest))?
    }

    /// The integral of a level that changes. `level` turns a value of the column into the level; a value for which it
    /// returns `None` is left out.
    fn integrals(
        &self,
        column: &Column,
        rows: Range<usize>,
        rest: &mut u128,
        level: impl Fn(u64) -> Option<u64>,
    ) -> Option<u64> {
        let mut gained = None::<u64>;
        for (row, &elapsed) in rows.zip(&self.each).filter(|(_, elapsed)| **elapsed > 0) {
            let Some(level) = column.get(row).and_then(&level) else { continue };
            if let Some(moved) = integral(level, elapsed, rest) {
                gained = Some(gained.unwrap_or(0).saturating_add(moved));
            }
        }
        gained
    }
}

/// The integral of a level over `elapsed` ns, in units and seconds.
fn integral(level: u64, elapsed: u64, rest: &mut u128) -> Option<u64> {
    carried(u128::from(level) * u128::from(elapsed), rest)
}
