//! Formulas over series, found by name and place and computed from rates, levels or sums.

use crate::units::Quantity;
use numakit_model::{Instance, Series, Topology, Unit};
use std::collections::HashMap;
use std::fmt;

/// Names for the same thing; the first one that there is a series of counts.
pub type Names = &'static [&'static str];

/// How a figure comes from series. Several instances at one place are added up.
#[derive(Debug, Clone, Copy)]
pub enum Formula {
    /// The value itself.
    Of(Names),
    /// All of these together.
    Sum(&'static [Names]),
    /// The first without the second.
    Less(Names, Names),
    /// The first together, in hundredths of the second together.
    Share(&'static [Names], &'static [Names]),
}

impl Formula {
    /// Every name in it, each once.
    pub fn names(&self) -> Vec<&'static str> {
        let parts: Vec<Names> = match self {
            Self::Of(a) => vec![*a],
            Self::Sum(parts) => parts.to_vec(),
            Self::Less(a, b) => vec![*a, *b],
            Self::Share(part, whole) => part.iter().chain(*whole).copied().collect(),
        };
        let mut names = Vec::new();
        for name in parts.into_iter().flatten().copied() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

/// By the first name of each, as one would write it down.
impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let together = |parts: &[Names]| {
            let names: Vec<&str> = parts.iter().filter_map(|names| names.first().copied()).collect();
            if names.len() > 1 { format!("({})", names.join(" + ")) } else { names.join("") }
        };
        match self {
            Self::Of(names) => f.write_str(&together(&[names])),
            Self::Sum(parts) => f.write_str(together(parts).trim_matches(['(', ')'])),
            Self::Less(all, part) => write!(f, "{} - {}", together(&[all]), together(&[part])),
            Self::Share(part, whole) => write!(f, "{} / {}", together(part), together(whole)),
        }
    }
}

/// Where the series of each metric stand in a row.
#[derive(Debug)]
pub struct Index<'a> {
    series: &'a [Series],
    by_name: HashMap<&'a str, Vec<usize>>,
    node_of_cpu: HashMap<u32, u32>,
    page_size: u64,
}

/// A formula at one place: columns of the row, each with its factor.
#[derive(Debug, Clone, PartialEq)]
pub enum Bound {
    /// All together.
    Sum(Vec<(usize, f64)>),
    /// The first without the second.
    Less(Vec<(usize, f64)>, Vec<(usize, f64)>),
    /// The first in hundredths of the second.
    Share(Vec<(usize, f64)>, Vec<(usize, f64)>),
}

impl<'a> Index<'a> {
    /// For rows of these series on that machine.
    pub fn new(series: &'a [Series], topology: Option<&Topology>, page_size: u64) -> Self {
        let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, one) in series.iter().enumerate() {
            by_name.entry(&one.metric.name).or_default().push(at);
        }
        let nodes = topology.into_iter().flat_map(|t| &t.nodes);
        let node_of_cpu = nodes.flat_map(|n| n.cpus.iter().map(|cpu| (cpu, n.os_index))).collect();
        Self { series, by_name, node_of_cpu, page_size }
    }

    /// The series of the first of these names that has any at that place.
    pub fn find(&self, names: &[&str], place: Instance) -> Vec<usize> {
        let at_place = |name: &&str| -> Vec<usize> {
            let all = self.by_name.get(*name).map_or(&[][..], Vec::as_slice);
            all.iter().copied().filter(|&at| self.is_at(self.series[at].instance, place)).collect()
        };
        names.iter().map(at_place).find(|found| !found.is_empty()).unwrap_or_default()
    }

    fn is_at(&self, instance: Instance, place: Instance) -> bool {
        match (instance, place) {
            (_, Instance::Machine) => true,
            (Instance::Cpu(cpu), Instance::Node(node)) => self.node_of_cpu.get(&cpu) == Some(&node),
            _ => instance == place,
        }
    }

    /// The formula at that place, in base units (bytes, seconds, hundredths); `None` where
    /// the series that it needs are not there.
    pub fn bind(&self, formula: &Formula, quantity: Quantity, place: Instance) -> Option<Bound> {
        let terms = |parts: &[Names]| {
            let found = parts.iter().flat_map(|names| self.find(names, place));
            let terms: Vec<(usize, f64)> =
                found.filter_map(|at| Some((at, self.factor(at, quantity)?))).collect();
            (!terms.is_empty()).then_some(terms)
        };
        let alike = |parts: &[Names]| {
            let found = parts.iter().flat_map(|names| self.find(names, place));
            let terms: Vec<(usize, f64)> = found.map(|at| (at, 1.0)).collect();
            (!terms.is_empty()).then_some(terms)
        };
        Some(match formula {
            Formula::Of(names) => Bound::Sum(terms(&[names])?),
            Formula::Sum(parts) => Bound::Sum(terms(parts)?),
            Formula::Less(all, part) => Bound::Less(terms(&[all])?, terms(&[part])?),
            Formula::Share(part, whole) => Bound::Share(alike(part)?, alike(whole)?),
        })
    }

    /// One series in base units.
    pub fn single(&self, at: usize, quantity: Quantity) -> Option<Bound> {
        Some(Bound::Sum(vec![(at, self.factor(at, quantity)?)]))
    }

    /// All series of one metric at that place, in base units.
    pub fn together(&self, name: &str, quantity: Quantity, place: Instance) -> Option<Bound> {
        let found = self.find(&[name], place);
        let terms: Vec<(usize, f64)> =
            found.into_iter().filter_map(|at| Some((at, self.factor(at, quantity)?))).collect();
        (!terms.is_empty()).then_some(Bound::Sum(terms))
    }

    fn factor(&self, at: usize, quantity: Quantity) -> Option<f64> {
        let unit = self.series[at].metric.unit;
        match quantity {
            Quantity::Bytes => unit.bytes(self.page_size).filter(|&b| b > 0).map(|b| b as f64),
            Quantity::Seconds => unit.seconds(),
            // Time per time, unless it counts what is a share already.
            Quantity::Percent => Some(unit.seconds().map_or(1.0, |s| 100.0 * s)),
            Quantity::Rate if unit == Unit::Kibibytes => Some(1024.0),
            Quantity::Rate | Quantity::Count => Some(1.0),
        }
    }
}

impl Bound {
    /// The figure from the values of a row; `None` where nothing that it needs was measured,
    /// and for a share of nothing.
    pub fn value(&self, values: &[Option<f64>]) -> Option<f64> {
        match self {
            Self::Sum(terms) => sum(terms, values),
            // Two counters are not read at one instant, so the part may be ahead.
            Self::Less(all, part) => Some((sum(all, values)? - sum(part, values)?).max(0.0)),
            Self::Share(part, whole) => {
                let whole = sum(whole, values).filter(|&w| w > 0.0)?;
                Some((100.0 * sum(part, values)? / whole).clamp(0.0, 100.0))
            }
        }
    }

    /// The columns of the row that it looks at.
    pub fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        let (a, b) = match self {
            Self::Sum(a) => (a.as_slice(), &[][..]),
            Self::Less(a, b) | Self::Share(a, b) => (a.as_slice(), b.as_slice()),
        };
        a.iter().chain(b).map(|(at, _)| *at)
    }
}

/// The sum of what was measured: an offline node or CPU adds nothing.
fn sum(terms: &[(usize, f64)], values: &[Option<f64>]) -> Option<f64> {
    let known = terms.iter().filter_map(|&(at, factor)| Some(values.get(at).copied().flatten()? * factor));
    known.reduce(|a, b| a + b)
}
