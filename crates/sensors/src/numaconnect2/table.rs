//! The counters of a card: the text table in `data/numaconnect2.txt`.

use super::registers::BITS;
use crate::sensor::metric;
use numakit_model::{Confidence, Kind, Metric, Scope, Unit};
use std::sync::LazyLock;

/// Cycles of a card's clock per second.
const CLOCK: u64 = 200_000_000;

const TEXT: &str = include_str!("../../data/numaconnect2.txt");

/// A line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    /// Offset of its lower half in the window of the card.
    pub register: usize,
    /// Its name in NUMAscope.
    pub name: &'static str,
    /// Cycles of the card's clock, or a count.
    pub unit: Unit,
    /// Whether it is sampled by default.
    pub default: bool,
    /// Confidence in the description.
    pub confidence: Confidence,
    /// One sentence.
    pub help: &'static str,
}

/// Every counter, in the order of their registers.
pub static COUNTERS: LazyLock<Vec<Counter>> = LazyLock::new(|| lines().filter_map(parse).collect());

/// The counter with this name.
pub fn counter(name: &str) -> Option<&'static Counter> {
    COUNTERS.iter().find(|counter| counter.name == name)
}

// The table is embedded; tests check all lines.
fn lines() -> impl Iterator<Item = &'static str> {
    TEXT.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn parse(line: &'static str) -> Option<Counter> {
    let mut rest = line;
    let mut word = || {
        let (word, after) = rest.split_once(' ')?;
        rest = after.trim_start();
        Some(word)
    };
    let register = usize::from_str_radix(word()?.strip_prefix("0x")?, 16).ok()?;
    let (name, unit, default, confidence) = (word()?, word()?, word()?, word()?);
    let unit = [Unit::Cycles, Unit::Count].into_iter().find(|u| u.name() == unit)?;
    let confidence = [Confidence::Medium, Confidence::High].into_iter().find(|c| c.name() == confidence)?;
    let default = match default {
        "default" => true,
        "optional" => false,
        _ => return None,
    };
    Some(Counter { register, name, unit, default, confidence, help: rest })
}

impl Counter {
    /// Its metric.
    pub fn metric(&self) -> Metric {
        let name = format!("numaconnect2.{}", self.name);
        let source = format!("register {:#x} of the card", self.register);
        let kind = Kind::Counter { bits: BITS };
        let described = metric(&name, self.unit, kind, Scope::Device, self.help, &source);
        let maximum = (self.unit == Unit::Cycles).then_some(CLOCK);
        Metric { confidence: Some(self.confidence), maximum, ..described }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numaconnect2::registers::{COUNTERS_LENGTH, FIRST_COUNTER};
    use std::collections::HashSet;

    #[test]
    fn every_line_is_valid_and_has_its_own_register() {
        let (mut names, mut registers) = (HashSet::new(), HashSet::new());
        for line in lines() {
            let counter = parse(line).unwrap_or_else(|| panic!("not a line of the table: {line}"));
            assert!(names.insert(counter.name), "{} exists twice", counter.name);
            assert!(registers.insert(counter.register), "{line}");
            let offset = counter.register.checked_sub(FIRST_COUNTER).unwrap();
            assert!(offset.is_multiple_of(8) && offset + 8 <= COUNTERS_LENGTH, "{line}");
            assert!(counter.name.starts_with("n2") && counter.help.ends_with('.'), "{line}");
            assert!(!counter.name.contains(|c: char| !c.is_ascii_alphanumeric()), "{line}");
            // Counters of cycles say so in their names.
            let cycles = counter.name.to_ascii_lowercase().contains("cyc");
            assert_eq!(cycles, counter.unit == Unit::Cycles, "{line}");
        }
        assert_eq!(names.len(), 120);
        assert!(COUNTERS.windows(2).all(|two| two[0].register < two[1].register));
        assert_eq!(counter("n2Cyc").unwrap().register, FIRST_COUNTER);
        assert_eq!(COUNTERS.iter().filter(|c| c.default).count(), 33);
    }

    /// NUMAscope named the register at 0x31b8 with Piu and the one at 0x31d8 with Siu, but described
    /// them the other way round. The engine for remote memory has the same registers in the order
    /// SIU, PIU (0x3110, 0x3130).
    #[test]
    fn the_exchanged_names_of_numascope_are_corrected() {
        for (register, name, unit) in [
            (0x3110, "n2CycRmpe0freeS", "SIU"),
            (0x3130, "n2CycRmpe0freeP", "PIU"),
            (0x31b8, "n2CycLmpeFreeSiu", "SIU"),
            (0x31d8, "n2CycLmpeFreePiu", "PIU"),
        ] {
            let found = counter(name).unwrap();
            assert_eq!(found.register, register, "{name}");
            assert!(found.help.contains(unit), "{name}");
        }
        for found in COUNTERS.iter() {
            for (part, unit) in [("Piu", "PIU"), ("Siu", "SIU"), ("Rmpe", "RMPE"), ("Lmpe", "LMPE")] {
                let named = found.help.contains(unit) || found.default;
                assert!(!found.name.contains(part) || named, "{}: {}", found.name, found.help);
            }
        }
    }
}
