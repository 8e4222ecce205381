//! Programs of large runtimes under `numa run`: MPI with OpenMP, Java, Python with numpy, two at
//! once. What has threads of its own that compute gets a core for each; helper threads of a
//! runtime have all cores of the program.

use super::affinity::{Process, processes};
use numakit_guest::runtimes::{self, Mpi};
use numakit_guest::{Failure, Guest, Part, Shape, programs};
use numakit_model::CpuSet;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

const JAVA: &str = "/opt/java/runtime/bin/java -cp /opt/java Workers 4";
/// Launchers that do not bind their ranks: each rank is a `numa run`, which takes cores of its own.
const UNBOUND: [(Mpi, &str); 4] = [
    (Mpi::OpenMpi4, "mpirun -np 2 --host localhost:2 --bind-to none"),
    (Mpi::OpenMpi5, "mpirun -np 2 --host localhost:2 --bind-to none"),
    (Mpi::Mpich, "mpiexec -n 2"),
    (Mpi::IntelMpi, "env I_MPI_PIN=0 mpirun -n 2"),
];
/// One `numa run` around the launcher: ranks divide its cores. Where the launcher is told to bind, its
/// word is kept.
const DIVIDED: [(Mpi, &str, &str); 6] = [
    (Mpi::OpenMpi4, "", "mpirun -np 2 --host localhost:2"),
    (Mpi::OpenMpi5, "", "mpirun -np 2 --host localhost:2"),
    (Mpi::Mpich, "", "mpiexec -n 2"),
    (Mpi::IntelMpi, "", "mpirun -n 2"),
    (Mpi::OpenMpi4, " bound", "mpirun -np 2 --host localhost:4 --map-by slot:PE=2 --bind-to core"),
    (Mpi::OpenMpi5, " bound", "mpirun -np 2 --host localhost:4 --map-by slot:PE=2"),
];

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(name)
}

/// The guest with a runtime's files, and its name if it can be had; else a line says why not.
fn with(guest: Guest, name: &str, files: Result<runtimes::Files, Failure>) -> Result<(Guest, bool), Failure> {
    match files {
        Ok(files) => Ok((files.put_into(guest), true)),
        Err(failure) if failure.is_missing() => {
            numakit_skips::RUNTIMES.skip_part(format_args!("{name}: {failure}"));
            Ok((guest, false))
        }
        Err(failure) => Err(failure),
    }
}

/// Two programs at the same time, each of which says where it is when both are there.
const TWO: &str = "one() { numa run -c 3 -- sh -c 'both() { touch $0.$1; \
                   until [ -e one.$1 -a -e two.$1 ]; do usleep 50000; done; }; \
                   both here; affinity stacks > $0; both seen' $1; }\n\
                   mkdir apps; cd apps; one one & one two & wait; cat one; echo; cat two";

pub fn guest() -> Result<Guest, Failure> {
    let mut guest = Guest::new(Shape::named("four")?)
        .memory_mib(1024)
        .timeout(Duration::from_secs(600))
        .program(&programs::numa()?)
        .program(&programs::compiled("affinity")?.unwrap())
        .file(&source("blas.py"), "/root/blas.py")
        // So that a page is a page.
        .step("small", &["sh", "-c", "echo never > /sys/kernel/mm/transparent_hugepage/enabled"])
        .step("two", &["sh", "-c", TWO]);
    for (mpi, command) in UNBOUND {
        let there;
        (guest, there) = with(guest, mpi.name(), mpi.files())?;
        if !there {
            continue;
        }
        let setup = mpi.setup();
        let each = format!("{setup}{command} numa run -c 3 -- affinity stacks");
        guest = guest.step(mpi.name(), &["sh", "-c", &each]);
        for (_, how, command) in DIVIDED.into_iter().filter(|divided| divided.0 == mpi) {
            let all = format!("{setup}numa run -c 6 -- {command} affinity stacks");
            guest = guest.step(&format!("{} divided{how}", mpi.name()), &["sh", "-c", &all]);
        }
    }
    let there;
    (guest, there) = with(guest, "numpy", runtimes::numpy())?;
    if there {
        guest = guest.step("numpy", &["sh", "-c", "numa run -c 4 -- python3 /root/blas.py"]);
    }
    let there;
    (guest, there) = with(guest, "java", runtimes::java(&source("Workers.java")))?;
    if there {
        guest = guest.step("java", &["sh", "-c", &format!("numa run -c 4 -- {JAVA}")]);
    }
    Ok(guest)
}

fn part() -> Option<Part> {
    super::PARTS.part("placed_runtimes")
}

/// The output of a step; nothing if its runtime or the guest cannot be had.
fn printed(step: &str) -> Option<String> {
    let boot = part()?;
    if !boot.has(step) {
        numakit_skips::RUNTIMES.skip(format_args!("the runtime of '{step}' cannot be had here"));
        return None;
    }
    let text = boot[step].succeeded();
    println!("{step}:\n{text}{}", boot[step].errors());
    Some(text)
}

/// The CPUs of these processes: each thread has one, and no two have the same.
fn one_each(processes: &[Process]) -> CpuSet {
    let mut all = CpuSet::new();
    for cpus in processes.iter().flat_map(|process| &process.threads) {
        assert_eq!(cpus.len(), 1, "a thread on {cpus}");
        assert!(!all.intersects(cpus), "two threads on {cpus}");
        all = all.or(cpus);
    }
    all
}

/// At least 99 of 100 pages of stacks and thread-local memory are on the node of their thread.
fn pages_are_local(processes: &[Process]) {
    let pages = processes.iter().flat_map(|process| &process.pages);
    let (here, elsewhere) = pages.fold((0, 0), |sum, pages| (sum.0 + pages.0, sum.1 + pages.1));
    assert!(here > 0 && elsewhere * 99 <= here, "{here} pages here, {elsewhere} elsewhere");
}

fn ranks_are_apart(step: &str) {
    let Some(text) = printed(step) else { return };
    let ranks = processes(&text).unwrap();
    assert_eq!(
        ranks.iter().map(|rank| (rank.rank, rank.threads.len())).collect::<Vec<_>>(),
        [(Some(0), 3), (Some(1), 3)]
    );
    assert_eq!(one_each(&ranks).len(), 6);
    pages_are_local(&ranks);
}

#[test]
fn ranks_of_open_mpi_4_have_cores_of_their_own() {
    ranks_are_apart("openmpi4");
}

#[test]
fn ranks_of_open_mpi_5_have_cores_of_their_own() {
    ranks_are_apart("openmpi5");
}

#[test]
fn ranks_of_mpich_have_cores_of_their_own() {
    ranks_are_apart("mpich");
}

#[test]
fn ranks_of_intel_mpi_have_cores_of_their_own() {
    ranks_are_apart("intelmpi");
}

fn ranks_divide_the_cores(step: &str) {
    ranks_are_on(step, [0..3, 3..6]);
}

/// Both ranks have these cores, each thread its own, in order, and its pages beside it.
fn ranks_are_on(step: &str, cpus: [Range<u32>; 2]) {
    let Some(text) = printed(step) else { return };
    let ranks = processes(&text).unwrap();
    let seen: Vec<_> = ranks.iter().map(|rank| (rank.rank, rank.threads.as_slice())).collect();
    let [first, last] = cpus.map(|cpus| cpus.map(|cpu| CpuSet::from_iter([cpu])).collect::<Vec<_>>());
    assert_eq!(seen, [(Some(0), first.as_slice()), (Some(1), last.as_slice())]);
    ranks.iter().for_each(|rank| pages_are_local(std::slice::from_ref(rank)));
}

#[test]
fn ranks_of_open_mpi_4_divide_the_cores() {
    ranks_divide_the_cores("openmpi4 divided");
}

#[test]
fn ranks_of_open_mpi_5_divide_the_cores() {
    ranks_divide_the_cores("openmpi5 divided");
}

#[test]
fn ranks_of_mpich_divide_the_cores() {
    ranks_divide_the_cores("mpich divided");
}

#[test]
fn ranks_of_intel_mpi_divide_the_cores() {
    ranks_divide_the_cores("intelmpi divided");
}

#[test]
fn ranks_that_open_mpi_binds_stay_there() {
    ranks_are_on("openmpi4 divided bound", [0..2, 2..4]);
    ranks_are_on("openmpi5 divided bound", [0..2, 2..4]);
}

#[test]
fn two_applications_have_cores_of_their_own() {
    let Some(text) = printed("two") else { return };
    let both = processes(&text).unwrap();
    assert_eq!(both.iter().map(|app| app.threads.len()).collect::<Vec<_>>(), [3, 3]);
    assert_eq!(one_each(&both).len(), 6);
    pages_are_local(&both);
}

/// `thread NAME cpus LIST`, by name; of threads with the same name, all.
fn threads(text: &str) -> Vec<(String, CpuSet)> {
    let words = |line: &str| -> Option<(String, CpuSet)> {
        let (name, cpus) = line.strip_prefix("thread ")?.split_once(" cpus ")?;
        Some((name.to_owned(), CpuSet::parse_list(cpus).ok()?))
    };
    text.lines().filter_map(words).collect()
}

fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
}

#[test]
fn threads_of_numpy_have_a_core_each_and_its_children_all_of_them() {
    let Some(text) = printed("numpy") else { return };
    let threads = threads(&text);
    let cpus: BTreeMap<Option<u32>, usize> =
        threads.iter().map(|(_, cpus)| (cpus.first(), cpus.len())).collect();
    assert_eq!(threads.len(), 4, "{text}");
    assert_eq!(cpus, (0..4).map(|cpu| (Some(cpu), 1)).collect(), "{text}");
    // The child of a fork has no thread but its main one, and the cores of the program; which of
    // them its threads take while its parent's have theirs is not promised.
    assert_eq!(value(&text, "child"), Some("0-3"), "{text}");
    assert_eq!(value(&text, "again").map(|list| list.split(' ').count()), Some(4), "{text}");
}

/// All threads of Java, its collector and compilers among them, are on this mask.
fn java_is_on(text: &str, mask: &CpuSet) {
    let threads = threads(text);
    for name in ["worker-0", "worker-3", "VM_Thread"] {
        assert!(threads.iter().any(|(of, _)| of == name), "no {name}: {text}");
    }
    for (name, cpus) in &threads {
        assert_eq!(cpus, mask, "{name}");
    }
    // 0 + 1 + ... + 399999
    assert_eq!(value(text, "sum"), Some("79999800000"), "{text}");
}

#[test]
fn threads_of_java_have_all_cores_of_the_program() {
    let Some(text) = printed("java") else { return };
    java_is_on(&text, &(0..4).collect());
}
