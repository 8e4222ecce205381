//! Cores, clusters, dies, packages, books and drawers.

use crate::cpus::CPU;
use crate::reader::Reader;
use numakit_model::CpuSet;
use numakit_model::topology::{Core, Package};
use std::collections::BTreeMap;

pub(crate) struct Levels {
    pub cores: Vec<Core>,
    /// Groups of cores that the kernel shows as one core.
    pub units: Vec<CpuSet>,
    pub packages: Vec<Package>,
    pub dies: Vec<CpuSet>,
    pub clusters: Vec<CpuSet>,
    pub books: Vec<CpuSet>,
    pub drawers: Vec<CpuSet>,
}

/// One level: groups of CPUs that never overlap. A CPU's file is only read if no file read before
/// has the CPU in its group.
struct Level {
    /// The files that may have the mask, newest name first; those with lists end in `_list`.
    files: &'static [&'static str],
    /// The file with a group's number. If it contains -1, the machine has no such groups: each mask then has only its own
    /// CPU.
    id: Option<&'static str>,
    groups: Vec<CpuSet>,
    covered: CpuSet,
    /// The file that this kernel has.
    found: Option<&'static str>,
    /// Whether a CPU with a topology directory had none of the files: then no CPU has them.
    absent: bool,
}

impl Level {
    fn new(files: &'static [&'static str]) -> Self {
        Self { files, id: None, groups: Vec::new(), covered: CpuSet::new(), found: None, absent: false }
    }

    fn optional(files: &'static [&'static str], id: &'static str) -> Self {
        Self { id: Some(id), ..Self::new(files) }
    }

    /// Puts a CPU into its group, if the kernel shows one. True if the group is new.
    fn place(&mut self, reader: &mut Reader<'_>, cpu: u32, online: &CpuSet) -> bool {
        if self.absent || self.covered.contains(cpu) {
            return false;
        }
        let Some(cpus) = self.read(reader, cpu) else { return false };
        if self.groups.is_empty() && self.id.is_some_and(|id| is_none(reader, cpu, id)) {
            self.absent = true;
            return false;
        }
        // Some real machines have masks of zeros or without the CPU itself.
        let mut cpus = if cpus.contains(cpu) { cpus.and(online).minus(&self.covered) } else { CpuSet::new() };
        cpus.insert(cpu);
        self.covered.insert_all(&cpus);
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
    let mut levels = read_for_placement(reader, online);
    for core in &mut levels.cores {
        core.os_index = first_id(reader, &core.cpus, "core_id");
    }
    levels
}

/// Reads all levels without the kernel's core numbers.
pub(crate) fn read_for_placement(reader: &mut Reader<'_>, online: &CpuSet) -> Levels {
    let mut core = Level::new(&["core_cpus", "thread_siblings"]);
    let mut outer = [
        Level::new(&["package_cpus", "core_siblings"]),
        Level::optional(&["die_cpus"], "die_id"),
        Level::optional(&["cluster_cpus"], "cluster_id"),
        Level::optional(&["book_cpus", "book_siblings"], "book_id"),
        Level::optional(&["drawer_cpus", "drawer_siblings"], "drawer_id"),
    ];
    for cpu in reader.with_directory(online).iter() {
        core.place(reader, cpu, online);
        for level in &mut outer {
            level.place(reader, cpu, online);
            // All CPUs with a topology directory have the same files in it, so no other CPU has this level.
            level.absent |= level.found.is_none() && core.found.is_some();
        }
    }
    let alone = online.minus(&core.covered);
    if !alone.is_empty() {
        reader.note(format!("CPUs {alone} do not say which core they are in; each is shown as its own"));
    }
    let (mut cores, units) = split(reader, core.groups);
    cores.extend(alone.iter().map(|cpu| CpuSet::range(cpu, cpu)));
    let cores = cores.into_iter().map(|cpus| Core { cpus, ..Core::default() });
    let mut cores: Vec<Core> = cores.collect();
    cores.sort_by_key(|core| core.cpus.first());
    let [packages, dies, clusters, books, drawers] = outer;
    Levels {
        packages: name_packages(reader, packages, online, &cores),
        cores,
        units,
        dies: dies.groups,
        clusters: clusters.groups,
        books: books.groups,
        drawers: drawers.groups,
    }
}

/// Splits the kernel's groups of threads into cores; also returns the groups of several cores.
///
/// AMD's family 15h pairs cores in modules, and the kernel shows each pair as threads of one
/// core, with a `core_id` for each. hwloc, Open MPI and AMD count these as cores, and so does
/// this. The first group of several CPUs decides for all.
fn split(reader: &mut Reader<'_>, groups: Vec<CpuSet>) -> (Vec<CpuSet>, Vec<CpuSet>) {
    let wide = groups.iter().find_map(|group| {
        let mut cpus = group.iter();
        Some([cpus.next()?, cpus.next()?])
    });
    let mut id = |cpu| first_id(reader, &CpuSet::range(cpu, cpu), "core_id");
    let ids = wide.map(|pair| pair.map(&mut id));
    if !matches!(ids, Some([Some(one), Some(other)]) if one != other) {
        return (groups, Vec::new());
    }
    let (mut cores, mut units) = (Vec::new(), Vec::new());
    for group in groups {
        let mut by_id: BTreeMap<Option<u32>, CpuSet> = BTreeMap::new();
        group.iter().for_each(|cpu| by_id.entry(id(cpu)).or_default().insert(cpu));
        if by_id.len() > 1 {
            units.push(group);
        }
        cores.extend(by_id.into_values());
    }
    (cores, units)
}

/// Numbers the packages, and groups CPUs without sibling masks by package number.
fn name_packages(reader: &mut Reader<'_>, level: Level, online: &CpuSet, cores: &[Core]) -> Vec<Package> {
    let rest = online.minus(&level.covered);
    let named = level.groups.into_iter();
    let mut packages: Vec<Package> = named
        .map(|cpus| Package { os_index: first_id(reader, &cpus, "physical_package_id"), cpus })
        .collect();
    let mut by_number: BTreeMap<u32, CpuSet> = BTreeMap::new();
    for cpu in reader.with_directory(&rest).iter() {
        if let Some(id) = first_id(reader, &CpuSet::range(cpu, cpu), "physical_package_id") {
            by_number.entry(id).or_default().insert(cpu);
        }
    }
    packages.extend(by_number.into_iter().map(|(id, cpus)| Package { os_index: Some(id), cpus }));
    packages.sort_by_key(|package| package.cpus.first());
    let without_package = packages.iter().fold(rest, |rest, p| rest.minus(&p.cpus));
    if !without_package.is_empty() {
        reader.note(format!("CPUs {without_package} do not say which package they are in"));
    }
    join(reader, packages, cores)
}

/// Joins packages whose sibling masks are cut at nodes, as in kernels before 3.15: they have the
/// same package number, and no core number twice. Packages with the same number and the same
/// core numbers are different ones.
fn join(reader: &mut Reader<'_>, packages: Vec<Package>, cores: &[Core]) -> Vec<Package> {
    let mut joined: Vec<Package> = Vec::new();
    let mut known: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for package in packages {
        let same = package.os_index.map(|id| known.entry(id).or_default());
        let Some(same) = same else {
            joined.push(package);
            continue;
        };
        let part =
            same.iter().copied().find(|&at| parts_of_one(reader, &joined[at].cpus, &package.cpus, cores));
        match part {
            Some(at) => {
                reader.note(format!(
                    "package {} is listed in parts, CPUs {} and {}, which have different cores of it; they \
                     were put together",
                    package.os_index.unwrap_or_default(),
                    joined[at].cpus,
                    package.cpus
                ));
                joined[at].cpus.insert_all(&package.cpus);
            }
            None => {
                same.push(joined.len());
                joined.push(package);
            }
        }
    }
    joined
}

/// Whether two sets of CPUs with the same package number have no core number in common, so that
/// they can be parts of one package.
fn parts_of_one(reader: &mut Reader<'_>, one: &CpuSet, other: &CpuSet, cores: &[Core]) -> bool {
    let mut numbers: BTreeMap<u32, usize> = BTreeMap::new();
    let both = one.or(other);
    for (at, core) in cores.iter().enumerate().filter(|(_, core)| core.cpus.intersects(&both)) {
        let Some(id) = first_id(reader, &core.cpus, "core_id") else { return false };
        if numbers.insert(id, at).is_some() {
            return false;
        }
    }
    true
}

/// Whether the number of a group is -1: the file is there, but the group is not.
fn is_none(reader: &mut Reader<'_>, cpu: u32, file: &str) -> bool {
    reader.number(format_args!("{CPU}/cpu{cpu}/topology/{file}")).is_some_and(|id| id < 0)
}

/// A number that all CPUs of a group share, from the first that has it; -1 means none.
fn first_id(reader: &mut Reader<'_>, cpus: &CpuSet, file: &str) -> Option<u32> {
    let present = reader.with_directory(cpus);
    let id = present.iter().find_map(|cpu| reader.number(format_args!("{CPU}/cpu{cpu}/topology/{file}")))?;
    u32::try_from(id).ok()
}

/// The CPUs that the kernel lists as threads of the same core as each CPU.
pub(crate) struct Siblings<'a> {
    groups: Vec<&'a CpuSet>,
    of_cpu: Vec<usize>,
}

impl<'a> Siblings<'a> {
    pub fn of(levels: &'a Levels) -> Self {
        let groups: Vec<&CpuSet> = levels.cores.iter().map(|core| &core.cpus).chain(&levels.units).collect();
        let slots = groups.iter().filter_map(|group| group.last()).max().map_or(0, |last| last as usize + 1);
        let mut of_cpu = vec![usize::MAX; slots];
        // Units come last, since a unit is wider than its cores.
        for (at, group) in groups.iter().enumerate() {
            group.iter().for_each(|cpu| of_cpu[cpu as usize] = at);
        }
        Self { groups, of_cpu }
    }

    pub fn get(&self, cpu: u32) -> Option<&'a CpuSet> {
        self.of_cpu.get(cpu as usize).and_then(|at| self.groups.get(*at)).copied()
    }
}
