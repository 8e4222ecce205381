//! The report on the MPI programs of a run, and the plan for the order of their ranks.

use crate::to_file::{self, Existing};
use anyhow::{Context, anyhow, bail};
use numakit_launch::options::MpiObserver;
use numakit_launch::preload::Library;
use numakit_model::{Plan, Topology};
use numakit_mpi::{MOST_BYTES, MpiJob, MpiReport, MpiSurroundings, arranged};
use numakit_sys::SysRoot;
use numakit_sys::command::quoted;
use numakit_sys::file::named_text;
use numakit_sys::mpi_calls::{MpiFile, single_copy_is_filtered};
use numakit_sys::output::KeptOutput;
use numakit_sys::stdio::note;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Standard output.
const OUTPUT: &str = "-";

/// What is written about the MPI programs of a run that begins.
pub struct MpiReporter {
    file: MpiFile,
    path: Option<PathBuf>,
    kept: Option<KeptOutput>,
}

impl MpiReporter {
    /// Makes the memory file. `path` gets the report as JSON.
    pub fn new(path: Option<&Path>, json: bool) -> anyhow::Result<Self> {
        let path = if json { Some(Path::new(OUTPUT)) } else { path };
        if let Some(path) = path {
            to_file::check(path, Existing::Replace)?;
        }
        let file = MpiFile::create()
            .context("--mpi-report: cannot create a memory file (memfd_create); run without --mpi-report")?;
        let kept = to_file::keep_from_program(path)?;
        Ok(Self { file, path: path.map(Path::to_owned), kept })
    }

    /// What the program preloads.
    pub fn observer(&self) -> anyhow::Result<MpiObserver> {
        Ok(MpiObserver { library: Library::Mpi.extract()?, variable: self.file.environment() })
    }

    /// After the run: the text to standard error, unless the report goes to standard output.
    pub fn finish(self, command: &[OsString], root: &SysRoot, topology: &Topology) -> anyhow::Result<()> {
        to_file::give_back(self.kept)?;
        let around = MpiSurroundings {
            nodes: topology.nodes.iter().map(|node| (node.os_index, node.cpus.clone())).collect(),
            yama: root
                .text("/proc/sys/kernel/yama/ptrace_scope")
                .ok()
                .and_then(|text| text.trim().parse().ok()),
            copy_filter: single_copy_is_filtered(),
        };
        let report = MpiReport::new(&quoted(command), &self.file.read(), &around);
        let Some(path) = &self.path else {
            note(numakit_terminal::mpi::text(&report).trim_end());
            return Ok(());
        };
        to_file::write(path, Existing::Replace, "", |out| {
            serde_json::to_writer_pretty(&mut *out, &report)?;
            Ok(out.write_all(b"\n")?)
        })?;
        if path != Path::new(OUTPUT) {
            note(numakit_terminal::mpi::text(&report).trim_end());
        }
        Ok(())
    }
}

/// The job of a report that `numa plan --from` names.
pub fn job_of(path: &Path) -> anyhow::Result<MpiJob> {
    let text = named_text(path, MOST_BYTES as u64).map_err(|error| {
        anyhow!(
            "--from: cannot read '{}': {error}; write it with: numa run --mpi-report=FILE -- mpirun ...",
            path.display()
        )
    })?;
    let report = MpiReport::parse(path, &text).context("--from")?;
    let job = report.largest().ok_or_else(|| anyhow!("--from: '{}' has no MPI program", path.display()))?;
    Ok(job.clone())
}

/// How many processes the plan is for: the ranks of the report, which a number of the user must not contradict.
pub fn processes(job: &MpiJob, asked: u32) -> anyhow::Result<u32> {
    if asked > 1 && asked != job.size {
        bail!(
            "--processes is {asked}, and the program of --from had {} ranks; leave out --processes, or write the report \
             of a run with {asked} ranks",
            job.size
        );
    }
    Ok(job.size)
}

/// Gives the places of a plan to the ranks that talk, and says what that changes.
pub fn order(job: &MpiJob, plan: &mut Plan) -> String {
    let nodes: Vec<u32> = plan.processes().filter_map(|steps| Some(steps.first()?.node)).collect();
    let Some(order) = arranged(&job.talk, &nodes) else {
        return "the ranks keep their order: no other one has much less traffic between nodes".to_owned();
    };
    for step in &mut plan.steps {
        step.process = order.ranks.get(step.process as usize).copied().unwrap_or(step.process);
    }
    plan.steps.sort_by_key(|step| (step.process, step.thread));
    format!(
        "the ranks are ordered by who sends to whom: {:.0} % of the bytes of messages are between nodes, and {:.0} % \
         without that",
        order.crossing * 100.0,
        order.crossing_before * 100.0
    )
}
