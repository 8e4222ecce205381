//! Which functions and source lines the time belongs to.

use crate::observation::Observation;
use crate::place::TimePlace;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;

/// Names for an address of code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CodeName {
    /// The function; `None` if the code has no names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The program or library.
    pub module: String,
    /// The source file, if there is debug information.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl fmt::Display for CodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.function, &self.file, self.line) {
            (Some(function), Some(file), Some(line)) => write!(f, "{function} ({file}:{line})"),
            (Some(function), ..) => write!(f, "{function} [{}]", self.module),
            (None, ..) => write!(f, "[{}]", self.module),
        }
    }
}

impl CodeName {
    /// Whether it is code of a script, whose file is run as it is written.
    pub fn is_script(&self) -> bool {
        let file = self.file.as_deref().and_then(|file| file.rsplit('/').next());
        file == Some(self.module.as_str())
    }

    /// A function of a script with its line, as in `lookup (app.py:8)`; `None` for other code, and where the line is not known.
    pub fn in_script(&self) -> Option<String> {
        let (function, line) = (self.function.as_deref()?, self.line?);
        self.is_script().then(|| format!("{function} ({}:{line})", self.module))
    }
}

/// Finds names for code.
pub trait CodeNames {
    /// The names for an instruction of a process, by its place in the list of processes.
    fn name(&mut self, process: u32, instruction: u64) -> CodeName;
}

/// CPU time in ns, by where it went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceTimes {
    /// In the thread's own arithmetic.
    pub computing: u64,
    /// For memory that fits the core's caches.
    pub private_cache: u64,
    /// For memory that fits the share of the last-level cache.
    pub shared_cache: u64,
    /// For contended lines.
    pub contended: u64,
    /// For memory of the own node.
    #[serde(alias = "near")]
    pub local: u64,
    /// For memory of other nodes.
    #[serde(alias = "far")]
    pub remote: u64,
    /// For memory of an unknown node.
    pub unknown: u64,
}

impl PlaceTimes {
    /// Adds the time of a sample.
    pub fn add(&mut self, place: TimePlace, weight: u64) {
        *match place {
            TimePlace::Computing => &mut self.computing,
            TimePlace::PrivateCache => &mut self.private_cache,
            TimePlace::SharedCache => &mut self.shared_cache,
            TimePlace::Contended => &mut self.contended,
            TimePlace::Local => &mut self.local,
            TimePlace::Remote => &mut self.remote,
            TimePlace::Unknown => &mut self.unknown,
        } += weight;
    }

    /// All of it.
    pub fn total(&self) -> u64 {
        self.computing + self.private_cache + self.shared_cache + self.outside()
    }

    /// The time for which threads waited for memory outside of the caches.
    pub fn outside(&self) -> u64 {
        self.contended + self.local + self.remote + self.unknown
    }
}

/// A function or a line with its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeTime {
    /// What it is.
    #[serde(flatten)]
    pub name: CodeName,
    /// Where its time went, in ns.
    pub time: PlaceTimes,
}

/// The time of each function, and of each source line where lines are known. Those that waited most for memory come first.
pub fn times<'a>(
    samples: impl Iterator<Item = (&'a Observation, TimePlace)>,
    names: &mut dyn CodeNames,
) -> (Vec<CodeTime>, Vec<CodeTime>) {
    let mut addresses: HashMap<(u32, u64), PlaceTimes> = HashMap::new();
    for (at, place) in samples {
        addresses.entry((at.process, at.instruction)).or_default().add(place, at.weight);
    }
    let (mut functions, mut lines) = (HashMap::new(), HashMap::new());
    for ((process, address), times) in addresses {
        let name = names.name(process, address);
        if name.line.is_some() {
            gather(&mut lines, name.clone(), times);
        }
        gather(&mut functions, CodeName { file: None, line: None, ..name }, times);
    }
    (sorted(functions), sorted(lines))
}

fn gather<K: Eq + Hash>(map: &mut HashMap<K, PlaceTimes>, key: K, times: PlaceTimes) {
    let sum = map.entry(key).or_default();
    sum.computing += times.computing;
    sum.private_cache += times.private_cache;
    sum.shared_cache += times.shared_cache;
    sum.contended += times.contended;
    sum.local += times.local;
    sum.remote += times.remote;
    sum.unknown += times.unknown;
}

fn sorted(map: HashMap<CodeName, PlaceTimes>) -> Vec<CodeTime> {
    let mut all: Vec<CodeTime> = map.into_iter().map(|(name, time)| CodeTime { name, time }).collect();
    all.sort_by(|a, b| {
        let key = |c: &CodeTime| (c.time.outside(), c.time.total());
        key(b).cmp(&key(a)).then_with(|| a.name.cmp(&b.name))
    });
    all
}
