//! The lines of every launcher that can be had here, applied as a user would: each rank and each
//! thread gets the CPUs of the plan, whatever the machine's numbering is.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod affinity;
mod comparison;

use affinity::{Process, processes};
use comparison::{Rule, differences};
use numakit_guest::runtimes::Mpi;
use numakit_guest::{Boot, Failure, Guest, Shape, or_skipped, programs};
use numakit_model::Plan;
use numakit_model::plan::{Memory, Step};
use std::sync::LazyLock;
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
/// Launchers of a plan whose runtimes cannot be had here, and why.
const NOT_HERE: [(&str, &str); 7] = [
    ("nvhpc", "NVIDIA's compilers are not in a package that can be fetched"),
    ("cray", "Cray's compilers are sold with their machines"),
    ("openmpi1", "Open MPI 1 and 2 are in no archive of packages for today's systems"),
    ("slurm", "it needs its daemons with a configuration for this host"),
    ("systemd", "the guest has another first process"),
    ("docker", "the guest has no container engine"),
    ("kubernetes", "it needs a cluster"),
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
fn ways() -> Vec<(Way, numakit_guest::runtimes::Files)> {
    let of = |way: Way| match way.2 {
        Start::Shell | Start::Llvm => Some((way, Default::default())),
        Start::ShellOf(mpi) | Start::FileOf(mpi) => match mpi.files() {
            Ok(files) => Some((way, files)),
            Err(failure) => {
                numakit_skips::RUNTIMES.skip_part(failure);
                None
            }
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

fn boot(shape: &str) -> Result<Boot, Failure> {
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
    for (way, files) in ways() {
        guest = files.put_into(guest);
        for (request, options) in requests(shape).into_iter().filter(|(_, options)| is_started(&way, options))
        {
            let tag = tag(&way, request);
            let script = format!("mkdir {tag}; cd {tag}\n{}", script(way.1, options, way.2));
            guest = guest.step(&tag, &["sh", "-c", &script]);
        }
    }
    guest.boot()
}

/// What differs from the plan in one step; nothing if all is as it should be.
fn compared(boot: &Boot, shape: &Shape, way: &Way, request: &str) -> Vec<String> {
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

fn check(name: &str, boot: &LazyLock<Result<Boot, Failure>>) {
    let Some(boot) = or_skipped(boot) else { return };
    let shape = Shape::named(name).unwrap();
    println!("{name}: started in {:.1?}, {:.1?} in all", boot.boot_time, boot.total_time);
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (way, _) in ways() {
        for (request, _) in requests(name).into_iter().filter(|(_, options)| is_started(&way, options)) {
            wrong.extend(compared(boot, &shape, &way, request));
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{} of {count} differ\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 20, "only {count} starts were compared");
}

#[test]
fn a_thread_that_is_elsewhere_is_seen() {
    let step = |(process, thread, cpu)| Step {
        process,
        thread,
        cpu,
        node: 0,
        memory: Memory::default(),
        because: String::new(),
    };
    let plan = Plan { steps: [(0, 0, 1), (0, 1, 0), (1, 0, 2)].map(step).to_vec(), ..Plan::default() };
    let with =
        |text: &str, rule, rising, smt| differences(&plan, &processes(text).unwrap(), rule, rising, smt);
    let right = "rank 1 thread 0 cpus 2\nrank 0 thread 0 cpus 1\nrank 0 thread 1 cpus 0\n";
    assert_eq!(with(right, Rule::Exact, false, 1), [""; 0]);
    assert_eq!(
        with(&right.replace("rank 0", "rank -").replace("rank 1", "rank -"), Rule::Exact, false, 1),
        [""; 0]
    );
    assert_eq!(with(right, Rule::Exact, true, 1), ["process 0: threads on 1 0, planned 0 1"]);
    assert_eq!(with(right, Rule::Cores, false, 2).len(), 2);
    assert_eq!(with(right, Rule::Process, false, 1), ["process 0: threads on 1 0, planned 0-1 0-1"]);
    let swapped = right.replace("rank 1", "rank 2").replace("rank 0", "rank 1").replace("rank 2", "rank 0");
    assert_eq!(with(&swapped, Rule::Exact, false, 1).len(), 2);
    assert_eq!(with("rank 0 thread 0 cpus 1\n", Rule::Exact, false, 1).len(), 2);
    assert_eq!(with("", Rule::Exact, false, 1), ["0 processes instead of 2"]);
    assert!(processes("rank 0 thread 1 cpus 0\n").is_err() && processes("rank 0\n").is_err());
}

static FOUR: LazyLock<Result<Boot, Failure>> = LazyLock::new(|| boot("four"));
static NUMBERING: LazyLock<Result<Boot, Failure>> = LazyLock::new(|| boot("numbering"));
static RESTRICTED: LazyLock<Result<Boot, Failure>> = LazyLock::new(|| boot("restricted"));
static SMT: LazyLock<Result<Boot, Failure>> = LazyLock::new(|| boot("smt"));

#[test]
fn threads_and_ranks_are_where_the_plan_says() {
    check("four", &FOUR);
}

#[test]
fn numbers_that_go_to_and_fro_do_not_matter() {
    check("numbering", &NUMBERING);
}

#[test]
fn a_cpuset_is_kept() {
    check("restricted", &RESTRICTED);
}

#[test]
fn cores_with_several_threads_are_told_apart() {
    check("smt", &SMT);
}

#[test]
fn every_other_launcher_has_a_reason() {
    for (name, reason) in NOT_HERE {
        numakit_skips::LAUNCHERS
            .skip_part(format_args!("the lines for {name} are compared with files only: {reason}"));
        assert!(WAYS.iter().all(|way| way.1 != name));
    }
}
