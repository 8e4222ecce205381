//! Spreads cores over the parts of a level: one on each before any has two.

use crate::amount::Amount;
use crate::assign::{Assigner, Order};
use crate::error::PlanError;
use crate::machine::{Machine, NONE};
use crate::request::Level;
use std::collections::BTreeMap;

/// Selects the requested number of free cores. Processes are spread, each with its cores together; if there is one
/// process, or the parts are too small for a process, threads are spread.
pub(crate) fn spots(
    machine: &Machine<'_>,
    free: &[u32],
    level: Level,
    amount: Amount,
) -> Result<Vec<u32>, PlanError> {
    let Some(part_of) = machine.parts(level) else { return Err(absent(machine, level)) };
    let mut parts: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
    for &at in free {
        // A core that is in no part of the level counts as a part.
        let part = part_of[at as usize];
        parts.entry((part, if part == NONE { at } else { 0 })).or_default().push(at);
    }
    let hold = |unit: u64| parts.values().map(|spots| spots.len() as u64 / unit).sum::<u64>();
    let whole = amount.processes > 1 && hold(amount.cores) >= amount.processes;
    let (units, unit) = if whole { (amount.processes, amount.cores) } else { (amount.all_cores(), 1) };
    let mut selection: Vec<u32> = Vec::with_capacity(amount.all_cores() as usize);
    let mut left = units;
    for round in 0.. {
        let begin = (round * unit) as usize;
        let next = |spots: &Vec<u32>| spots.get(begin..begin + unit as usize).map(<[u32]>::to_vec);
        let layer: Vec<Vec<u32>> = parts.values().filter_map(next).collect();
        if layer.is_empty() || left == 0 {
            break;
        }
        let count = layer.len() as u64;
        let mut layer = layer.concat();
        if count > left {
            // Assigning needs cores in the order of the machine.
            layer.sort_unstable();
            let rest = Amount { processes: left, threads: unit, cores: unit };
            layer = Assigner::of(machine, &layer, None).assign(rest, Order::Nearest).spots;
        }
        left -= count.min(left);
        selection.extend(layer);
    }
    selection.sort_unstable();
    Ok(selection)
}

/// The number of parts of this level that the cores use, the number of all such parts, and the maximum number of these cores
/// on one part.
pub(crate) fn reached(machine: &Machine<'_>, spots: &[u32], level: Level) -> Option<(usize, usize, usize)> {
    let part_of = machine.parts(level)?;
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for part in spots.iter().map(|&at| part_of[at as usize]).filter(|part| *part != NONE) {
        *counts.entry(part).or_default() += 1;
    }
    let mut all: Vec<u32> = part_of.into_iter().filter(|part| *part != NONE).collect();
    all.sort_unstable();
    all.dedup();
    Some((counts.len(), all.len(), counts.values().copied().max().unwrap_or(0)))
}

fn absent(machine: &Machine<'_>, level: Level) -> PlanError {
    let there = Level::ALL.iter().filter(|(level, ..)| machine.parts(*level).is_some());
    let words: Vec<String> = there.map(|(_, word, _)| format!("spread:{word}")).collect();
    let (_, part) = level.names();
    PlanError::machine(
        format!("this machine shows no {part}s to spread over"),
        format!("take {}", words.join(" or ")),
    )
}
