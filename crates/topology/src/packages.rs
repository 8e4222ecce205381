//! Cores, clusters, dies, packages, books and drawers: who shares what, as the kernel says.

use crate::cpus::CPU;
use crate::reader::Reader;
use numakit_model::CpuSet;
use numakit_model::topology::{Core, Package};
use std::collections::BTreeMap;

pub(crate) struct Levels {
    pub cores: Vec<Core>,
    pub packages: Vec<Package>,
    pub dies: Vec<CpuSet>,
    pub clusters: Vec<CpuSet>,
    pub books: Vec<CpuSet>,
    pub drawers: Vec<CpuSet>,
}

/// One level: groups of CPUs that never overlap. A CPU's file is only read when no file read
/// before has said where the CPU belongs.
struct Level {
    /// The files that may hold the mask, the newer name first; the lists have `_list` added.
    files: &'static [&'static str],
    groups: Vec<CpuSet>,
    covered: CpuSet,
    /// Which file this kernel has.
    found: Option<&'static str>,
    /// A CPU with a topology directory had none of the files, so no CPU will.
    absent: bool,
}

impl Level {
    fn new(files: &'static [&'static str]) -> Self {
        Self { files, groups: Vec::new(), covered: CpuSet::new(), found: None, absent: false }
    }

    /// Makes sure that a CPU is in a group, if the kernel says in which. True when this CPU
    /// opened a new one.
    fn place(&mut self, reader: &mut Reader<'_>, cpu: u32, online: &CpuSet) -> bool {
        if self.absent || self.covered.contains(cpu) {
            return false;
        }
        let Some(cpus) = self.read(reader, cpu) else { return false };
        // A mask of zeros was seen on real machines; the CPU is with itself at least.
        let mut cpus = cpus.and(online).minus(&self.covered);
        cpus.insert(cpu);
        self.covered = self.covered.or(&cpus);
        self.groups.push(cpus);
        true
    }

    fn read(&mut self, reader: &mut Reader<'_>, cpu: u32) -> Option<CpuSet> {
        let directory = format!("{CPU}/cpu{cpu}/topology");
        let known = self.found.map(|file| [file]);
        for &file in known.as_ref().map_or(self.files, |file| file.as_slice()) {
            let set = reader.set(format_args!("{directory}/{file}"), format_args!("{directory}/{file}_list"));
            if set.is_some() {
                self.found = Some(file);
                return set;
            }
        }
        None
    }
}

/// Reads all levels in one pass over the CPUs.
pub(crate) fn read(reader: &mut Reader<'_>, online: &CpuSet) -> Levels {
    let mut levels = read_places(reader, online);
    for core in &mut levels.cores {
        core.os_index = first_id(reader, &core.cpus, "core_id");
    }
    levels
}

/// The same without the kernel's numbers of cores.
pub(crate) fn read_places(reader: &mut Reader<'_>, online: &CpuSet) -> Levels {
    let mut core = Level::new(&["core_cpus", "thread_siblings"]);
    let mut outer = [
        Level::new(&["package_cpus", "core_siblings"]),
        Level::new(&["die_cpus"]),
        Level::new(&["cluster_cpus"]),
        Level::new(&["book_cpus", "book_siblings"]),
        Level::new(&["drawer_cpus", "drawer_siblings"]),
    ];
    for cpu in online.iter() {
        core.place(reader, cpu, online);
        for level in &mut outer {
            level.place(reader, cpu, online);
            // All CPUs with a topology directory have the same files in it.
            level.absent |= level.found.is_none() && core.found.is_some();
        }
    }
    let alone = online.minus(&core.covered);
    if !alone.is_empty() {
        reader.note(format!("CPUs {alone} do not say which core they are in; each is shown as its own"));
    }
    core.groups.extend(alone.iter().map(|cpu| CpuSet::range(cpu, cpu)));
    let cores = core.groups.into_iter().map(|cpus| Core { cpus, ..Core::default() });
    let mut cores: Vec<Core> = cores.collect();
    cores.sort_by_key(|core| core.cpus.first());
    let [packages, dies, clusters, books, drawers] = outer;
    Levels {
        cores,
        packages: name_packages(reader, packages, online),
        dies: dies.groups,
        clusters: clusters.groups,
        books: books.groups,
        drawers: drawers.groups,
    }
}

/// Gives packages their numbers, and puts CPUs that show no siblings together by number.
fn name_packages(reader: &mut Reader<'_>, level: Level, online: &CpuSet) -> Vec<Package> {
    let rest = online.minus(&level.covered);
    let named = level.groups.into_iter();
    let mut packages: Vec<Package> = named
        .map(|cpus| Package { os_index: first_id(reader, &cpus, "physical_package_id"), cpus })
        .collect();
    let mut by_number: BTreeMap<u32, CpuSet> = BTreeMap::new();
    for cpu in rest.iter() {
        if let Some(id) = first_id(reader, &CpuSet::range(cpu, cpu), "physical_package_id") {
            by_number.entry(id).or_default().insert(cpu);
        }
    }
    packages.extend(by_number.into_iter().map(|(id, cpus)| Package { os_index: Some(id), cpus }));
    packages.sort_by_key(|package| package.cpus.first());
    let homeless = packages.iter().fold(rest, |rest, p| rest.minus(&p.cpus));
    if !homeless.is_empty() {
        reader.note(format!("CPUs {homeless} do not say which package they are in"));
    }
    packages
}

/// A number that all CPUs of a group share, from the first that shows it; -1 means none.
fn first_id(reader: &mut Reader<'_>, cpus: &CpuSet, file: &str) -> Option<u32> {
    let id = cpus.iter().find_map(|cpu| reader.number(format_args!("{CPU}/cpu{cpu}/topology/{file}")))?;
    u32::try_from(id).ok()
}
