//! `numa file spread --by-use`: samples of a program, and a plan for each file.

use crate::files::Found;
use crate::observe;
use crate::to_file::{self, Existing};
use anyhow::{Context, anyhow, bail};
use numakit_explain::explainer::Explainer;
use numakit_explain::file_use::{FileUses, WantedFile};
use numakit_files::{FoundFile, PageUse, UsePlan};
use numakit_model::{CpuSet, Topology};
use numakit_observation::samples::{OpenedSamples, SampleRequest, SampledEnd};
use numakit_processes::ChosenProcesses;
use numakit_sampling::{MethodKind, SampleSettings};
use numakit_sys::file::open_to_read;
use numakit_sys::proc::{TaskDir, tree};
use numakit_sys::stdio::note;
use numakit_sys::{SysRoot, file_pages, sched};
use numakit_terminal::files::{FileByUse, SamplesTaken};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// How long a running process is observed if the user does not say it.
const OBSERVED: Duration = Duration::from_secs(10);

/// What is sampled, and how.
#[derive(Debug)]
pub struct SampledUse<'a> {
    /// The processes; none for the command.
    pub chosen: Option<&'a ChosenProcesses>,
    /// The command.
    pub command: &'a [OsString],
    /// The length of the observation.
    pub duration: Option<Duration>,
    /// Samples in a second of CPU time of a thread.
    pub frequency: u32,
    /// The method that was asked for.
    pub method: Option<MethodKind>,
}

/// What came of it.
pub struct ObservedUse {
    /// For each file, what was sampled and what is planned.
    pub files: Vec<FileByUse>,
    /// The samples.
    pub taken: SamplesTaken,
}

impl SampledUse<'_> {
    /// Takes samples and plans; or, for a command that cannot be started, the exit code.
    pub fn observe(&self, found: &Found<'_>) -> anyhow::Result<Result<ObservedUse, ExitCode>> {
        if let Some(chosen) = self.chosen {
            check(chosen, found)?;
        }
        let wanted = found.files().iter().map(wanted).collect::<anyhow::Result<Vec<_>>>()?;
        let (samples, run) = match observe::samples(&self.request())? {
            Ok(opened) => opened,
            Err(code) => return Ok(Err(code)),
        };
        let OpenedSamples { method, reason, .. } = samples;
        let kind = method.kind();
        let topology = found.topology();
        let mut explainer =
            Explainer::for_files(method, run.processes(), topology.clone(), FileUses::of(wanted));
        // If a signal ends it, what was sampled so far is enough for the user.
        let time = self.duration.or_else(|| self.chosen.map(|_| OBSERVED));
        let SampledEnd { status, .. } = run.observe(&mut explainer, time, |_| anyhow::Ok(()))?;
        let missing = explainer.missing();
        let uses = explainer.file_uses().context("no samples were counted")?;
        let method = format!("by {kind}");
        let of_files = uses.samples.values().sum();
        let taken = SamplesTaken { method, reason, of_files, others: uses.others, missing };
        let planner = Planner { topology, allowed: found.allowed() };
        let files = planner.files(found.files(), uses)?;
        if let Some(status) = status.filter(|status| *status != 0) {
            note(format_args!("the command ended with exit code {status}"));
        }
        if of_files == 0 {
            bail!("{}", self.nothing(found, &taken));
        }
        Ok(Ok(ObservedUse { files, taken }))
    }

    fn request(&self) -> SampleRequest<'_> {
        SampleRequest {
            chosen: self.chosen,
            command: self.command,
            method: self.method,
            settings: SampleSettings { frequency: self.frequency, ..SampleSettings::default() },
            names: false,
            log: None,
        }
    }

    /// Why there is no plan.
    fn nothing(&self, found: &Found<'_>, taken: &SamplesTaken) -> String {
        let names: Vec<String> = found.files().iter().map(|file| file.path.display().to_string()).collect();
        let what = match taken.others {
            0 => "the program used no CPU time".to_owned(),
            others => format!("all {others} samples were of other memory"),
        };
        let how = match self.chosen {
            Some(_) => "observe it while it uses the file, longer with --for, or with more samples by -F",
            None => "the command must map it; take more samples with -F",
        };
        format!("{}: no sample was of it: {what}; {how}", names.join(", "))
    }
}

/// Refuses processes none of which maps one of the files.
fn check(chosen: &ChosenProcesses, found: &Found<'_>) -> anyhow::Result<()> {
    let root = SysRoot::host();
    if let [pid] = chosen.numbers() {
        TaskDir::of(&root, *pid)
            .text("maps")
            .map_err(|error| anyhow!("--pid {pid}: its mappings cannot be read: {error}; {}", found.fix()))?;
    }
    let processes = tree::families(&root, chosen.numbers());
    for (at, file) in found.files().iter().enumerate() {
        let is_user = |pid| processes.contains(&pid);
        if !found.mappers().iter().any(|mapper| mapper.file == at && is_user(mapper.pid)) {
            let path = file.path.display();
            let does = if processes.len() == 1 { "does not map it" } else { "do not map it" };
            bail!(
                "{path}: {chosen} {does}, and who reads it by read() leaves no trace in its memory; omit it, or give \
                 the process that maps it: 'numa file show {path}' lists them"
            );
        }
    }
    Ok(())
}

/// From samples to plans.
struct Planner<'a> {
    topology: &'a Topology,
    /// The nodes that pages may go to.
    allowed: CpuSet,
}

impl Planner<'_> {
    fn files(&self, files: &[FoundFile], uses: &FileUses) -> anyhow::Result<Vec<FileByUse>> {
        let mut by_file = vec![BTreeMap::new(); files.len()];
        for (used, count) in &uses.samples {
            let (page, node) = (used.offset / sched::page_size(), self.with_memory(used.node));
            let of_file: Option<&mut BTreeMap<PageUse, u64>> = by_file.get_mut(used.file);
            if let Some(of_file) = of_file {
                *of_file.entry(PageUse { page, node, home: used.home }).or_default() += count;
            }
        }
        let mut planned = Vec::with_capacity(files.len());
        for (file, uses) in files.iter().zip(by_file) {
            let size = file.open()?.metadata().context("its size cannot be read")?.len();
            let plan = UsePlan::new(&uses, size.div_ceil(sched::page_size()));
            planned.push(FileByUse { far: plan.far(&uses), plan });
        }
        Ok(planned)
    }

    /// The nearest node that may have pages.
    fn with_memory(&self, node: u32) -> u32 {
        let distance = |other: &u32| {
            let distances = self.topology.distances.as_ref();
            distances.and_then(|distances| distances.between(node, *other)).unwrap_or(u32::MAX)
        };
        match self.allowed.contains(node) {
            true => node,
            false => self.allowed.iter().min_by_key(distance).unwrap_or(node),
        }
    }
}

fn wanted(file: &FoundFile) -> anyhow::Result<WantedFile> {
    let path = std::fs::canonicalize(&file.path).with_context(|| file.path.display().to_string())?;
    let path = path.to_string_lossy().into_owned();
    Ok(WantedFile { device: file_pages::device(file.id.0), inode: file.id.1, path })
}

/// Plans of files, by their absolute paths.
type SavedPlans = BTreeMap<PathBuf, UsePlan>;

/// Writes plans to a file.
pub fn save(path: &Path, found: &Found<'_>, files: &[FileByUse]) -> anyhow::Result<()> {
    let mut plans = SavedPlans::new();
    for (file, by_use) in found.files().iter().zip(files) {
        plans.insert(std::fs::canonicalize(&file.path)?, by_use.plan.clone());
    }
    let json = serde_json::to_string(&plans).context("cannot write JSON")?;
    to_file::write(path, Existing::Replace, "", |to| Ok(writeln!(to, "{json}")?))
}

/// The plans of a file for these files.
pub fn saved(path: &Path, found: &Found<'_>) -> anyhow::Result<Vec<UsePlan>> {
    let shown = path.display();
    let mut text = Vec::new();
    open_to_read(path)
        .and_then(|mut file| file.read_to_end(&mut text))
        .with_context(|| format!("--plan {shown}"))?;
    let plans: SavedPlans = serde_json::from_slice(&text)
        .with_context(|| format!("--plan {shown}: it is no plan; give a file that --save wrote"))?;
    let mut of_files = Vec::new();
    for file in found.files() {
        let known = std::fs::canonicalize(&file.path).ok().and_then(|path| plans.get(&path).cloned());
        let plan = known.ok_or_else(|| {
            let has: Vec<String> = plans.keys().map(|path| path.display().to_string()).collect();
            anyhow!(
                "--plan {shown}: it has no plan for {}, only for {}; give one of these",
                file.path.display(),
                has.join(", ")
            )
        })?;
        check_plan(&plan, file, found).with_context(|| format!("--plan {shown}: {}", file.path.display()))?;
        of_files.push(plan);
    }
    Ok(of_files)
}

/// Refuses a plan of another file or machine.
fn check_plan(plan: &UsePlan, file: &FoundFile, found: &Found<'_>) -> anyhow::Result<()> {
    let pages = file.open()?.metadata()?.len().div_ceil(sched::page_size());
    let planned = plan.pages().context("its ranges are not in order; save it again")?;
    if planned != pages {
        bail!("the plan is for {planned} pages, the file has {pages}; save a new plan");
    }
    if let Some(node) = plan.nodes().into_iter().find(|node| !found.allowed().contains(*node)) {
        bail!("the plan names node {node}, which has no memory here; save a new plan");
    }
    Ok(())
}
