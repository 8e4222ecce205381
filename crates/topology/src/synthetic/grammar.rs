//! Parses a description.

use super::DescriptionError;
use super::facts::Facts;
use crate::json::MAX_CPUS;
use numakit_model::{CpuSet, suggest};

type Result<T> = std::result::Result<T, DescriptionError>;

/// Parts of a machine, outermost first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyntheticPart {
    Board,
    Package,
    Die,
    Node,
    L3,
    L2,
    Unit,
    Core,
    Pu,
}

const PARTS: [(&str, SyntheticPart); 9] = [
    ("board", SyntheticPart::Board),
    ("package", SyntheticPart::Package),
    ("die", SyntheticPart::Die),
    ("node", SyntheticPart::Node),
    ("l3", SyntheticPart::L3),
    ("l2", SyntheticPart::L2),
    ("unit", SyntheticPart::Unit),
    ("core", SyntheticPart::Core),
    ("pu", SyntheticPart::Pu),
];
const DEVICES: [&str; 5] = ["pci", "network", "storage", "display", "accelerator"];
const SETTINGS: [&str; 4] = ["dist", "numbering", "offline", "allowed"];

/// A level: the number of these parts in each part of the next outer level.
#[derive(Debug, Clone, Default)]
pub struct SyntheticLevel {
    pub count: u32,
    pub at: usize,
    pub memory_kb: Option<u64>,
    pub size: Option<u64>,
    pub l1: Option<u64>,
    /// The instruction cache, where it has another size.
    pub l1i: Option<u64>,
    pub l2: Option<u64>,
}

/// Nodes without CPUs.
#[derive(Debug)]
pub struct Far {
    pub count: u32,
    pub at: usize,
    pub memory_kb: Option<u64>,
    /// Added to the distance from the package that the node belongs to.
    pub added: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyntheticNumbering {
    Sequential,
    Interleaved,
    RoundRobin,
}

#[derive(Debug, Default)]
pub struct SyntheticMachine {
    pub levels: Vec<(SyntheticPart, SyntheticLevel)>,
    pub far: Vec<Far>,
    pub distances: Option<(usize, Vec<u32>)>,
    /// `None` where the description does not say.
    pub numbering: Option<SyntheticNumbering>,
    pub devices: Vec<(usize, String, u32)>,
    pub offline: Option<(usize, CpuSet)>,
    pub allowed: Option<(usize, CpuSet)>,
    /// Of a machine that exists.
    pub facts: Option<Facts>,
}

impl SyntheticMachine {
    /// Whether the PUs of a core have consecutive numbers.
    pub fn is_sequential(&self) -> bool {
        self.numbering == Some(SyntheticNumbering::Sequential)
    }
}

/// Memory of a node without `mem=`: 16 GiB.
pub const DEFAULT_MEMORY_KB: u64 = 16 << 20;

pub fn parse(text: &str) -> Result<SyntheticMachine> {
    let mut description = SyntheticMachine::default();
    for (at, item) in items(text) {
        let end = item.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(item.len());
        let (name, rest) = item.split_at(end);
        match rest.bytes().next() {
            Some(b'@') => device(&mut description, at, name, &rest[1..])?,
            Some(b'=') => setting(&mut description, at, name, &rest[1..])?,
            _ => level(&mut description, at, name, rest)?,
        }
    }
    if description.levels.is_empty() {
        return Err(DescriptionError::new(
            0,
            "no level is given",
            "for example 'package:2 node:2 core:4 pu:2'",
        ));
    }
    Ok(description)
}

/// Words with their positions. A space within parentheses does not end a word.
fn items(text: &str) -> Vec<(usize, &str)> {
    let mut items = Vec::new();
    let (mut start, mut depth) = (None, 0u32);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if c == ' ' && depth == 0 {
            items.extend(start.take().map(|from| (from, &text[from..at])));
        } else if start.is_none() {
            start = Some(at);
        }
    }
    items.extend(start.map(|from| (from, &text[from..])));
    items
}

fn level(description: &mut SyntheticMachine, at: usize, name: &str, rest: &str) -> Result<()> {
    let Some(order) = PARTS.iter().position(|(word, _)| *word == name) else {
        return Err(unknown(at, name, rest));
    };
    let part = PARTS[order].1;
    let (count_text, attributes) = match rest.find('(') {
        Some(open) => (&rest[..open], Some((at + name.len() + open + 1, &rest[open + 1..]))),
        None => (rest, None),
    };
    let count = match count_text.strip_prefix(':') {
        None if count_text.is_empty() => 1,
        digits => count(at + name.len() + 1, digits.unwrap_or(count_text), name)?,
    };
    let mut attributes = Attributes::parse(attributes)?;
    if part == SyntheticPart::Node && attributes.take_flag("cpuless") {
        description.far.push(Far {
            count,
            at,
            memory_kb: attributes.take_memory("mem")?,
            added: attributes.take_number("far")?.unwrap_or(10),
        });
        return attributes.finish("a node without CPUs can have cpuless, mem=SIZE and far=NUMBER");
    }
    check_order(description, at, order)?;
    let mut level = SyntheticLevel { count, at, ..SyntheticLevel::default() };
    let fix = match part {
        SyntheticPart::Node => {
            level.memory_kb = attributes.take_memory("mem")?;
            "a node can have mem=SIZE and cpuless"
        }
        SyntheticPart::L3 | SyntheticPart::L2 => {
            level.size = attributes.take_size("size")?;
            "a cache can have size=SIZE"
        }
        SyntheticPart::Unit => {
            level.size = attributes.take_size("size")?;
            "a unit can have size=SIZE, the size of its L2 cache"
        }
        SyntheticPart::Core => {
            level.l1 = attributes.take_size("l1")?;
            level.l1i = attributes.take_size("l1i")?;
            level.l2 = attributes.take_size("l2")?;
            "a core can have l1=SIZE, l1i=SIZE and l2=SIZE"
        }
        _ => "only node, l3, l2, unit and core have attributes",
    };
    attributes.finish(fix)?;
    description.levels.push((part, level));
    Ok(())
}

/// Levels go from the outside in. A node may contain packages or dies, or be smaller than a
/// cache, so it may be in any position.
fn check_order(description: &SyntheticMachine, at: usize, order: usize) -> Result<()> {
    let part = PARTS[order].1;
    for (before, _) in &description.levels {
        let name = PARTS[order].0;
        if *before == part {
            return Err(DescriptionError::new(
                at,
                format!("'{name}' is given twice"),
                "give each level once",
            ));
        }
        let rank = PARTS.iter().position(|(_, p)| p == before).unwrap_or(0);
        let free = |p: SyntheticPart, other: usize| p == SyntheticPart::Node && (1..=6).contains(&other);
        if rank > order && !free(part, rank) && !free(*before, order) {
            let fix = format!("put '{name}' before '{}': levels go from the outside in", PARTS[rank].0);
            return Err(DescriptionError::new(at, format!("'{name}' is inside '{}'", PARTS[rank].0), fix));
        }
    }
    Ok(())
}

fn device(description: &mut SyntheticMachine, at: usize, name: &str, target: &str) -> Result<()> {
    if !DEVICES.contains(&name) {
        let fix = format!("devices are {}", DEVICES.join(", "));
        return Err(DescriptionError::new(at, format!("'{name}' is not a device"), fix));
    }
    let node = target.strip_prefix("node").and_then(|digits| digits.parse().ok());
    let Some(node) = node else {
        let fix = format!("write {name}@node0 for a device at node 0");
        return Err(DescriptionError::new(at + name.len() + 1, format!("'{target}' is not a node"), fix));
    };
    if description.devices.len() == 255 {
        return Err(DescriptionError::new(at, "more than 255 devices", "leave some out"));
    }
    let class = if name == "pci" { "" } else { name };
    description.devices.push((at, class.to_owned(), node));
    Ok(())
}

fn setting(description: &mut SyntheticMachine, at: usize, name: &str, value: &str) -> Result<()> {
    let value_at = at + name.len() + 1;
    let set = || {
        let fix = "write a list such as 0-3,8";
        CpuSet::parse_list(value).map_err(|e| DescriptionError::new(value_at, e.to_string(), fix))
    };
    match name {
        "dist" => description.distances = Some((value_at, distances(value_at, value)?)),
        "offline" => description.offline = Some((value_at, set()?)),
        "allowed" => description.allowed = Some((value_at, set()?)),
        "numbering" => {
            description.numbering = match value {
                "sequential" => Some(SyntheticNumbering::Sequential),
                "interleaved" => Some(SyntheticNumbering::Interleaved),
                "roundrobin" => Some(SyntheticNumbering::RoundRobin),
                _ => {
                    let fix = "numberings are sequential, interleaved and roundrobin";
                    return Err(DescriptionError::new(
                        value_at,
                        format!("'{value}' is not a numbering"),
                        fix,
                    ));
                }
            }
        }
        _ => return Err(unknown(at, name, "=")),
    }
    Ok(())
}

fn distances(at: usize, value: &str) -> Result<Vec<u32>> {
    let mut values = Vec::new();
    let mut start = at;
    for word in value.split('/') {
        match word.parse::<u32>() {
            Ok(distance) if (1..=255).contains(&distance) => values.push(distance),
            _ => {
                let fix = "give distances of 1 to 255, local first: dist=10/16/100";
                return Err(DescriptionError::new(start, format!("'{word}' is not a distance"), fix));
            }
        }
        start += word.len() + 1;
    }
    Ok(values)
}

fn unknown(at: usize, name: &str, rest: &str) -> DescriptionError {
    let names = PARTS.iter().map(|(word, _)| *word).chain(SETTINGS);
    let near = suggest::nearest(name, names, 1);
    let shown = if name.is_empty() { rest } else { name };
    let fix = match near.first() {
        Some(near) => format!("did you mean '{near}'?"),
        None => "levels are board, package, die, node, l3, l2, unit, core and pu; settings are dist=, numbering=, \
                 offline= and allowed=; devices are such as pci@node0"
            .to_owned(),
    };
    DescriptionError::new(at, format!("'{shown}' is unknown"), fix)
}

fn count(at: usize, digits: &str, name: &str) -> Result<u32> {
    match digits.parse::<u32>() {
        Ok(count) if (1..=MAX_CPUS).contains(&count) => Ok(count),
        _ => {
            let fix = format!("write {name}:N with N from 1 to {MAX_CPUS}");
            Err(DescriptionError::new(at, format!("'{digits}' is not a count"), fix))
        }
    }
}

/// The attributes of an item. Each is taken out once, and none may remain.
struct Attributes<'a> {
    parts: Vec<(usize, &'a str, Option<&'a str>)>,
}

impl<'a> Attributes<'a> {
    fn parse(inside: Option<(usize, &'a str)>) -> Result<Self> {
        let Some((at, text)) = inside else { return Ok(Self { parts: Vec::new() }) };
        let Some(text) = text.strip_suffix(')').filter(|t| !t.contains(['(', ')'])) else {
            return Err(DescriptionError::new(
                at - 1,
                "the parenthesis does not close the word",
                "write (NAME=VALUE,...)",
            ));
        };
        let mut parts = Vec::new();
        let mut start = at;
        for part in text.split(',') {
            let skipped = part.len() - part.trim_start().len();
            let (name, value) =
                part.trim().split_once('=').map_or((part.trim(), None), |(n, v)| (n, Some(v)));
            parts.push((start + skipped, name, value));
            start += part.len() + 1;
        }
        Ok(Self { parts })
    }

    fn take(&mut self, name: &str) -> Option<(usize, Option<&'a str>)> {
        let at = self.parts.iter().position(|(_, n, _)| *n == name)?;
        let (position, _, value) = self.parts.remove(at);
        Some((position, value))
    }

    fn take_flag(&mut self, name: &str) -> bool {
        let flag = |p: &(usize, &str, Option<&str>)| p.1 == name && p.2.is_none();
        self.parts.iter().position(flag).map(|at| self.parts.remove(at)).is_some()
    }

    fn take_number(&mut self, name: &str) -> Result<Option<u32>> {
        let Some((at, value)) = self.take(name) else { return Ok(None) };
        let number = value.and_then(|v| v.parse().ok()).filter(|n| (0..=200).contains(n));
        let fix = format!("write {name}=N with N from 0 to 200");
        number.map(Some).ok_or_else(|| DescriptionError::new(at, format!("'{name}' has no number"), fix))
    }

    /// Takes a size in bytes.
    fn take_size(&mut self, name: &str) -> Result<Option<u64>> {
        let Some((at, value)) = self.take(name) else { return Ok(None) };
        let fix = format!("write {name}=32K, {name}=1536M or {name}=2T, up to 1024T");
        let size = value.and_then(size);
        size.map(Some).ok_or_else(|| DescriptionError::new(at, format!("'{name}' has no size"), fix))
    }

    /// Takes a size in KiB.
    fn take_memory(&mut self, name: &str) -> Result<Option<u64>> {
        Ok(self.take_size(name)?.map(|bytes| bytes / 1024))
    }

    fn finish(self, fix: &str) -> Result<()> {
        match self.parts.first() {
            None => Ok(()),
            Some((at, name, _)) => {
                Err(DescriptionError::new(*at, format!("'{name}' does not belong here"), fix))
            }
        }
    }
}

/// `32G`, `32GiB`, `0`: binary units; a bare number is bytes.
pub fn size(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let shift = match unit.strip_suffix("iB").unwrap_or(unit) {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    let size = digits.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    (size <= 1 << 50).then_some(size)
}
