//! What the report on MPI programs costs two ranks: a call, and a program that does something between its calls. The floor is the
//! same program under `numa run` without a report.

use super::floor::is_older;
use super::results::Results;
use super::statistics::{median, pairs};
use crate::process::{self, Figures};
use crate::{build, mpis, workspace};
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

const PAIRS: usize = 7;

/// An MPI with the program that was compiled for it.
struct Mpi {
    name: &'static str,
    run: PathBuf,
    program: PathBuf,
}

/// Those that are fetched.
fn built() -> Result<Vec<Mpi>> {
    let folder = mpis::folder()?;
    let [source, timed] = ["ranks.c", "timed.h"].map(|name| workspace::root().join("xtask/floor").join(name));
    let of = |(name, label): (&str, &'static str)| {
        let bin = folder.join(name).join("bin");
        let program = workspace::target().join("floor").join(format!("ranks-{name}"));
        if is_older(&program, &[&source, &timed]) {
            let mut compiler = Command::new(bin.join("mpicc"));
            process::run(compiler.args(["-std=gnu11", "-O2", "-w", "-o"]).arg(&program).arg(&source))?;
        }
        Ok(Mpi { name: label, run: bin.join("mpirun"), program })
    };
    [("openmpi5", "Open MPI 5"), ("mpich5", "MPICH 5")].into_iter().map(of).collect()
}

impl Mpi {
    /// Nanoseconds of a kind of call.
    fn measured(&self, numa: &Path, kind: &str, with_report: bool) -> Result<f64> {
        let mut command = Command::new(numa);
        command.args(["run", "--busy", "off", "--processes", "2", "--threads", "1"]);
        command.args(with_report.then_some("--mpi-report")).arg("--").arg(&self.run).args(["-n", "2"]);
        command.arg(&self.program).arg(kind);
        // Root may start it.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        Figures::of(&mut command)?.get("ns")
    }
}

pub fn run(results: &mut Results) -> Result<()> {
    let numa = build::numa()?;
    std::fs::create_dir_all(workspace::target().join("floor"))?;
    for mpi in built()? {
        let of = |kind: &str| {
            pairs(PAIRS, || mpi.measured(&numa, kind, true), || mpi.measured(&numa, kind, false))
        };
        for kind in ["message", "allreduce"] {
            let more = median(of(kind)?.iter().map(|(with, without)| with - without));
            results.at_most(&format!("{}, {kind}: more of a call", mpi.name), more, "ns", 60.0)?;
        }
        let steps = of("step")?;
        results.ratio(&format!("{}, 30 us of work and an allreduce", mpi.name), &steps, "ns", 1.01)?;
    }
    Ok(())
}
