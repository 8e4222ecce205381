//! The lines of every launcher that can be had here, applied as a user would, on a machine of any shape.

use super::affinity::{Process, processes};
use super::comparison::{Rule, differences};
use numakit_guest::runtimes::{Files, Mpi};
use numakit_guest::{Failure, Guest, Part, Shape, programs};
use numakit_model::Plan;
use std::time::Duration;

/// What is asked for: a word for it, and the options. `restricted` has four CPUs.
const REQUESTS: [(&str, &str); 5] = [
    ("processes", "--processes 4"),
    ("hybrid", "--processes 2 --threads 3"),
    ("threads", "--threads 4"),
    ("stride", "--threads 3 --stride 2"),
    ("scatter", "--processes 4 --policy scatter"),
];
const OF_FOUR_CPUS: [(&str, &str); 5] = [
    ("processes", "--processes 4"),
    ("hybrid", "--processes 2 --threads 2"),
    ("threads", "--threads 4"),
    ("stride", "--threads 2 --stride 2"),
    ("scatter", "--processes 2 --threads 2 --policy scatter"),
];
/// LLVM's runtime under the name of GCC's.
const LLVM: &str = "/usr/lib/llvm";

/// What starts a program with the lines of a launcher.
#[derive(Debug, Clone, Copy)]
enum Start {
    /// The lines are a script for a shell, `./app` among them.
    Shell,
    /// The same, with LLVM's OpenMP.
    Llvm,
    /// The same, with the library's own `mpirun` and `mpiexec`.
    ShellOf(Mpi),
    /// The lines are a file, and what is said beside them ends with the command.
    FileOf(Mpi),
}

/// A way to start programs: its name here, its name as `--for` has it, and what it does.
type Way = (&'static str, &'static str, Start, Rule);

const WAYS: [Way; 10] = [
    ("gomp", "gomp", Start::Shell, Rule::Exact),
    ("openmp", "openmp", Start::Shell, Rule::Exact),
    ("openmp on LLVM", "openmp", Start::Llvm, Rule::Exact),
    ("kmp", "kmp", Start::Llvm, Rule::Exact),
    ("openmpi4", "openmpi4", Start::FileOf(Mpi::OpenMpi4), Rule::Cores),
    ("openmpi5", "openmpi5", Start::FileOf(Mpi::OpenMpi5), Rule::Cores),
    ("mpich", "mpich", Start::ShellOf(Mpi::Mpich), Rule::Exact),
    ("intelmpi", "intelmpi", Start::ShellOf(Mpi::IntelMpi), Rule::Exact),
    ("taskset", "taskset", Start::Shell, Rule::Process),
    ("numactl", "numactl", Start::Shell, Rule::Process),
];

fn requests(shape: &str) -> [(&'static str, &'static str); 5] {
    if shape == "restricted" { OF_FOUR_CPUS } else { REQUESTS }
}

/// Whether a start is worth its time: a launcher of ranks has nothing of its own for one process.
fn is_started(way: &Way, options: &str) -> bool {
    options.contains("--processes") || matches!(way.2, Start::Shell | Start::Llvm)
}

/// The script that writes the lines and starts the program; it fails where `numa` does. With
/// threads, a program of MPI is one that calls it.
fn script(name: &str, options: &str, start: Start) -> String {
    // One thread a process is not always a program with OpenMP.
    let mode = if options.contains("--threads") || matches!(start, Start::Shell | Start::Llvm) {
        "openmp"
    } else {
        "process"
    };
    let setup = match start {
        Start::Shell => String::new(),
        Start::Llvm => format!("export LD_LIBRARY_PATH={LLVM}\n"),
        Start::ShellOf(mpi) | Start::FileOf(mpi) => mpi.setup(),
    };
    let run = match start {
        Start::FileOf(_) => "cp lines rankfile; eval \"$(sed -n 's/.*: mpirun/mpirun/p' said)\"",
        _ => ". ./lines",
    };
    let mpi = if mode == "process" { "unset AFFINITY_MPI\n" } else { "" };
    format!(
        "set -e; printf '#!/bin/sh\\nexec affinity {mode}\\n' > app; chmod +x app\n\
         numa plan {options} --for {name} --host localhost > lines 2> said\n{setup}{mpi}{run}\n"
    )
}

/// Ways that can be gone here; for each other one a line says why not.
fn ways() -> Result<Vec<(Way, Files)>, Failure> {
    let of = |way: Way| match way.2 {
        Start::Shell | Start::Llvm => Some(Ok((way, Files::default()))),
        Start::ShellOf(mpi) | Start::FileOf(mpi) => match mpi.files() {
            Ok(files) => Some(Ok((way, files))),
            Err(failure) if failure.is_missing() => {
                numakit_skips::RUNTIMES.skip_part(failure);
                None
            }
            Err(failure) => Some(Err(failure)),
        },
    };
    let here = |way: &Way| match way.0 {
        "taskset" | "numactl" => {
            programs::of_host(way.0).is_some() || {
                numakit_skips::TOOLS.skip_part(format_args!("no {} here", way.0));
                false
            }
        }
        _ => true,
    };
    WAYS.into_iter().filter(here).filter_map(of).collect()
}

fn tag(way: &Way, request: &str) -> String {
    format!("{} {request}", way.0).replace(' ', "-")
}

/// A guest of this shape that starts programs in all ways.
pub fn guest(shape: &str) -> Result<Guest, Failure> {
    let mut guest = Guest::new(Shape::named(shape)?)
        .memory_mib(1024)
        .timeout(Duration::from_secs(600))
        .program(&programs::numa()?)
        .program(&programs::compiled("affinity")?.unwrap())
        .file(&programs::libomp()?, &format!("{LLVM}/libgomp.so.1"));
    for name in ["taskset", "numactl"] {
        guest = programs::of_host(name).into_iter().fold(guest, |guest, path| guest.program(&path));
    }
    for (request, options) in requests(shape) {
        guest = guest.step(request, &["sh", "-c", &format!("numa plan {options} --json")]);
    }
    for (way, files) in ways()? {
        guest = files.put_into(guest);
        for (request, options) in requests(shape).into_iter().filter(|(_, options)| is_started(&way, options))
        {
            let tag = tag(&way, request);
            let script = format!("mkdir {tag}; cd {tag}\n{}", script(way.1, options, way.2));
            guest = guest.step(&tag, &["sh", "-c", &script]);
        }
    }
    Ok(guest)
}

/// What differs from the plan in one step; nothing if all is as it should be.
fn compared(boot: &Part, shape: &Shape, way: &Way, request: &str) -> Vec<String> {
    let tag = tag(way, request);
    let step = &boot[&tag];
    let read = |file: &str| std::fs::read_to_string(boot.out.join(&tag).join(file)).unwrap_or_default();
    let lines = read("lines");
    let about = |what: &str| format!("{} {tag}: {what}\n{lines}{}{}", shape.name, step.text(), step.errors());
    if !step.status.success() {
        return vec![about(&step.status.to_string())];
    }
    let json: serde_json::Value = serde_json::from_str(&boot[request].succeeded()).unwrap();
    let plan = json.get("plan").unwrap_or(&json);
    let plan: Plan = serde_json::from_value(plan.clone()).unwrap();
    let seen: Vec<Process> = processes(&step.text()).unwrap();
    // A launcher that gives a process a set cannot give its threads an order, and says so.
    let rising = read("said").contains("in rising order");
    let found = differences(&plan, &seen, way.3, rising, shape.threads);
    found.into_iter().map(|difference| about(&difference)).collect()
}

/// Each rank and each thread got the CPUs of the plan.
pub fn check(name: &str, boot: &Part) {
    let shape = Shape::named(name).unwrap();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (way, _) in ways().unwrap() {
        for (request, _) in requests(name).into_iter().filter(|(_, options)| is_started(&way, options)) {
            wrong.extend(compared(boot, &shape, &way, request));
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{} of {count} differ\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 20, "only {count} starts were compared");
}

/// Whether the lines for this launcher are tried.
#[allow(dead_code)]
pub fn is_tried(launcher: &str) -> bool {
    WAYS.iter().any(|way| way.1 == launcher)
}
