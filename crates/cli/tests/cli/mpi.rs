//! `numa run --mpi-report` with each MPI that is installed, and `numa plan --from`.

use crate::compiler::builds;
use crate::runner::{Done, Folder};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// An MPI: its name, its compiler, its launcher with options.
pub struct Mpi {
    pub name: &'static str,
    compiler: PathBuf,
    pub launcher: String,
}

/// Those that are there; a line for each that is not.
pub fn mpis() -> Vec<Mpi> {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/mpi");
    let fetched = std::env::var_os("NUMAKIT_MPIS").map_or_else(own, PathBuf::from);
    let of = |folder: &str, program: &str| fetched.join(folder).join("bin").join(program);
    let open_mpi5 = format!("{} --oversubscribe", of("openmpi5", "mpirun").display());
    let mpich5 = of("mpich5", "mpirun").display().to_string();
    let all = [
        ("openmpi4", "mpicc.openmpi".into(), "mpirun.openmpi --oversubscribe".to_owned()),
        ("mpich4", "mpicc.mpich".into(), "mpirun.mpich".to_owned()),
        ("openmpi5", of("openmpi5", "mpicc"), open_mpi5),
        ("mpich5", of("mpich5", "mpicc"), mpich5.clone()),
        ("standard", of("mpich5", "mpicc_abi"), mpich5),
    ];
    let is_there = |compiler: &PathBuf| Command::new(compiler).arg("--version").output().is_ok();
    let mut found = Vec::new();
    for (name, compiler, launcher) in all {
        if is_there(&compiler) {
            found.push(Mpi { name, compiler, launcher });
        } else {
            numakit_skips::RUNTIMES.skip_part(format_args!("there is no {}", compiler.display()));
        }
    }
    if found.is_empty() {
        numakit_skips::RUNTIMES.skip("there is no MPI");
    }
    found
}

/// The program of the library's own tests.
pub fn program(folder: &Folder, mpi: &Mpi) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native/test/mpi/ranks.c");
    let program = folder.path(&format!("ranks-{}", mpi.name));
    let compiler = mpi.compiler.display().to_string();
    assert!(builds(&compiler, &["-O1", "-w", "-D_GNU_SOURCE"], &source, &program), "{compiler}");
    program
}

fn reported(folder: &Folder, options: &str, command: &str) -> Done {
    let mut numa = folder.numa(&format!("run --share {options} {command}"));
    numa.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    Done::of(numa.output().unwrap())
}

fn report(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn each_mpi_is_reported_by_communicator_operation_and_size() {
    let folder = Folder::new("mpi-report");
    for mpi in mpis() {
        let (program, file) = (program(&folder, &mpi), folder.path("report.json"));
        let command = format!("{} -n 2 {} 30", mpi.launcher, program.display());
        let done = reported(&folder, &format!("--mpi-report={}", file.display()), &command);
        assert_eq!(done.code, 0, "{}: {} {}", mpi.name, done.out, done.err);
        assert!(done.out.contains("all results are right"), "{}: {}", mpi.name, done.out);
        let report = report(&file);
        let job = &report["jobs"][0];
        assert_eq!((&job["size"], report["jobs"].as_array().unwrap().len()), (&json!(2), 1), "{report}");
        let rows = job["rows"].as_array().unwrap();
        let row = |operation: &str, from: u64| {
            let is_it = |row: &&Value| {
                row["communicator"] == "MPI_COMM_WORLD"
                    && row["operation"] == operation
                    && row["from_bytes"] == from
                    && row["ranks"] == 2
            };
            rows.iter()
                .find(is_it)
                .unwrap_or_else(|| panic!("{}: no {operation} {from}: {rows:#?}", mpi.name))
        };
        assert_eq!(row("Allreduce", 8)["calls"], 120, "{}", mpi.name);
        let bcast = row("Bcast", 4096);
        assert_eq!((&bcast["calls"], &bcast["bytes"]), (&json!(60), &json!(60 * 8000)), "{}", mpi.name);
        assert_eq!(row("Barrier", 0)["divided"], "measured");
        assert_eq!(row("Isend", 4096)["calls"], 60);
        assert!(rows.iter().any(|row| row["communicator"] == "halves"), "{rows:#?}");
        // Each rank sends a message of 8,000 bytes and one of 8 to the other, 30 times.
        let talk = &job["talk"];
        assert_eq!(talk[0]["messages"], 60, "{talk}");
        assert_eq!((&talk[0]["bytes"], &talk[1]["bytes"]), (&json!(30 * 8008), &json!(30 * 8008)), "{talk}");
        for part in ["COMMUNICATOR", "MPI_COMM_WORLD", "OTHERS WAITED"] {
            assert!(done.err.contains(part), "{}: no {part} in {}", mpi.name, done.err);
        }
    }
}

#[test]
fn more_ranks_than_cpus_are_named_with_the_fix() {
    let folder = Folder::new("mpi-crowded");
    let Some(mpi) = mpis().into_iter().next() else { return };
    let program = program(&folder, &mpi);
    if numakit_sys::sched::affinity().unwrap().len() < 2 {
        return numakit_skips::MACHINE.skip("one CPU cannot be divided among ranks");
    }
    let command = format!("{} -n 3 {} 1", mpi.launcher, program.display());
    let done = reported(&folder, "-c 2 --mpi-report", &command);
    assert_eq!(done.code, 0, "{} {}", done.out, done.err);
    assert!(done.err.contains("ranks 0-2 share 2 CPUs ("), "{}", done.err);
    assert!(done.err.contains("fix: start as many ranks as there are CPUs: mpirun -n 2"), "{}", done.err);
}

#[test]
fn ranks_that_end_early_are_reported_as_far_as_they_came() {
    let folder = Folder::new("mpi-early");
    let Some(mpi) = mpis().into_iter().next() else { return };
    let (program, file) = (program(&folder, &mpi), folder.path("report.json"));
    // Exits with status 3 before MPI_Finalize.
    let command = format!("env RANKS_EXIT=1 {} 5", program.display());
    let done = reported(&folder, &format!("--mpi-report={}", file.display()), &command);
    assert_eq!(done.code, 3, "{} {}", done.out, done.err);
    assert_eq!(report(&file)["jobs"][0]["seconds"], Value::Null);
    assert!(done.err.contains("MPI_Finalize was not called"), "{}", done.err);
}

#[test]
fn a_program_without_mpi_and_wrong_options_are_said() {
    let folder = Folder::new("mpi-none");
    folder.run("run --share --mpi-report true").says(0, "no process called MPI_Init");
    let done = folder.run("run --share --mpi-report --json echo program");
    assert_eq!((done.code, done.err.contains("program")), (0, true), "{} {}", done.out, done.err);
    let json: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!((&json["version"], &json["command"]), (&json!(1), &json!("echo program")));
    folder.run("run --share --json true").says(2, "--mpi-report");
    folder.run("run --share --mpi-report=/nowhere/r.json true").says(2, "cannot write /nowhere/r.json");
    std::fs::write(folder.path("bad.json"), "{").unwrap();
    folder.run("plan --from bad.json").says(2, "is no report of numa run");
    folder.run("plan --from absent.json").says(2, "cannot read 'absent.json'");
}

/// A report of four ranks of which 0 and 2, and 1 and 3 talk.
fn talking() -> Value {
    let talk = |from: u32, to: u32| json!({"from": from, "to": to, "messages": 1, "bytes": 1000});
    json!({"version": 1, "command": "x", "left_out": 0, "jobs": [{
        "library": "Open MPI v5.0.11", "size": 4, "ranks": [], "seconds": 1.0, "waiting": 0.0, "moving": 0.0,
        "unjudged": 0.0, "messages": 0.0, "rows": [], "talk": [talk(0, 2), talk(3, 1)], "order": null, "findings": []}]})
}

#[test]
fn a_plan_puts_ranks_that_talk_on_one_node() {
    let folder = Folder::new("mpi-plan");
    std::fs::write(folder.path("report.json"), talking().to_string()).unwrap();
    let words = ["--synthetic", "node:2 core:2", "--from", "report.json"];
    let planned = folder.numa("plan").args(words).args(["--for", "openmpi5", "--host", "h"]).output();
    let done = Done::of(planned.unwrap());
    assert_eq!(done.code, 0, "{}", done.err);
    let slot = |rank: usize| -> u32 {
        let line = done.out.lines().find(|line| line.starts_with(&format!("rank {rank}="))).unwrap();
        line.rsplit('=').next().unwrap().parse().unwrap()
    };
    assert_eq!((slot(0) / 2, slot(1) / 2), (slot(2) / 2, slot(3) / 2), "{}", done.out);
    assert_ne!(slot(0) / 2, slot(1) / 2, "{}", done.out);
    assert!(done.err.contains("0 % of the bytes of messages are between nodes, and 100 %"), "{}", done.err);
    let twice = folder.numa("plan").args(words).args(["--processes", "2"]).output();
    Done::of(twice.unwrap()).says(2, "--processes is 2, and the program of --from had 4 ranks");
}

#[test]
fn small_collectives_are_the_library_s_if_asked_for() {
    let folder = Folder::new("mpi-collectives");
    for mpi in mpis() {
        let command = format!("{} -n 2 {} 30", mpi.launcher, program(&folder, &mpi).display());
        let run = |options: &str| {
            let mut numa = folder.numa(&format!("run --share {options} {command}"));
            numa.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
            numa.env("NUMAMPI_STATS", "1").env_remove("NUMAMPI_TABLE");
            let done = Done::of(numa.output().unwrap());
            assert_eq!(done.code, 0, "{}: {} {}", mpi.name, done.out, done.err);
            assert!(done.out.contains("all results are right"), "{}: {}", mpi.name, done.out);
            done.err
        };
        let small = run("--collectives small");
        assert!(
            small.contains("29 barriers, 0 broadcasts, 30 reduces, 60 allreduces"),
            "{}: {small}",
            mpi.name
        );
        let auto = run("--collectives auto");
        assert!(
            auto.contains(
                "those of this machine were not measured; measure them with: numa bench mpi -- mpirun -n 2"
            ),
            "{}: {auto}",
            mpi.name
        );
        let reported = run("--collectives small --mpi-report");
        assert!(
            reported.contains(" allreduces") && reported.contains("OPERATION"),
            "{}: {reported}",
            mpi.name
        );
        assert!(!run("").contains("libnumampi"), "{}", mpi.name);
    }
}

#[test]
fn another_value_of_collectives_is_refused() {
    let folder = Folder::new("mpi-collectives-refused");
    let done = Done::of(folder.numa("run --collectives large true").output().unwrap());
    assert_eq!(done.code, 2);
    assert!(done.err.contains("'large' is not auto or small"), "{}", done.err);
}
