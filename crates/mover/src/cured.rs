//! What a cure says of processes that run: where its variables are, and the nodes of their parts.

use crate::error::MoveError;
use crate::observed::maps;
use crate::parts::{MovablePart, PartPurpose};
use crate::report::NotCured;
use crate::threads::ThreadDecision;
use numakit_cure::{
    Cure, CuredIdentity, CuredObject, FRACTIONS, FittedPolicy, ObjectPolicy, ProgramFile, RunThreads,
};
use numakit_explain::module_files::ModuleFile;
use numakit_model::Topology;
use numakit_sys::SysRoot;
use numakit_sys::proc::TaskDir;
use numakit_sys::proc::maps::MapsEntry;
use numakit_sys::sched::page_size;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;

/// Pieces of what is spread over nodes in turn, at most.
const PIECES: u64 = 1024;

/// A process whose program a cure is for.
#[derive(Debug)]
pub struct CuredProcess {
    /// The process.
    process: u32,
    /// The files from which it has mapped code, each with the address of its first page.
    files: Vec<(ModuleFile, u64)>,
    /// What it has mapped.
    mapped: Vec<Range<u64>>,
}

/// Those of these processes that run the program of a cure; an error if none does.
pub fn cured_processes(
    root: &SysRoot,
    cure: &Cure,
    processes: &[u32],
) -> Result<Vec<CuredProcess>, MoveError> {
    let observed = &cure.program;
    let (mut found, mut other) = (Vec::new(), None);
    for &process in processes {
        let (file, read) = ModuleFile::of_process(root, process);
        let program = read.map(|read| read.file).unwrap_or_default();
        if observed.build_id.is_empty() || program.build_id == observed.build_id {
            found.extend(CuredProcess::of(root, process)?);
        } else {
            other.get_or_insert((process, ProgramFile { file, ..program }));
        }
    }
    match other {
        Some((process, runs)) if found.is_empty() => {
            Err(MoveError::OtherBuild { process, runs, observed: observed.clone() })
        }
        _ => Ok(found),
    }
}

impl CuredProcess {
    /// A process that runs; `None` if it has ended.
    fn of(root: &SysRoot, process: u32) -> Result<Option<Self>, MoveError> {
        let dir = TaskDir::of(root, process);
        let Some(text) = maps(root, process)? else { return Ok(None) };
        let (exe, folder) = (root.link(&dir.path("exe")).unwrap_or_default(), dir.other_root());
        let path = |name: &str| match &folder {
            // The link leads to the program even if another one has its name now.
            _ if name == exe => PathBuf::from(dir.path("exe")),
            Some(folder) => folder.join(name.trim_start_matches('/')),
            None => PathBuf::from(name),
        };
        let (mut code, mut mapped) = (BTreeMap::<_, (&str, u64, bool)>::new(), Vec::new());
        for entry in text.lines().filter_map(MapsEntry::parse) {
            if entry.inode != 0 {
                let first = (entry.name, entry.range.start, false);
                code.entry((entry.device, entry.inode)).or_insert(first).2 |= entry.executable;
            }
            mapped.push(entry.range);
        }
        let code = code.into_values().filter(|(.., executable)| *executable);
        let files =
            code.filter_map(|(name, start, _)| Some((ModuleFile::read(&path(name))?, start))).collect();
        Ok(Some(Self { process, files, mapped }))
    }

    /// The parts of a cure's variables, if the threads are there; adds what gets nothing to `not`.
    pub fn parts(&self, cure: &Cure, threads: &RunThreads, not: &mut NotCured) -> Vec<MovablePart> {
        let fitted = cure.fit(threads);
        for (place, why) in &fitted.refused {
            not.unfit.insert(cure.objects[*place].name.clone(), why.to_string());
        }
        let nodes: BTreeSet<u32> = threads.nodes.iter().copied().collect();
        let mut parts = Vec::new();
        for object in &fitted.objects {
            let CuredObject { name, identity, policy, .. } = &cure.objects[object.place];
            let CuredIdentity::Variable { module, address, bytes } = identity else {
                not.blocks.insert(name.clone());
                continue;
            };
            let Some(range) = self.range(module, *address, *bytes) else {
                not.absent.insert(name.clone());
                continue;
            };
            let by_node = match (&object.policy, policy) {
                (FittedPolicy::Parts { node, .. }, _) => divided(&range, &node[..]),
                (FittedPolicy::Same, ObjectPolicy::Interleave | ObjectPolicy::Weighted) => {
                    in_turn(&range, &nodes)
                }
                (FittedPolicy::Same, _) => {
                    not.at_start.insert(name.clone());
                    continue;
                }
            };
            parts.extend(by_node.into_iter().map(|(node, ranges)| self.part(name, node, ranges)));
        }
        parts
    }

    /// The nodes of its threads in their order of creation: as decided, else where they ran last.
    pub fn threads(
        &self,
        root: &SysRoot,
        topology: &Topology,
        cure: &Cure,
        decisions: &[ThreadDecision],
    ) -> RunThreads {
        let dir = TaskDir::of(root, self.process);
        let decided =
            |thread: u32| decisions.iter().find(|of| of.process == self.process && of.thread == thread)?.node;
        let one = |thread: u32| {
            let stat = dir.thread(thread).stat().ok()?;
            let ran = || Some(topology.node_of_cpu(stat.cpu?)?.os_index);
            Some((stat.start, thread, decided(thread).or_else(ran)?))
        };
        let mut threads: Vec<_> = dir.live_threads().into_iter().filter_map(one).collect();
        threads.sort_unstable();
        let idle = (cure.threads.count as usize).saturating_sub(cure.threads.working.len());
        let told = u32::try_from(threads.len().saturating_sub(idle)).ok();
        RunThreads { nodes: threads.into_iter().map(|(.., node)| node).collect(), told }
    }

    /// Where a variable is.
    fn range(&self, module: &ProgramFile, address: u64, bytes: u64) -> Option<Range<u64>> {
        let (file, first) = self.files.iter().find(|(file, _)| file.file.build_id == module.build_id)?;
        let start = first.checked_add(address.checked_sub(file.address(0))?)?;
        let range = start..start.checked_add(bytes)?;
        let is_mapped = |address: u64| self.mapped.iter().any(|of| of.contains(&address));
        (is_mapped(range.start) && is_mapped(range.end - 1)).then_some(range)
    }

    fn part(&self, name: &str, node: u32, ranges: Vec<Range<u64>>) -> MovablePart {
        MovablePart {
            process: self.process,
            ranges,
            node,
            name: name.to_owned(),
            purpose: PartPurpose::OfCure,
            homes: BTreeMap::new(),
            samples: 0,
            near: 0,
            hot: Vec::new(),
        }
    }
}

/// The ranges of each node, in whole pages, if the fractions of this range have these nodes.
fn divided(range: &Range<u64>, nodes: &[Option<u32>]) -> BTreeMap<u32, Vec<Range<u64>>> {
    let (page, bytes) = (page_size(), range.end - range.start);
    let border = |fraction: u64| {
        let all = u64::from(FRACTIONS);
        let exact = range.start + bytes / all * fraction + bytes % all * fraction / all;
        (exact + page / 2) / page * page
    };
    let fractions = (0u64..).zip(nodes).filter_map(|(at, node)| Some((border(at)..border(at + 1), (*node)?)));
    by_node(fractions)
}

/// The ranges of each node, if pieces of this range are on these nodes in turn.
fn in_turn(range: &Range<u64>, nodes: &BTreeSet<u32>) -> BTreeMap<u32, Vec<Range<u64>>> {
    let page = page_size();
    let (start, end) = (range.start / page * page, range.end.next_multiple_of(page));
    let piece = (end - start).div_ceil(PIECES).next_multiple_of(page);
    let pieces = (start..end).step_by(piece as usize).map(|at| at..(at + piece).min(end));
    by_node(pieces.zip(nodes.iter().copied().cycle()))
}

/// Collects ranges by node; those that follow each other become one.
fn by_node(ranges: impl Iterator<Item = (Range<u64>, u32)>) -> BTreeMap<u32, Vec<Range<u64>>> {
    let mut all: BTreeMap<u32, Vec<Range<u64>>> = BTreeMap::new();
    for (range, node) in ranges.filter(|(range, _)| !range.is_empty()) {
        let of = all.entry(node).or_default();
        match of.last_mut().filter(|last| last.end == range.start) {
            Some(last) => last.end = range.end,
            None => of.push(range),
        }
    }
    all
}

#[cfg(test)]
mod tests;
