//! `numa bench mpi`.

use super::output::BenchOutputArgs;
use crate::GlobalArgs;
use crate::placement::{PlacementArgs, with_another_machine};
use crate::to_file;
use crate::verbs::run::BUSY;
use anyhow::{Context, bail};
use clap::Args;
use numakit_bench::{MOST_COLLECTIVES_BYTES, MeasuredJobs, keep_collectives, results_of};
use numakit_launch::collectives::{Collectives, CollectivesOption};
use numakit_launch::{Ending, LaunchRequest, Program, RunOptions, StartError, Wait};
use numakit_model::Topology;
use numakit_placement::{CorePolicy, PlacementRequest};
use numakit_sys::SysRoot;
use numakit_sys::command::{quoted, start_failure_status};
use numakit_sys::file::{create_in_memory, named_text, path_for_others};
use numakit_sys::stdio::note;
use numakit_terminal::bench::collectives_page;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitCode;

const ADVICE: &str = "give a launcher with any MPI program, as in: numa bench mpi -- mpirun -n 8 ./app";

/// Measure small collectives of MPI programs: the MPI's and those of 'numa run --collectives'
///
/// The command is any MPI program with its launcher, placed as 'numa run' places it. Its ranks measure when they come out of
/// MPI_Init, and end: the program itself does not run. Barriers, and broadcasts, reduces and allreduces of 8 bytes to 4 KiB are timed
/// on MPI_COMM_WORLD, the MPI's and the library's in turns, for some seconds at most. What takes at most 95 % of the MPI's time, with all
/// smaller sizes, is kept for this MPI and this number of ranks, in a file of this machine below numakit/bench in XDG_STATE_HOME
/// (/var/lib for root), and 'numa run --collectives auto' uses it.
#[derive(Debug, Args)]
pub struct BenchMpiArgs {
    /// Do not reserve cores: other programs may use them too
    #[arg(long)]
    share: bool,
    #[command(flatten)]
    place: PlacementArgs,
    #[command(flatten)]
    output: BenchOutputArgs,
    /// The launcher with an MPI program, as in 'mpirun -n 8 ./app'
    #[arg(trailing_var_arg = true, value_name = "CMD", required = true)]
    command: Vec<OsString>,
}

impl BenchMpiArgs {
    /// Measures, prints and keeps.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here("the ranks run on this machine only")?;
        self.output.check()?;
        let root = global.root()?;
        let placement = self.place.request(CorePolicy::default());
        let devices = matches!(placement.policy, CorePolicy::Near(_));
        let topology =
            numakit_topology::read_for_placement(&root, devices).context("cannot read the topology")?;
        let file = create_in_memory().context("cannot create a memory file (memfd_create)")?;
        let table = path_for_others(&file);
        // The launch takes standard output away, and ranks may print before they measure.
        let kept = to_file::keep_from_program([Path::new("-")])?;
        let (ended, cpus) = self.launch(&root, &topology, &placement, &table)?;
        to_file::give_back(kept)?;
        let ending = match ended {
            Ok(ending) => ending,
            Err(error) => {
                note(format_args!("cannot run '{}': {error}", quoted(&self.command)));
                return Ok(ExitCode::from(start_failure_status(&error)));
            }
        };
        let text =
            named_text(&table, MOST_COLLECTIVES_BYTES).context("cannot read what ranks have measured")?;
        let measured = MeasuredJobs::parse(&text);
        if measured.jobs.is_empty() {
            return self.nothing(ending, &measured);
        }
        let results = results_of(&topology, measured.result(), true);
        self.output.write_with(&results, || collectives_page(&measured))?;
        let (most, allowed) = (measured.jobs.iter().map(|job| job.ranks).max(), topology.allowed.len());
        if let Some(ranks) = most.filter(|ranks| *ranks as usize > cpus && cpus < allowed) {
            note(format_args!(
                "not kept: {ranks} ranks had {cpus} of {allowed} CPUs, which is not how they run on all; measure when other \
                 programs leave the CPUs, or say how many with '-c {}'",
                allowed.min(ranks as usize)
            ));
            return Ok(ExitCode::SUCCESS);
        }
        let path = keep_collectives(&topology, &measured).context("what was measured cannot be kept")?;
        note(format_args!(
            "kept for 'numa run --collectives auto' in {}; the program itself did not run",
            path.display()
        ));
        Ok(ExitCode::SUCCESS)
    }

    /// How the command ended, or why it did not start; the number of CPUs that it had.
    fn launch(
        &self,
        root: &SysRoot,
        topology: &Topology,
        placement: &PlacementRequest,
        table: &Path,
    ) -> anyhow::Result<(Result<Ending, io::Error>, usize)> {
        let name = self.command.first().context("no command")?;
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
        let program = match Program::find(name, &path) {
            Ok(program) => program,
            Err(error) => return Ok((Err(error), 0)),
        };
        let measuring = CollectivesOption::Measure.with_library()?;
        let options = RunOptions {
            shared: self.share,
            collectives: Some(Collectives { table: Some(table.to_owned()), ..measuring }),
            ..RunOptions::default()
        };
        let (program, library) = program.with_library()?;
        let request = LaunchRequest {
            root,
            topology,
            words: &self.command,
            program: &program,
            request: placement,
            options: &options,
            library: &library,
            busy: BUSY.parse().ok(),
            wait: Wait::No,
            isolate: false,
        };
        let dry_run = format!("numa run --dry-run{}", self.place.cores_words());
        let launch =
            request.prepare().map_err(|error| with_another_machine(error, &dry_run, &self.command))?;
        launch.plan.plan.warnings.iter().for_each(|warning| note(format_args!("warning: {warning}")));
        launch.command.notes.iter().for_each(note);
        let cpus = launch.plan.plan.cpus().len();
        match launch.run() {
            Ok((ending, _)) => Ok((Ok(ending), cpus)),
            Err(StartError::Program(error)) => Ok((Err(error), cpus)),
            Err(error) => Err(error.into()),
        }
    }

    /// Says why nothing was measured.
    fn nothing(&self, ending: Ending, measured: &MeasuredJobs) -> anyhow::Result<ExitCode> {
        let command = quoted(&self.command);
        match (&measured.refusal, ending) {
            (Some(why), _) => bail!("'{command}' measured nothing: {why}; {ADVICE}"),
            (None, Ending::Killed(_)) => Ok(ExitCode::from(ending.mirror())),
            (None, Ending::Exited(0)) => bail!(
                "'{command}' measured nothing: no process called MPI_Init of an MPI library (libmpi.so, libmpich.so, \
                 libmpi_abi.so); {ADVICE}"
            ),
            (None, Ending::Exited(status)) => {
                bail!("'{command}' measured nothing: it ended with status {status}; {ADVICE}")
            }
        }
    }
}
