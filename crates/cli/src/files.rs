//! What `numa file` does with files, one after the other.

use crate::progress::ProgressLine;
use anyhow::{Context, anyhow, bail};
use numakit_files::{Destination, FileResidence, FoundFile, FoundFiles, Reading, Relocated, UsePlan};
use numakit_model::plan::{Memory, Mode};
use numakit_model::{CpuSet, Topology};
use numakit_placement::lists::KnownNumbers;
use numakit_placement::{ListError, MemoryRequest, NumberList};
use numakit_processes::{Mapper, Mappers, TaskAccess, TaskNodes};
use numakit_sensors::glob;
use numakit_sys::permissions::{Permission, Permissions, Surroundings};
use numakit_sys::policy::MemoryPolicy;
use numakit_sys::stdio::note;
use numakit_sys::{SysRoot, file, sched};
use numakit_terminal::files::{ChangedFiles, Deed, ShownFiles};
use std::ffi::OsStr;
use std::fs::File;
use std::path::PathBuf;

/// The longest path that the kernel opens, in bytes.
const MAX_PATH: usize = 4096;

/// Files, and the machine.
pub struct Found<'a> {
    files: FoundFiles,
    mappers: Mappers,
    root: &'a SysRoot,
    topology: &'a Topology,
}

impl<'a> Found<'a> {
    /// The files at these paths.
    pub fn at(paths: &[PathBuf], root: &'a SysRoot, topology: &'a Topology) -> anyhow::Result<Self> {
        let files = numakit_files::find(paths)?;
        let asked = files.files.iter().map(|file| (file.path.as_path(), file.id));
        let mappers = Mappers::of(root, &TaskNodes::of(topology), asked);
        Ok(Self { files, mappers, root, topology })
    }

    /// The files.
    pub fn files(&self) -> &[FoundFile] {
        &self.files.files
    }

    /// The processes that map them.
    pub fn mappers(&self) -> &[Mapper] {
        &self.mappers.list
    }

    /// The machine.
    pub fn topology(&self) -> &Topology {
        self.topology
    }

    /// The fix if the kernel denies reading other processes.
    pub fn fix(&self) -> String {
        TaskAccess::read(self.root).fix()
    }

    /// Where they are.
    pub fn show(self) -> anyhow::Result<ShownFiles> {
        let mut line = ProgressLine::new();
        let mut files = Vec::with_capacity(self.files.files.len());
        for found in self.files.files {
            let residence = examine(&found, &found.open()?, &mut line)?;
            files.push((found, residence));
        }
        Ok(ShownFiles {
            nodes: self.topology.node_ids().iter().collect(),
            files,
            left_out: self.files.left_out,
            mappers: self.mappers,
            fix: TaskAccess::read(self.root).fix(),
        })
    }

    /// Moves them to a node.
    pub fn move_to(self, node: u32) -> anyhow::Result<ChangedFiles> {
        let one = NumberList::of(&CpuSet::range(node, node));
        self.nodes(one.as_ref()).context("--node")?;
        let policy = MemoryPolicy::bind(&CpuSet::range(node, node));
        let reading = Reading { policy, cpus: self.cpus_of(node) };
        self.relocate(|_| Destination::Node(node), &reading)
    }

    /// Spreads them over nodes, by default all with memory.
    pub fn spread(self, nodes: Option<&NumberList>) -> anyhow::Result<ChangedFiles> {
        let nodes = self.nodes(nodes).context("--nodes")?;
        let memory = Memory { mode: Mode::Interleave, nodes: nodes.clone() };
        let reading = Reading { policy: MemoryPolicy::of(&memory), cpus: None };
        self.relocate(|_| Destination::Spread(nodes.iter().collect()), &reading)
    }

    /// Moves pages as planned, a plan for each file.
    pub fn spread_by_use(self, plans: &[UsePlan]) -> anyhow::Result<ChangedFiles> {
        let reading = Reading { policy: MemoryPolicy::local(), cpus: None };
        self.relocate(|at| Destination::ByUse(plans.get(at).cloned().unwrap_or_default()), &reading)
    }

    /// Removes them from the cache.
    pub fn evict(self) -> anyhow::Result<ChangedFiles> {
        self.each(|_, found, file, line| {
            let before = examine(found, file, line)?;
            numakit_files::evict(found, file)?;
            Ok(Deed::Evicted { before, after: examine(found, file, line)? })
        })
    }

    /// Reads them by a memory policy.
    pub fn load(self, request: &MemoryRequest) -> anyhow::Result<ChangedFiles> {
        let nodes = match request.mode {
            Mode::Local => CpuSet::new(),
            _ => self.nodes(request.nodes.as_ref()).context("--policy")?,
        };
        let of_one = matches!(request.mode, Mode::Bind | Mode::Prefer) && nodes.len() == 1;
        let cpus = nodes.first().filter(|_| of_one).and_then(|node| self.cpus_of(node));
        if request.mode != Mode::Local && cpus.is_none() {
            policies_for(&format!("--policy {request}"), "use --policy local or bind:N")?;
        }
        let reading = Reading { policy: MemoryPolicy::of(&Memory { mode: request.mode, nodes }), cpus };
        self.each(|_, found, file, line| {
            let before = examine(found, file, line)?;
            let name = found.path.display().to_string();
            let read =
                numakit_files::load(found, file, &reading, &mut |done, all| line.show(&name, done, all))?;
            let after = examine(found, file, line)?;
            Ok(Deed::Loaded { before, after, read, policy: request.to_string() })
        })
    }

    fn relocate(
        self,
        target: impl Fn(usize) -> Destination,
        reading: &Reading,
    ) -> anyhow::Result<ChangedFiles> {
        let mapped: Vec<usize> = self.mappers.list.iter().map(|mapper| mapper.file).collect();
        self.each(|at, found, file, line| {
            let name = found.path.display().to_string();
            let mut progress = |done, all| line.show(&name, done, all);
            let is_mapped = mapped.contains(&at);
            let moved = Relocated::of((found, file), &target(at), reading, is_mapped, &mut progress)?;
            Ok(Deed::Moved(moved))
        })
    }

    fn each(
        self,
        mut change: impl FnMut(usize, &FoundFile, &File, &mut ProgressLine) -> anyhow::Result<Deed>,
    ) -> anyhow::Result<ChangedFiles> {
        let mut line = ProgressLine::new();
        let mut files = Vec::with_capacity(self.files.files.len());
        for (at, found) in self.files.files.into_iter().enumerate() {
            let deed = change(at, &found, &found.open()?, &mut line)?;
            files.push((found, deed));
        }
        Ok(ChangedFiles {
            nodes: self.topology.node_ids().iter().collect(),
            page: sched::page_size(),
            files,
            left_out: self.files.left_out,
            mappers: self.mappers,
            capability: Surroundings::own().runtime.with_capability("SYS_NICE"),
        })
    }

    /// The CPUs of a node that this process may run on.
    fn cpus_of(&self, node: u32) -> Option<CpuSet> {
        let allowed = sched::permitted().unwrap_or_default();
        let cpus = self.topology.node(node)?.cpus.iter().filter(|cpu| allowed.contains(*cpu));
        Some(cpus.collect()).filter(|cpus: &CpuSet| !cpus.is_empty())
    }

    /// The nodes that have memory for this process.
    pub fn allowed(&self) -> CpuSet {
        let has = |id: &u32| self.topology.node(*id).is_some_and(|node| node.memory_kb != Some(0));
        let usable = |id: &u32| has(id) && self.topology.allowed_nodes.contains(*id);
        self.topology.node_ids().iter().filter(usable).collect()
    }

    /// The nodes of a list that have memory for this process; by default all.
    fn nodes(&self, list: Option<&NumberList>) -> Result<CpuSet, ListError> {
        let allowed = self.allowed();
        let known = KnownNumbers {
            what: "node",
            there: &self.topology.node_ids(),
            offline: &CpuSet::new(),
            allowed: &allowed,
            limit: "it has no memory, or the cpuset leaves its memory out",
        };
        list.map_or_else(|| Ok(allowed.clone()), |list| list.within(&known))
    }
}

/// Reads the files that match a pattern and spreads them over nodes: before a program starts that will map them.
pub fn spread_before_start(pattern: &OsStr, nodes: &CpuSet) -> anyhow::Result<()> {
    glob::check(&pattern.to_string_lossy(), MAX_PATH).context("--spread-files takes a pattern of paths")?;
    let paths = file::matching(pattern).with_context(|| format!("--spread-files {}", pattern.display()))?;
    if paths.is_empty() {
        bail!(
            "--spread-files {}: no file matches; quote the pattern, and name files or folders",
            pattern.display()
        );
    }
    policies_for("--spread-files", "omit it")?;
    let memory = Memory { mode: Mode::Interleave, nodes: nodes.clone() };
    let reading = Reading { policy: MemoryPolicy::of(&memory), cpus: None };
    let target = Destination::Spread(nodes.iter().collect());
    let mut line = ProgressLine::new();
    for found in numakit_files::find(&paths)?.files {
        let (name, file) = (found.path.display().to_string(), found.open()?);
        let mut progress = |done, all| line.show(&name, done, all);
        numakit_files::load(&found, &file, &reading, &mut progress)?;
        let moved = Relocated::of((&found, &file), &target, &reading, false, &mut progress)?;
        if moved.left() > 0 {
            note(format_args!(
                "--spread-files: {} pages of {name} stay where they are; 'numa file spread {name}' says why",
                moved.left()
            ));
        }
    }
    Ok(())
}

/// Large files that processes map from several nodes and that are cached on one: what is seen, and the command for it.
pub fn one_sided(root: &SysRoot, topology: &Topology, pids: Option<&[u32]>) -> Vec<(String, String)> {
    // With one node, all is on it.
    if !root.is_host() || topology.nodes.len() < 2 {
        return Vec::new();
    }
    let found = numakit_files::one_sided(root, &TaskNodes::of(topology), pids, numakit_files::LARGE);
    found.iter().map(numakit_terminal::files::one_sided).collect()
}

/// An error with the fix where memory policies are refused.
fn policies_for(option: &str, otherwise: &str) -> anyhow::Result<()> {
    let permissions = Permissions::own_of(&[Permission::Policies]);
    let refused = permissions.check(Permission::Policies);
    refused.map_err(|refusal| anyhow!("{option}: {refusal}; {}, or {otherwise}", refusal.fix))
}

fn examine(found: &FoundFile, file: &File, line: &mut ProgressLine) -> anyhow::Result<FileResidence> {
    let name = found.path.display().to_string();
    let residence = FileResidence::of(file, &mut |done, all| line.show(&name, done, all));
    residence.with_context(|| format!("{name} cannot be examined"))
}
