//! The whole way from a program to its cure: `numa explain --cure`, then `numa run --apply`, beside the repaired source, with what the
//! simulator counts of each.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod tuned;

use numakit_guest::{Boot, Failure, Guest, Lines, Shape, Simulation, programs};
use std::fmt::Write;
use std::time::Duration;

/// Nodes of the programs. The observer's is the next one.
const NODES: usize = 4;
const BROKEN: &str = "broken";
const CURED: &str = "cured";
const REPAIRED: &str = "repaired";

/// A program whose cure is tried.
struct Program {
    name: &'static str,
    command: &'static str,
    /// How often it repeats its work while it is observed: an observer begins late, since the emulator translates its code first.
    repeats: u32,
    /// Shell commands before each of its runs.
    before: &'static str,
    /// The part of the lines from memory that the busiest node may serve, in percent.
    busiest: f64,
    /// Whether nothing gets near: the load spreads alone.
    is_shared: bool,
    /// Other runs with the same cure: a name and what comes before the program.
    others: &'static [(&'static str, &'static str)],
}

const PROGRAM: Program = Program {
    name: "",
    command: "",
    repeats: 2000,
    before: ":",
    busiest: 30.0,
    is_shared: false,
    others: &[],
};
const HALF: (&str, &str) = ("half", "OMP_NUM_THREADS=4 numa run -c 4 --policy spread:node");
const TWO_NODES: (&str, &str) = ("nodes", "numa run --nodes 1,2");
/// Docker's filter refuses memory policies.
const FILTER: (&str, &str) = ("filter", "filtered numa run");
/// A control group without two of the nodes.
const CPUSET: (&str, &str) = (
    "cpuset",
    "cd /sys/fs/cgroup; group=/sys/fs/cgroup/part; echo +cpuset >cgroup.subtree_control; mkdir -p $group && echo 2-5 >$group/cpuset.cpus && echo 1-2 >$group/cpuset.mems && \
     echo $$ >$group/cgroup.procs || exit 1; numa run",
);
const TWICE: (&str, &str) = ("twice", "CURED_TWICE=1 numa run");
const PROGRAMS: [Program; 12] = [
    Program {
        name: "cg",
        command: "npb cg",
        repeats: 1500,
        others: &[HALF, TWO_NODES, CPUSET, FILTER],
        ..PROGRAM
    },
    Program { name: "is", command: "npb is", repeats: 800, ..PROGRAM },
    Program { name: "mg", command: "npb_fortran mg", repeats: 400, ..PROGRAM },
    Program { name: "ft", command: "npb_fortran ft", repeats: 200, ..PROGRAM },
    Program { name: "join", command: "npb join", repeats: 1200, is_shared: true, ..PROGRAM },
    Program { name: "store", command: "npb store", busiest: 100.0, ..PROGRAM },
    Program { name: "bound", command: "misplaced bound", repeats: 4000, ..PROGRAM },
    Program {
        name: "huge",
        command: "misplaced huge",
        repeats: 8000,
        before: "echo madvise >/sys/kernel/mm/transparent_hugepage/enabled",
        ..PROGRAM
    },
    Program {
        name: "heap",
        command: "cured heap",
        before: "unset GOMP_CPU_AFFINITY",
        others: &[TWICE, FILTER],
        ..PROGRAM
    },
    Program { name: "rows", command: "cured rows", ..PROGRAM },
    Program {
        name: "llvm",
        command: "cured vector",
        before: "export LD_LIBRARY_PATH=/usr/lib/llvm",
        ..PROGRAM
    },
    Program { name: "vector", command: "cured vector", others: &[HALF], ..PROGRAM },
];

impl Program {
    /// Its counted steps in order, each with its command.
    fn steps(&self) -> Vec<(String, String)> {
        let Self { name, command, before, others, .. } = self;
        let cure = format!("/root/{name}.cure");
        let free = format!("{before}; unset GOMP_CPU_AFFINITY; taskset -p ff $$ >/dev/null");
        let plain = |variant: &str| format!("{before}; exec taskset ff {command} {variant}");
        let run = |with: &str| format!("{free}; {with} --apply {cure} {command} broken");
        let mut steps = vec![(BROKEN.to_owned(), plain("broken")), (CURED.to_owned(), run("numa run"))];
        steps.extend(others.iter().map(|(other, with)| ((*other).to_owned(), run(with))));
        steps.push((REPAIRED.to_owned(), plain("repaired")));
        steps
    }

    /// How it is observed, from a node of the observer's own.
    fn observed(&self) -> String {
        let Self { name, command, repeats, before, .. } = self;
        format!(
            "{before}; taskset -p 300 $$ >/dev/null; exec numa explain --cure /out/{name}.cure --json /out/{name}.json taskset ff \
             {command} broken {repeats}"
        )
    }
}

/// The programs that are run: those that the variable NUMAKIT_CURED names, else all.
fn chosen() -> impl Iterator<Item = &'static Program> {
    let only = std::env::var("NUMAKIT_CURED").unwrap_or_default();
    PROGRAMS.iter().filter(move |program| only.is_empty() || only.split(',').any(|name| name == program.name))
}

/// A guest with the programs and their surroundings.
fn guest() -> Result<Guest, Failure> {
    Ok(Guest::new(Shape::named("watched")?)
        .program(&programs::numa()?)
        .file(&programs::libomp()?, "/usr/lib/llvm/libgomp.so.1")
        .timeout(Duration::from_secs(900))
        .eight_threads()
        .bound()
        .compiled(&["npb", "npb_fortran", "misplaced", "cured", "filtered"])?
        .small_pages()
        .without_balancing())
}

/// Observes programs. Nothing is counted: the simulator slows an observer down so much that it sees little.
fn observe(programs: &[&Program]) -> Result<Boot, Failure> {
    let mut guest = guest()?;
    let warm = "numa explain --cure - sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done' >/dev/null";
    guest = guest.step("warm", &["sh", "-c", warm]);
    for program in programs {
        guest = guest.step(program.name, &["sh", "-c", &program.observed()]);
    }
    guest.boot()
}

impl Program {
    /// Takes the cure that a boot has found along into a guest.
    fn with_cure(&self, guest: Guest, observed: &Boot) -> Guest {
        observed[self.name].succeeded();
        let cure = format!("{}.cure", self.name);
        guest.file(&observed.out.join(&cure), &format!("/root/{cure}"))
    }

    /// The most remote lines that may be left of those of the broken program.
    fn near(broken: u64, repaired: u64) -> f64 {
        (0.05 * broken as f64).max(1.5 * repaired as f64 + 1e5)
    }
}

/// Runs all of them with the cures of an observation.
fn boot() -> Result<(Boot, Boot), Failure> {
    let observed = observe(&chosen().collect::<Vec<_>>())?;
    let mut guest = guest()?.simulate(Simulation::new());
    for program in chosen() {
        guest = program.with_cure(guest, &observed);
        for (step, command) in program.steps() {
            guest = guest.step(&format!("{}-{step}", program.name), &["sh", "-c", &command]);
        }
    }
    Ok((observed, guest.boot()?))
}

/// What one step did.
#[derive(Clone, Copy)]
struct Counted {
    remote: u64,
    /// The part of the lines from memory that the busiest node's memory serves, in percent.
    busiest: f64,
}

fn counted(lines: &Lines) -> Counted {
    let of = |from: usize, to: usize| lines.fetches[from][to] + lines.transfers[from][to];
    let remote = (0..NODES)
        .flat_map(|from| (0..NODES).map(move |to| (from, to)))
        .filter(|(from, to)| from != to)
        .map(|(from, to)| of(from, to))
        .sum();
    let of_home = |home: usize| -> u64 { (0..NODES).map(|node| lines.fetches[node][home]).sum() };
    let all: Vec<u64> = (0..NODES).map(of_home).collect();
    let busiest = 100.0 * *all.iter().max().unwrap() as f64 / all.iter().sum::<u64>().max(1) as f64;
    Counted { remote, busiest }
}

fn millions(lines: u64) -> f64 {
    lines as f64 / 1e6
}

/// The floors of a program: `None` if they are met.
fn unmet(program: &Program, of: impl Fn(&str) -> Counted) -> Option<String> {
    let (broken, cured, repaired) = (of(BROKEN), of(CURED), of(REPAIRED));
    let near = Program::near(broken.remote, repaired.remote);
    if !program.is_shared && cured.remote as f64 > near {
        return Some(format!("{} remote lines are left, more than {near:.0}", cured.remote));
    }
    if cured.busiest > program.busiest {
        return Some(format!("the busiest node serves {:.0} %", cured.busiest));
    }
    let far = |(name, _): &&(&str, &str)| of(name).remote as f64 > 0.1 * broken.remote as f64;
    program.others.iter().find(far).map(|(name, _)| format!("'{name}' leaves a tenth or more"))
}

#[test]
#[ignore = "thorough: the cures of ten programs in the simulator, 10 minutes"]
fn cures_leave_as_few_remote_lines_as_changed_sources() {
    let (observed, boot) = match boot() {
        Ok(boots) => boots,
        Err(failure @ Failure::Unavailable { kind, .. }) => return kind.skip(failure),
        Err(failure) => panic!("{failure}"),
    };
    let mut each = boot.traffic.as_ref().unwrap().each.iter();
    let mut table = format!("{:<8} {:<9} {:>14} {:>9}\n", "PROGRAM", "RUN", "REMOTE (M)", "BUSIEST%");
    let mut wrong = Vec::new();
    for program in chosen() {
        let mut runs: Vec<(String, Counted)> = Vec::new();
        for (step, _) in program.steps() {
            let name = format!("{}-{step}", program.name);
            boot[name.as_str()].succeeded();
            let run = counted(each.next().unwrap());
            _ = writeln!(
                table,
                "{:<8} {step:<9} {:>14.2} {:>9.0}",
                program.name,
                millions(run.remote),
                run.busiest
            );
            println!("{name}: {}", boot[name.as_str()].errors());
            runs.push((step, run));
        }
        let cure = std::fs::read_to_string(observed.out.join(format!("{}.cure", program.name))).unwrap();
        println!("{cure}");
        let of = |wanted: &str| runs.iter().find(|(step, _)| step == wanted).unwrap().1;
        wrong.extend(unmet(program, of).map(|why| format!("{}: {why}", program.name)));
    }
    println!("{table}");
    assert!(wrong.is_empty(), "{wrong:?}\n{table}");
}
