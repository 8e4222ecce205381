//! `numa plan`.

use super::topo::{described, write_drawing};
use crate::mpi;
use crate::peaks;
use crate::placement::{PlacementArgs, with_another_machine};
use crate::{Examples, GlobalArgs};
use anyhow::{Context, anyhow};
use clap::Args;
use numakit_launch::{CheckReport, CoreSelector, check};
use numakit_model::{Plan, Topology};
use numakit_placement::launchers::{self, LAUNCHERS, LauncherOptions};
use numakit_placement::{CorePolicy, PlacementRequest, Taken, explained, idle_nodes};
use numakit_sys::SysRoot;
use numakit_sys::proc::machine;
use numakit_sys::stdio::{note, print};
use numakit_terminal::plan::{comparison, explanation, json, overlay, table};
use numakit_terminal::topology::svg_with;
use std::path::PathBuf;
use std::process::ExitCode;

/// Show where to place processes and threads, for any launcher
///
/// The plan is for this machine and its free cores, for another machine with --sysroot, for a
/// described machine with --synthetic, or for one of many machines by its name with --machine. Without options the plan is for one thread.
///
/// --for writes only the configuration of a launcher to standard output, so that it can be
/// redirected to a file; instructions and warnings go to standard error. The program's command
/// comes last, as in 'numa plan --for gomp ./app -x'.
///
/// --check compares a running job with a plan: with that of 'numa run' if it started the process,
/// otherwise with the plan for these options on an idle machine. For several processes, PID is
/// their launcher, such as mpirun. The exit status is 1 if they differ, and 2 if they cannot be
/// compared.
#[derive(Debug, Args)]
#[command(after_long_help = launchers_help())]
pub struct PlanArgs {
    /// The program and its arguments, which --for writes [default: ./app]; the plan is the same for each
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    place: PlacementArgs,
    /// Plan for the ranks of an MPI program, in the order that brings those together that send to each other: a report of
    /// 'numa run --mpi-report=FILE'
    #[arg(long, value_name = "FILE", conflicts_with = "check", help_heading = "What to place")]
    from: Option<PathBuf>,
    /// Plan for this machine description, as in 'package:2 node:2(mem=32G) core:4 pu:2', or for the
    /// machine in a .json file
    #[arg(long, value_name = "DESCRIPTION|FILE", conflicts_with_all = ["sysroot", "check"], help_heading = "What to write")]
    synthetic: Option<String>,
    /// Plan for the machine of this name, as in 'EPYC 9755 x2'; 'numa topo --machine list' prints all names
    #[arg(long, value_name = "NAME", conflicts_with_all = ["sysroot", "synthetic", "check"], help_heading = "What to write")]
    machine: Option<String>,
    /// Write the configuration of this launcher; --help lists the launchers
    #[arg(long = "for", id = "launcher", value_name = "LAUNCHER", help_heading = "What to write")]
    launcher: Option<String>,
    /// Host name in rank files [default: the name of this host; HOST for other machines]
    #[arg(long, value_name = "NAME", requires = "launcher", help_heading = "What to write")]
    host: Option<String>,
    /// Print why each thread is placed where it is
    #[arg(long, conflicts_with_all = ["launcher", "json", "svg", "check"], help_heading = "What to write")]
    explain: bool,
    /// Write JSON
    #[arg(long, conflicts_with_all = ["launcher", "svg", "check"], help_heading = "What to write")]
    json: bool,
    /// Draw the machine with its processes and threads; '-' is standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["launcher", "check"], help_heading = "What to write")]
    svg: Option<PathBuf>,
    /// Compare a running job with its plan
    #[arg(long, value_name = "PID", conflicts_with = "launcher", help_heading = "What to write",
          value_parser = clap::value_parser!(u32).range(1..))]
    check: Option<u32>,
}

impl PlanArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa plan -c 64 --machine 'EPYC 9755 x2'", "where 64 threads would be on that machine"),
        ("numa plan --for gomp -c auto ./app", "the same here, as variables of OpenMP"),
    ];

    /// Prints the plan.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        // A wrong name is reported before a plan that takes long or fails.
        let usual = match &self.launcher {
            Some(name) => launchers::find(name).map_err(|error| anyhow!("--for: {error}"))?.usual_policy(),
            None => CorePolicy::default(),
        };
        let mut topology = described(self.synthetic.as_deref(), self.machine.as_deref(), global)?;
        let is_described = self.synthetic.is_some() || self.machine.is_some();
        if is_described {
            // The sources of a machine that has a name are among the reasons.
            let shown = self.explain || self.synthetic.is_some();
            topology.notes.iter().filter(|_| shown).for_each(note);
        } else {
            // Only the comparison of weights needs them.
            let _ = peaks::add(&global.root()?, &mut topology);
        }
        let mut request = self.place.request(usual);
        let job = self.from.as_deref().map(mpi::job_of).transpose()?;
        if let Some(job) = &job {
            request.processes = mpi::processes(job, request.processes)?;
        }
        if let Some(pid) = self.check {
            return show_check(&global.root()?, &topology, &request, pid);
        }
        let (mut plan, reasons) = match is_described {
            true => explained(&topology, &request, &Taken::default())?,
            false => {
                let command = format!("numa plan{}", self.place.cores_words());
                let now = CoreSelector::select_now(&global.root()?, &topology, &request)
                    .map_err(|error| with_another_machine(error, &command, &[]))?;
                (now.plan, now.reasons)
            }
        };
        if let Some(job) = &job {
            note(mpi::order(job, &mut plan));
        }
        let idle = idle_nodes(&topology, &request, &plan);
        if let Some(name) = &self.launcher {
            let root = global.root()?;
            let here = (!is_described && root.is_host()).then(|| host(&root));
            self.lines(name, &topology, &plan, here)?;
            idle.iter().for_each(note);
            return Ok(ExitCode::SUCCESS);
        }
        if self.json {
            print(json(&request, &plan, &reasons))?;
        } else if let Some(path) = &self.svg {
            plan.warnings.iter().for_each(|warning| note(format_args!("warning: {warning}")));
            write_drawing(path, &svg_with(&topology, &overlay(&plan)))?;
        } else {
            let mut text = table(&plan);
            if self.explain {
                text += &format!("\n{}", explanation(&plan, &reasons));
            }
            print(text)?;
            idle.iter().for_each(note);
        }
        Ok(ExitCode::SUCCESS)
    }

    fn lines(
        &self,
        name: &str,
        topology: &Topology,
        plan: &Plan,
        here: Option<String>,
    ) -> anyhow::Result<()> {
        let options = LauncherOptions { host: self.host.clone().or(here), command: self.command.clone() };
        let lines = launchers::emit(name, topology, plan, &options)?;
        print(&lines.text)?;
        let warn = |warning: &String| note(format_args!("warning: {warning}"));
        // What is not met comes first.
        let (unmet, others) = plan.warnings.split_at(usize::from(plan.unmet.is_some()));
        unmet.iter().for_each(warn);
        lines.hints.iter().for_each(note);
        others.iter().chain(&lines.warnings).for_each(warn);
        Ok(())
    }
}

/// The name by which launchers on this machine know it.
fn host(root: &SysRoot) -> String {
    launchers::host_of(&machine::host_name(root).unwrap_or_default()).to_owned()
}

fn show_check(
    root: &SysRoot,
    topology: &Topology,
    request: &PlacementRequest,
    pid: u32,
) -> anyhow::Result<ExitCode> {
    let CheckReport { threads, has_run_plan, differences } =
        check(root, topology, request, pid).context("--check")?;
    print(comparison(pid, threads, has_run_plan, &differences))?;
    Ok(ExitCode::from(u8::from(!differences.is_empty())))
}

fn launchers_help() -> String {
    let line = |launcher: &launchers::Launcher| format!("  {:<11} {}\n", launcher.name, launcher.help);
    format!("Launchers:\n{}", LAUNCHERS.iter().map(line).collect::<String>().trim_end())
}
