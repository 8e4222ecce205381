//! Flame graphs: time at memory by call chain, and memory by the chain that touched it first, both split by node.

mod folded;
mod svg;

use crate::chain_names::ChainNames;
use crate::code::CodeName;
use crate::observation::Observation;
use crate::place::TimePlace;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Maximum number of stacks in a graph. Smaller ones are merged into [`OTHERS`].
const MAX_STACKS: usize = 4000;
const OTHERS: &str = "(smaller stacks)";
/// The function of a chain that is not known.
const UNKNOWN: &str = "(unknown chain)";

/// A part of a stack's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FlamePart {
    /// Memory of this node.
    Node(u32),
    /// Memory of a node that is not known.
    UnknownNode,
    /// Contended lines, whichever node they are on.
    Contended,
}

impl FlamePart {
    fn word(self) -> String {
        match self {
            Self::Node(node) => format!("node {node}"),
            Self::UnknownNode => "unknown node".to_owned(),
            Self::Contended => "contended lines".to_owned(),
        }
    }
}

/// What the values of a graph are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlameUnit {
    /// CPU time in ns.
    Ns,
    /// Bytes.
    Bytes,
}

impl FlameUnit {
    /// A value for people.
    pub fn text(self, value: u64) -> String {
        let steps: &[(f64, &str)] = match self {
            Self::Ns => &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")],
            Self::Bytes => &[
                ((1u64 << 30) as f64, "GiB"),
                ((1u64 << 20) as f64, "MiB"),
                ((1u64 << 10) as f64, "KiB"),
                (1.0, "bytes"),
            ],
        };
        let found = steps.iter().find(|(step, _)| value as f64 >= *step);
        let (step, unit) = found.or(steps.last()).copied().unwrap_or((1.0, ""));
        let number = value as f64 / step;
        if step > 1.0 { format!("{number:.1} {unit}") } else { format!("{value} {unit}") }
    }
}

/// One call chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlameStack {
    /// Its functions, outermost first, by their places in the list of names.
    pub frames: Vec<u32>,
    /// Its value in each part.
    pub values: Vec<u64>,
}

/// The content of a flame graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlameGraph {
    /// What it shows.
    pub title: String,
    /// What its values are.
    pub unit: FlameUnit,
    /// What each value of a stack is about.
    pub parts: Vec<String>,
    /// Names of functions.
    pub names: Vec<String>,
    /// The stacks, that with the largest value first.
    pub stacks: Vec<FlameStack>,
}

/// Values by chain, by its number in the tree of calls, and part.
pub type ChainValues = BTreeMap<(u32, FlamePart), u64>;

/// The time of samples at memory outside of the caches.
pub fn memory_time(placed: &[(&Observation, TimePlace)]) -> ChainValues {
    let mut values = ChainValues::new();
    for (at, place) in placed {
        let part = match place {
            TimePlace::Computing | TimePlace::PrivateCache | TimePlace::SharedCache => continue,
            TimePlace::Contended => FlamePart::Contended,
            TimePlace::Local | TimePlace::Remote | TimePlace::Unknown => {
                at.access().and_then(|access| access.home).map_or(FlamePart::UnknownNode, FlamePart::Node)
            }
        };
        *values.entry((at.chain, part)).or_default() += at.weight;
    }
    values
}

impl FlameGraph {
    /// Names the functions of all chains. Chains whose functions are the same become one stack.
    pub fn new(title: &str, unit: FlameUnit, values: &ChainValues, names: &mut ChainNames<'_>) -> Self {
        let mut parts: Vec<FlamePart> = values.keys().map(|(_, part)| *part).collect();
        parts.sort_unstable();
        parts.dedup();
        let mut graph = Self {
            title: title.to_owned(),
            unit,
            parts: parts.iter().map(|part| part.word()).collect(),
            names: Vec::new(),
            stacks: Vec::new(),
        };
        let mut places = HashMap::new();
        let mut stacks: HashMap<Vec<u32>, Vec<u64>> = HashMap::new();
        for ((chain, part), value) in values {
            let frames = graph.frames(names.of(*chain), &mut places);
            let sums = stacks.entry(frames).or_insert_with(|| vec![0; parts.len()]);
            if let Some(sum) = parts.binary_search(part).ok().and_then(|at| sums.get_mut(at)) {
                *sum += value;
            }
        }
        graph.stacks = stacks.into_iter().map(|(frames, values)| FlameStack { frames, values }).collect();
        graph.stacks.sort_by_cached_key(|stack| (Reverse(stack.total()), stack.frames.clone()));
        graph.shorten(&mut places);
        graph
    }

    fn frames(&mut self, chain: Vec<CodeName>, places: &mut HashMap<String, u32>) -> Vec<u32> {
        if chain.is_empty() {
            return vec![self.place(UNKNOWN.to_owned(), places)];
        }
        let name = |code: CodeName| code.function.unwrap_or(format!("[{}]", code.module));
        chain.into_iter().rev().map(|code| self.place(name(code), places)).collect()
    }

    fn place(&mut self, name: String, places: &mut HashMap<String, u32>) -> u32 {
        *places.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            self.names.len() as u32 - 1
        })
    }

    fn shorten(&mut self, places: &mut HashMap<String, u32>) {
        if self.stacks.len() <= MAX_STACKS {
            return;
        }
        let rest = self.stacks.split_off(MAX_STACKS);
        let mut values = vec![0; self.parts.len()];
        for stack in rest {
            values.iter_mut().zip(stack.values).for_each(|(sum, value)| *sum += value);
        }
        let others = self.place(OTHERS.to_owned(), places);
        self.stacks.push(FlameStack { frames: vec![others], values });
    }

    /// The sum of all values.
    pub fn total(&self) -> u64 {
        self.stacks.iter().map(FlameStack::total).sum()
    }

    /// The graph in stackcollapse's format: one line for each stack and part, with its value. The part is the innermost
    /// frame.
    pub fn folded(&self) -> String {
        folded::text(self)
    }

    /// The graph as an SVG image that needs no other file: a click on a function makes it as wide as the image.
    pub fn svg(&self) -> String {
        svg::image(self)
    }
}

impl FlameStack {
    /// The sum of its parts.
    pub fn total(&self) -> u64 {
        self.values.iter().sum()
    }
}

#[cfg(test)]
mod tests;
