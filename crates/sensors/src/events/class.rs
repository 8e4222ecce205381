//! Classes of events: what they count, under one name for all vendors (`data/classes.txt`).

use numakit_model::Unit;
use std::collections::HashMap;
use std::sync::LazyLock;

/// A class of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Its name.
    pub name: &'static str,
    /// The unit of its values.
    pub unit: Unit,
    /// Whether it is sampled by default.
    pub default: bool,
    /// Whether its value is the mean over its PMUs, not their sum: this is for clocks, which have
    /// equal rates.
    pub mean: bool,
    /// Its description.
    pub help: &'static str,
}

pub(super) const TEXT: &str = include_str!("../../data/classes.txt");

static CLASSES: LazyLock<(Vec<Class>, HashMap<&'static str, usize>)> = LazyLock::new(|| {
    // The list is embedded; tests check all lines.
    let classes: Vec<Class> = lines().filter_map(read).collect();
    let by_name = classes.iter().enumerate().map(|(at, class)| (class.name, at)).collect();
    (classes, by_name)
});

/// Every class, in the order of the list.
pub fn classes() -> &'static [Class] {
    &CLASSES.0
}

/// The class with this name.
pub fn class(name: &str) -> Option<&'static Class> {
    CLASSES.1.get(name).map(|&at| &CLASSES.0[at])
}

pub(super) fn lines() -> impl Iterator<Item = &'static str> {
    TEXT.lines().filter(|l| !l.is_empty() && !l.starts_with('#'))
}

pub(super) fn read(line: &'static str) -> Option<Class> {
    let (name, rest) = word(line)?;
    let (unit, rest) = word(rest)?;
    let (kind, rest) = word(rest)?;
    let (together, help) = word(rest)?;
    let one_of = |text: &str, yes: &str, no: &str| match text {
        _ if text == yes => Some(true),
        _ if text == no => Some(false),
        _ => None,
    };
    Some(Class {
        name,
        unit: Unit::ALL.into_iter().find(|u| u.name() == unit)?,
        default: one_of(kind, "default", "more")?,
        mean: one_of(together, "mean", "sum")?,
        help,
    })
}

fn word(text: &'static str) -> Option<(&'static str, &'static str)> {
    let (word, rest) = text.split_once(' ')?;
    Some((word, rest.trim_start()))
}
