//! The machine as a tree of text.

use super::homes;
use super::matrix::matrix;
use super::outline::{Item, OutlinePart, Private, outline};
use super::phrases as say;
use numakit_model::topology::{Cache, Core, Node};
use numakit_model::{CpuSet, Topology};
use std::collections::BTreeMap;

/// How a tree is shown.
#[derive(Debug, Clone, Copy)]
pub struct TreeStyle {
    /// Whether names are bold.
    pub color: bool,
    /// Characters in a line; only the lists of cores and the matrix are limited to it.
    pub width: usize,
}

impl TreeStyle {
    fn bold(&self, text: &str) -> String {
        if self.color { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn grey(&self, text: &str) -> String {
        if self.color { format!("\x1b[90m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// The whole page: a summary, the parts, distances, devices, and notes.
pub fn tree(t: &Topology, style: TreeStyle) -> String {
    let mut out = format!("{}\n", style.bold(&say::summary(t)));
    for (what, set) in [("offline", &t.offline), ("not allowed", &t.not_allowed())] {
        if !set.is_empty() {
            out += &format!("{what}: {}\n", say::cpus(set));
        }
    }
    let forbidden = t.node_ids().minus(&t.allowed_nodes);
    if !forbidden.is_empty() {
        out += &format!("no memory allowed from: {}\n", say::nodes(&forbidden));
    }
    out.extend(say::limits(&t.limits).map(|limits| format!("control group: {limits}\n")));
    out.push('\n');
    let parts = outline(t);
    let threads = t.cores.iter().any(|core| core.cpus.len() > 1);
    let listed: usize = t.nodes.iter().map(|node| node.cpus.len()).sum();
    let mut all = CpuSet::new();
    t.nodes.iter().for_each(|node| all.insert_all(&node.cpus));
    let overlap = listed > all.len();
    Writer { t, style, threads, overlap, private: Private::of(t), out: &mut out }.items(
        &parts.iter().collect::<Vec<_>>(),
        &CpuSet::new(),
        "",
    );
    out += &say::units(t).map_or_else(String::new, |words| format!("\n{words}\n"));
    if let Some(distances) = t.distances.as_ref().filter(|d| d.nodes.len() > 1) {
        out += &format!("\n{}\n{}", style.bold("distances"), matrix(distances, style.width));
    }
    out += &devices(t, style);
    if !t.notes.is_empty() {
        out.push('\n');
        t.notes.iter().for_each(|note| out += &format!("note: {note}\n"));
    }
    out
}

fn devices(t: &Topology, style: TreeStyle) -> String {
    let mut by_place: BTreeMap<(u32, &str), Vec<&str>> = BTreeMap::new();
    for device in &t.devices {
        if let Some(node) = device.node {
            let class = if device.class.is_empty() { "device" } else { device.class.as_str() };
            by_place.entry((node, class)).or_default().push(device.name.trim_start_matches("pci "));
        }
    }
    if by_place.is_empty() {
        return String::new();
    }
    let line = |((node, class), names): ((u32, &str), Vec<&str>)| {
        let more = if names.len() > 4 { format!(" and {} more", names.len() - 4) } else { String::new() };
        format!("  node {node}: {class} {}{more}\n", names[..names.len().min(4)].join(", "))
    };
    format!("\n{}\n{}", style.bold("devices"), by_place.into_iter().map(line).collect::<String>())
}

struct Writer<'a, 'o> {
    t: &'a Topology,
    style: TreeStyle,
    /// Whether a core has several PUs, so that the number is shown.
    threads: bool,
    /// Whether nodes have CPUs in common.
    overlap: bool,
    private: Private<'a>,
    out: &'o mut String,
}

/// A line of the tree: a part, or all cores of a kind.
enum Line<'i, 'a> {
    Part(&'i Item<'a>),
    Cores(Vec<&'a Core>),
}

impl<'a> Writer<'a, '_> {
    fn items(&mut self, items: &[&Item<'a>], parent: &CpuSet, indent: &str) {
        let mut lines: Vec<Line<'_, 'a>> = Vec::new();
        let mut cores: BTreeMap<String, Vec<&'a Core>> = BTreeMap::new();
        for &item in items {
            match item.part {
                OutlinePart::Core(core) => cores.entry(self.core_words(core)).or_default().push(core),
                _ => lines.push(Line::Part(item)),
            }
        }
        let mut cores: Vec<Vec<&Core>> = cores.into_values().collect();
        cores.sort_by_key(|group| group[0].cpus.first());
        let at = lines.iter().position(|l| matches!(l, Line::Part(item) if item.cpus.is_empty()));
        let at = at.unwrap_or(lines.len());
        lines.splice(at..at, cores.into_iter().map(Line::Cores));
        let last = lines.len().saturating_sub(1);
        for (at, line) in lines.iter().enumerate() {
            let outermost =
                indent.is_empty() && !items.iter().any(|i| matches!(i.part, OutlinePart::Core(_)));
            let (branch, below) = match (outermost, at == last) {
                (true, _) => ("", "  "),
                (false, false) => ("├─ ", "│  "),
                (false, true) => ("└─ ", "   "),
            };
            let below = format!("{indent}{below}");
            match line {
                Line::Cores(cores) => self.cores(cores, &format!("{indent}{branch}"), &below, parent),
                Line::Part(item) => self.part(item, &format!("{indent}{branch}"), &below),
            }
        }
    }

    fn part(&mut self, item: &Item<'a>, start: &str, below: &str) {
        let (name, rest) = self.words(item);
        let is_allowed = self.is_allowed(&item.cpus);
        let mut words = vec![if is_allowed { self.style.bold(&name) } else { name }];
        words.extend(rest);
        let mut inside: Vec<&Item<'a>> = item.inside.iter().collect();
        // A cache of the whole part is shown in its line.
        while let Some((at, cache)) = whole_cache(&inside, &item.cpus) {
            words.push(say::cache(cache));
            let hidden = inside.remove(at);
            inside.splice(at..at, &hidden.inside);
        }
        let memory = match item.part {
            OutlinePart::Node(node) => memory_lines(self.t, node),
            _ => Vec::new(),
        };
        if memory.is_empty()
            && let Some(cores) = self.only_cores(&inside, &item.cpus)
            && start.chars().count() + [words.join("  "), cores.join("  ")].join("  ").len()
                <= self.style.width
        {
            words.extend(cores);
            inside.clear();
        }
        *self.out += &format!("{start}{}\n", self.shade(is_allowed, &words.join("  ")));
        for (at, line) in memory.iter().enumerate() {
            let branch = if inside.is_empty() && at + 1 == memory.len() { "└─ " } else { "├─ " };
            *self.out += &format!("{below}{branch}{line}\n");
        }
        self.items(&inside, &item.cpus, below);
    }

    /// Whether this process may run on some of these CPUs, or there are none.
    fn is_allowed(&self, cpus: &CpuSet) -> bool {
        cpus.is_empty() || cpus.intersects(&self.t.allowed)
    }

    /// What this process may not use is grey.
    fn shade(&self, is_allowed: bool, text: &str) -> String {
        if is_allowed { text.to_owned() } else { self.style.grey(text) }
    }

    fn words(&self, item: &Item<'a>) -> (String, Vec<String>) {
        let cpus = say::cpus(&item.cpus);
        match item.part {
            OutlinePart::Board(at) => (format!("board {at}"), vec![say::nodes(&self.t.boards[at])]),
            OutlinePart::Drawer(at) => (format!("drawer {at}"), vec![cpus]),
            OutlinePart::Book(at) => (format!("book {at}"), vec![cpus]),
            OutlinePart::Package(package) => (say::package(package), vec![cpus]),
            OutlinePart::Die(at) => (format!("die {at}"), vec![cpus]),
            OutlinePart::Cluster => ("cluster".to_owned(), vec![cpus]),
            OutlinePart::Unit => ("unit".to_owned(), vec![cpus]),
            OutlinePart::Cache(cache) => (say::cache(cache), vec![cpus]),
            OutlinePart::Core(_) => ("core".to_owned(), vec![cpus]),
            OutlinePart::Node(node) => (format!("node {}", node.os_index), self.node_words(node, cpus)),
        }
    }

    fn node_words(&self, node: &Node, cpus: String) -> Vec<String> {
        let memory = match (node.memory_kb, node.free_kb) {
            (None, _) => "memory unknown".to_owned(),
            (Some(0), _) => "no memory".to_owned(),
            (Some(all), Some(free)) if free < all => {
                format!("{} ({} free)", say::memory(all), say::memory(free))
            }
            (Some(all), _) => say::memory(all),
        };
        let cpus = match node.cpus.is_empty() {
            false => cpus,
            true => match homes::nearest(self.t, node) {
                nearest if nearest.is_empty() => "no CPUs".to_owned(),
                nearest => format!("no CPUs, nearest to {}", say::nodes(&nearest)),
            },
        };
        let others = self.t.nodes.iter().filter(|other| self.overlap && other.os_index != node.os_index);
        let shared: CpuSet = others.filter(|o| o.cpus.intersects(&node.cpus)).map(|o| o.os_index).collect();
        let mut words = vec![memory, cpus];
        if !shared.is_empty() {
            words.push(format!("(shares CPUs with {})", say::nodes(&shared)));
        }
        if node.implicit {
            words.push("(implicit: the kernel shows no nodes)".to_owned());
        }
        if !self.t.allowed_nodes.contains(node.os_index) {
            words.push("(memory not allowed)".to_owned());
        }
        words
    }

    /// What cores must have in common to share a line.
    fn core_words(&self, core: &Core) -> String {
        let mut words = Vec::new();
        if let Some(kind) = core.kind.and_then(|kind| self.t.kinds.get(kind as usize)) {
            words.push(kind.name.clone());
        }
        if self.threads {
            words.push(format!("{} each", say::count(core.cpus.len(), "PU")));
        }
        let mut caches: Vec<(String, usize)> = Vec::new();
        for cache in self.private.get(core) {
            let name = say::cache(cache);
            match caches.iter_mut().find(|(known, _)| *known == name) {
                Some((_, times)) => *times += 1,
                None => caches.push((name, 1)),
            }
        }
        let times =
            |(name, times): (String, usize)| if times > 1 { format!("{times} x {name}") } else { name };
        words.extend(caches.into_iter().map(times));
        words.join(", ")
    }

    /// The number of cores, their properties, and their CPUs unless the line above has the same.
    fn cores_words(&self, cores: &[&Core], parent: &CpuSet) -> Vec<String> {
        let all: CpuSet = cores.iter().flat_map(|core| core.cpus.iter()).collect();
        let single = cores.iter().all(|core| core.cpus.len() == 1);
        let list = match single {
            true if all == *parent => String::new(),
            true => say::cpus(&all),
            false => short_list(cores),
        };
        let words = [say::count(cores.len(), "core"), self.core_words(cores[0]), list];
        words.into_iter().filter(|words| !words.is_empty()).collect()
    }

    fn cores(&mut self, cores: &[&Core], start: &str, below: &str, parent: &CpuSet) {
        let mut line = start.to_owned();
        let is_allowed = cores.iter().any(|core| self.is_allowed(&core.cpus));
        for (at, words) in self.cores_words(cores, parent).into_iter().enumerate() {
            // Lists are never broken: one that does not fit has its own line.
            if line.chars().count() + 2 + words.len() > self.style.width {
                *self.out += &format!("{line}\n");
                line = format!("{below}   {words}");
            } else {
                line += &format!("{}{words}", if at == 0 { "" } else { "  " });
            }
        }
        *self.out += &format!("{}\n", self.shade(is_allowed, &line));
    }

    /// The cores, if nothing else is inside and they are all of these CPUs, so that they need no list.
    fn only_cores(&self, inside: &[&Item<'a>], cpus: &CpuSet) -> Option<Vec<String>> {
        let core = |item: &&Item<'a>| match item.part {
            OutlinePart::Core(core) => Some(core),
            _ => None,
        };
        let cores: Vec<&Core> = inside.iter().map(core).collect::<Option<_>>()?;
        let first = self.core_words(cores.first()?);
        let alike = cores.iter().all(|core| core.cpus.len() == 1 && self.core_words(core) == first);
        let all: CpuSet = cores.iter().flat_map(|core| core.cpus.iter()).collect();
        (alike && all == *cpus).then(|| self.cores_words(&cores, cpus))
    }
}

/// What firmware and kernel know about the node's memory, except its size.
fn memory_lines(t: &Topology, node: &Node) -> Vec<String> {
    let caches = node.memory_side_caches.iter().map(|c| format!("memory-side cache {}", say::size(c.size)));
    let access = node.access.iter().filter_map(|access| {
        let who = if access.class == 0 { "" } else { " (CPUs only)" };
        Some(format!("{} from {}{who}", say::performance(access)?, say::nodes(&access.initiators)))
    });
    let used = node.huge_pages.iter().filter(|pool| pool.count > 0);
    let pools = used.map(|pool| format!("{} huge pages of {}", pool.count, say::memory(pool.size_kb)));
    // Equal weights are not shown.
    let alike = t.nodes.iter().all(|other| other.interleave_weight == node.interleave_weight);
    let weight = node.interleave_weight.filter(|_| !alike);
    let weight = weight
        .map(|weight| format!("{} in a row in weighted interleaving", say::count(weight as usize, "page")));
    caches.chain(access).chain(pools).chain(weight).collect()
}

/// The CPUs of each core; a long list is shortened in the middle.
fn short_list(cores: &[&Core]) -> String {
    const LONG: usize = 80;
    let parts: Vec<String> = cores.iter().map(|core| core.cpus.to_string()).collect();
    let whole = parts.join(" ");
    if whole.len() <= LONG {
        return whole;
    }
    let last = &parts[parts.len() - 1];
    let mut start = String::new();
    for part in parts.iter().take_while(|part| part.len() <= LONG) {
        if start.len() + part.len() + last.len() + 5 > LONG {
            break;
        }
        start += &format!("{part} ");
    }
    format!("{start}... {last}")
}

/// A cache of exactly these CPUs.
fn whole_cache<'a>(inside: &[&Item<'a>], cpus: &CpuSet) -> Option<(usize, &'a Cache)> {
    inside.iter().enumerate().find_map(|(at, item)| match item.part {
        OutlinePart::Cache(cache) if item.cpus == *cpus => Some((at, cache)),
        _ => None,
    })
}
