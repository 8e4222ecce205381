//! Programs that are observed from a node of the observer's own, each broken and repaired, beside what the simulator counts;
//! and what the suggested commands do.

use numakit_guest::{Boot, Failure, Guest, Lines, Shape, Simulation, place, programs};
use serde_json::Value;
use std::fmt::Write;
use std::time::Duration;

/// Nodes of the programs. The observer's is the next one.
const NODES: usize = 4;
/// Objects with a smaller part of the pages in use are not judged.
const MIN_SHARE: f64 = 0.05;
/// Fewer samples of a program say nothing.
const MIN_SAMPLES: u64 = 60;

/// A program in two variants.
pub struct Kernel {
    pub name: &'static str,
    pub broken: &'static str,
    pub repaired: &'static str,
    /// Shell commands before each of its runs.
    pub before: &'static str,
    /// How often its objects take turns, each in a region of its own.
    pub turns: usize,
    /// Objects of the broken variant that must be there, with their verdicts: one of each region in turn. Repaired, none
    /// has a verdict.
    pub objects: &'static [(&'static str, Option<&'static str>)],
    /// How many points the 95 % interval of the remote share of an object may be away from the truth.
    pub tolerance: f64,
    /// What the first suggested command does.
    pub tried: Option<Tried>,
}

/// What a suggested command promises.
#[derive(Clone, Copy, PartialEq)]
pub struct Tried {
    /// Remote lines, as a part of those before, at most.
    pub remote: f64,
    /// The part of the lines from memory that the busiest node serves at most, in percent; before it was nearly all.
    pub busiest: f64,
}

/// A kernel whose fields are left out where they are these.
pub const KERNEL: Kernel = Kernel {
    name: "",
    broken: "",
    repaired: "",
    before: ":",
    turns: 1,
    objects: &[],
    tolerance: 6.0,
    tried: None,
};

/// Runs the first command that a result suggests, without what bound the threads before: `try RESULT PROGRAM`. Of a process
/// that runs already, the result names no program; what is to be moved is gone, and is cured by the result instead.
const TRY: &str = r#"line=$(sed -n 's/.*"try": *"\([^"]*\)".*/\1/p' $1 | head -n 1)
[ -n "$line" ] || { echo "no command is suggested" >&2; exit 1; }
case $line in
    'numa move '*) line="numa run --apply $1 $2" ;;
    *CMD) line="${line%CMD}$2" ;;
esac
echo "$line"
unset GOMP_CPU_AFFINITY
exec taskset ff sh -c "$line"
"#;

impl Kernel {
    fn command(&self, variant: &str) -> &'static str {
        if variant == "repaired" { self.repaired } else { self.broken }
    }

    /// The steps that have regions, in their order: their names, and how many regions.
    fn steps(&self) -> Vec<(String, usize)> {
        let regions = self.objects.len() * self.turns;
        let regions = if self.turns > 1 { regions } else { 1 };
        let mut steps = vec![(format!("{}-broken", self.name), regions)];
        steps.extend(self.tried.map(|_| (format!("{}-try", self.name), 1)));
        steps.push((format!("{}-repaired", self.name), regions));
        steps
    }
}

/// Runs all of them in a guest that has these programs.
pub fn boot(kernels: &[Kernel], compiled: &[&str]) -> Result<Boot, Failure> {
    let script = place::root().join("tests/guest/guest/observed");
    let mut guest = Guest::new(Shape::named("watched")?)
        .simulate(Simulation::new())
        .program(&programs::numa()?)
        .file(&script, "/root/observed")
        .timeout(Duration::from_secs(900))
        .eight_threads()
        .bound()
        .compiled(compiled)?
        .small_pages();
    // An emulator translates code when it is executed first: the first observer would be late for its program.
    let warm =
        "numa explain --json - -- sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done' >/dev/null";
    guest = guest.step("warm", &["sh", "-c", warm]);
    for kernel in kernels {
        for (step, _) in kernel.steps() {
            let (name, variant) = step.split_once('-').unwrap_or((&step, "broken"));
            let (before, command) = (kernel.before, kernel.command(variant));
            guest = match variant {
                "try" => {
                    let script = format!("{before}\n{TRY}");
                    guest.step(
                        &step,
                        &["sh", "-c", &script, "try", &format!("/out/{name}-broken.json"), command],
                    )
                }
                _ => {
                    let script = format!("{before}\nsh /root/observed {command} >/out/{step}.json");
                    guest.step(&step, &["sh", "-c", &script])
                }
            };
        }
    }
    guest.boot()
}

/// What the simulator counted in each region of a step; all steps before it succeeded.
fn regions(boot: &Boot, kernels: &[Kernel], wanted: &str) -> Vec<Lines> {
    let mut all = boot.traffic.as_ref().unwrap().each.iter();
    for (step, count) in kernels.iter().flat_map(Kernel::steps) {
        boot[step.as_str()].succeeded();
        let of_step: Vec<Lines> = all.by_ref().take(count).cloned().collect();
        assert_eq!(of_step.len(), count, "{step} has no regions");
        if step == wanted {
            return of_step;
        }
    }
    panic!("there is no step {wanted}");
}

/// Lines of the programs' nodes from their own memory and caches, and from those of other nodes.
fn local_and_remote<'a>(regions: impl Iterator<Item = &'a Lines>) -> (u64, u64) {
    let mut sums = (0, 0);
    for lines in regions {
        for matrix in [&lines.fetches, &lines.transfers] {
            for (node, home) in (0..NODES).flat_map(|node| (0..NODES).map(move |home| (node, home))) {
                *(if node == home { &mut sums.0 } else { &mut sums.1 }) += matrix[node][home];
            }
        }
    }
    sums
}

/// In percent.
fn remote_share((local, remote): (u64, u64)) -> f64 {
    100.0 * remote as f64 / (local + remote).max(1) as f64
}

/// The part of the lines from memory that the busiest node's memory serves, in percent.
fn busiest(regions: &[Lines]) -> f64 {
    let of_home = |home: usize| -> u64 {
        regions.iter().map(|lines| (0..NODES).map(|node| lines.fetches[node][home]).sum::<u64>()).sum()
    };
    let all: Vec<u64> = (0..NODES).map(of_home).collect();
    100.0 * *all.iter().max().unwrap() as f64 / all.iter().sum::<u64>().max(1) as f64
}

/// An object of a program, found and true.
struct Judged {
    step: String,
    name: String,
    part: f64,
    expected: Option<&'static str>,
    found: Option<String>,
    remote: f64,
    interval: [f64; 2],
    truth: f64,
    tolerance: f64,
}

/// A value of the remote share of an object, in percent.
fn share(object: &Value, name: &str) -> f64 {
    object["remote"][name].as_f64().unwrap_or(f64::NAN) * 100.0
}

/// The objects of one run that are above 5 % of the pages in use.
fn judged(boot: &Boot, kernels: &[Kernel], kernel: &Kernel, variant: &str) -> Vec<Judged> {
    let step = format!("{}-{variant}", kernel.name);
    let regions = regions(boot, kernels, &step);
    let text = std::fs::read_to_string(boot.out.join(format!("{step}.json"))).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    assert!(report["samples"]["total"].as_u64().unwrap() >= MIN_SAMPLES, "{step}: {}", report["samples"]);
    let objects = report["objects"].as_array().unwrap();
    for (name, _) in kernel.objects {
        assert!(objects.iter().any(|object| object["name"] == *name), "{step}: there is no object {name}");
    }
    let turns = kernel.objects.len();
    let large = objects.iter().filter(|object| object["time_share"].as_f64().unwrap() > MIN_SHARE);
    let one = |object: &Value| {
        let name = object["name"].as_str().unwrap().to_owned();
        // Of a kernel with one region, all arrays have the same fate.
        let turn = kernel.objects.iter().position(|(known, _)| *known == name).unwrap_or(0);
        let expected = if variant == "broken" { kernel.objects[turn].1 } else { None };
        Judged {
            step: step.clone(),
            part: object["time_share"].as_f64().unwrap() * 100.0,
            expected,
            found: object["verdict"]["rule"].as_str().map(str::to_owned),
            remote: share(object, "share"),
            interval: [share(object, "low"), share(object, "high")],
            truth: remote_share(local_and_remote(regions.iter().skip(turn).step_by(turns))),
            tolerance: kernel.tolerance,
            name,
        }
    };
    large.map(one).collect()
}

fn table(all: &[Judged]) -> String {
    let mut out = format!(
        "{:<16} {:<24} {:>6} {:<14} {:<14} {:>7} {:>7}\n",
        "PROGRAM", "OBJECT", "PAGES%", "EXPECTED", "FOUND", "REMOTE%", "TRUTH%"
    );
    for one in all {
        let (expected, found) = (one.expected.unwrap_or("-"), one.found.as_deref().unwrap_or("-"));
        let Judged { step, name, part, remote, truth, .. } = one;
        _ = writeln!(
            out,
            "{step:<16} {name:<24} {part:6.1} {expected:<14} {found:<14} {remote:7.1} {truth:7.1}"
        );
    }
    out
}

/// What is broken has the right verdict, with the remote share that is true; what is repaired has none.
pub fn check_verdicts(boot: &Boot, kernels: &[Kernel]) {
    let all: Vec<Judged> = kernels
        .iter()
        .flat_map(|kernel| ["broken", "repaired"].map(|variant| judged(boot, kernels, kernel, variant)))
        .flatten()
        .collect();
    let table = table(&all);
    println!("{table}");
    for one in &all {
        let (step, name) = (&one.step, &one.name);
        assert_eq!(one.found.as_deref(), one.expected, "{step}, {name}\n{table}");
        let [low, high] = one.interval;
        // What is within the interval is chance.
        let difference = (low - one.truth).max(one.truth - high);
        assert!(
            high >= low && difference <= one.tolerance,
            "{step}, {name}: {difference:.1} points\n{table}"
        );
    }
}

/// The changes in the source leave few remote lines, and the commands do what they promise.
pub fn check_remedies(boot: &Boot, kernels: &[Kernel]) {
    let mut table = format!(
        "{:<8} {:>12} {:>12} {:>12}   {:>8} {:>8}   TRIED\n",
        "PROGRAM", "REMOTE LINES", "TRIED", "CHANGED", "BUSIEST%", "TRIED%"
    );
    let mut wrong = Vec::new();
    for kernel in kernels {
        let of = |variant: &str| regions(boot, kernels, &format!("{}-{variant}", kernel.name));
        let (before, changed) = (of("broken"), of("repaired"));
        let remote = |regions: &[Lines]| local_and_remote(regions.iter()).1;
        let tried = kernel.tried.map(|_| of("try"));
        let line = kernel.tried.map(|_| boot[format!("{}-try", kernel.name).as_str()].succeeded());
        let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        _ = writeln!(
            table,
            "{:<8} {:>12} {:>12} {:>12}   {:>8.1} {:>8}   {}",
            kernel.name,
            remote(&before),
            text(tried.as_deref().map(|tried| remote(tried).to_string())),
            remote(&changed),
            busiest(&before),
            text(tried.as_deref().map(|tried| format!("{:.1}", busiest(tried)))),
            text(
                line.and_then(|all| Some(all.lines().find(|line| line.starts_with("numa run"))?.to_owned()))
            )
        );
        if remote(&changed) * 5 > remote(&before) {
            wrong.push(format!("the change of {} leaves a fifth of the remote lines or more", kernel.name));
        }
        let is_as_promised = kernel.tried.zip(tried).is_none_or(|(promised, tried)| {
            let is_spread = busiest(&tried) <= promised.busiest;
            remote(&tried) as f64 <= promised.remote * remote(&before) as f64
                && is_spread
                && (promised.busiest == 100.0 || busiest(&before) > 90.0)
        });
        if !is_as_promised {
            wrong.push(format!("what {} suggests does not do what it promises", kernel.name));
        }
    }
    println!("{table}");
    assert!(wrong.is_empty(), "{wrong:?}\n{table}");
}
