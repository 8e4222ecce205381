//! A stress test: launches run in parallel, and at random times launchers, supervisors and programs are killed and
//! the registry's file is removed or emptied. `NUMAKIT_STORM=2000` sets the number of kills.
//!
//! The test reads from the kernel that no two living programs have the same CPU, and that a program which lives
//! before and after an inspection is listed in it. The 64 CPUs need not exist, so masks do not help.

use crate::scene::{Scene, kill_if_there};
use numakit_model::CpuSet;
use numakit_skips::rounds;
use numakit_testing::children::Started;
use numakit_testing::until;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

const AT_ONCE: usize = 6;
const EXITING: u64 = 4;

/// Programs: plain, without the descriptor, with a daemon, with both, and one that leaves only orphans.
const PROGRAMS: [&str; 5] = [
    "exec sleep $TIME",
    "exec {NUMA_HOLD}>&-; exec sleep $TIME",
    "setsid sleep $TIME & exec sleep 0.1",
    "exec {NUMA_HOLD}>&-; setsid sleep $TIME & exec sleep 0.1",
    "exec {NUMA_HOLD}>&-; (setsid sleep $TIME &) ; exit 0",
];

/// A process of a program that was launched.
#[derive(Clone)]
struct Process {
    pid: u32,
    start: u64,
    run: String,
    cpus: CpuSet,
}

/// The start time of a process, unless it has ended or is exiting.
fn start(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let flags: u64 = fields.get(6)?.parse().ok()?;
    (!matches!(fields[0], "Z" | "X") && flags & EXITING == 0).then(|| fields.get(19)?.parse().ok())?
}

impl std::fmt::Display for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        let parent =
            stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)).unwrap_or("?");
        let name = fs::read_to_string(format!("/proc/{parent}/comm")).unwrap_or_default();
        let file = fs::read_link(format!("/proc/{}/fd/100", self.pid)).unwrap_or_default();
        write!(f, "run {} (process {}, CPUs {}, ", self.run, self.pid, self.cpus)?;
        write!(f, "child of {parent} {}, descriptor {})", name.trim(), file.display())
    }
}

impl Process {
    fn lives(&self) -> bool {
        start(self.pid) == Some(self.start)
    }
}

/// All processes of programs of this test.
fn programs(storm: &str) -> Vec<Process> {
    let pids =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: u32| {
        let begun = start(pid)?;
        let text = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let text = String::from_utf8_lossy(&text);
        let value = |name: &str| text.split('\0').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let (run, cpus) = (value("RUN")?.to_owned(), value("NUMA_MASK")?.parse().ok()?);
        (value("STORM") == Some(storm)).then_some(Process { pid, start: begun, run, cpus })
    })
    .collect()
}

/// Pairs of programs with a common CPU, if both still live.
fn shared(list: &[Process]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, one) in list.iter().enumerate() {
        for other in &list[at + 1..] {
            let is_bad = one.run != other.run && one.cpus.intersects(&other.cpus);
            if is_bad && one.lives() && other.lives() {
                found.push(format!("{one} and {other}"));
            }
        }
    }
    found
}

/// Programs that live before and after an inspection and are not listed in it.
fn unknown(scene: &Scene, storm: &str) -> Vec<String> {
    let before = programs(storm);
    let view = numakit_registry::inspect_at(&scene.registry()).unwrap();
    let held = view.held();
    let lost = before.into_iter().filter(|one| !one.cpus.is_subset(&held) && one.lives());
    lost.map(|one| format!("{one} is not in {:?}", view.holdings)).collect()
}

struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

fn child_of(pid: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_whitespace().next()?.parse().ok()
}

struct Storm {
    scene: Scene,
    name: String,
    dice: Dice,
    launches: u32,
    kills: u32,
    removals: u32,
    truncations: u32,
    /// The most processes of programs at once.
    most: usize,
    wrong: Vec<String>,
}

impl Storm {
    /// Whether it goes on: every kind of trouble is wanted.
    fn is_over(&self, wanted: u32) -> bool {
        self.kills >= wanted && self.removals > 0 && self.truncations > 0
    }

    fn launch(&mut self) -> Started {
        self.launches += 1;
        let count = format!("+{}", 1 + self.dice.throw(12));
        let program = PROGRAMS[self.dice.throw(PROGRAMS.len())];
        let time = format!("{:.2}", 0.05 + self.dice.throw(100) as f64 / 100.0);
        let mut command = self.scene.hold(&["--wait", "60", &count, "bash", "-c", program]);
        command.env("STORM", &self.name).env("RUN", self.launches.to_string()).env("TIME", time);
        Started(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// Kills one or two of launcher, supervisor and program, and counts the kills.
    fn kill(&mut self, launcher: u32) {
        let supervisor = child_of(launcher);
        let program = supervisor.and_then(child_of);
        let (one, two) = match self.dice.throw(6) {
            0 => (Some(launcher), None),
            1 => (supervisor, None),
            2 => (program, None),
            3 | 4 => (supervisor, Some(launcher)),
            _ => (supervisor, program),
        };
        for pid in [one, two].into_iter().flatten() {
            self.kills += u32::from(kill_if_there(pid));
        }
    }

    fn step(&mut self, launchers: &mut [Option<Started>], wanted: u32) {
        for launcher in launchers.iter_mut() {
            if launcher.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some()) {
                *launcher = (!self.is_over(wanted)).then(|| self.launch());
            }
        }
        std::thread::sleep(Duration::from_millis(self.dice.throw(30) as u64));
        let at = self.dice.throw(launchers.len());
        if let Some(pid) = launchers[at].as_ref().map(|child| child.id()) {
            self.kill(pid);
        }
        match self.dice.throw(24) {
            0 => self.removals += u32::from(fs::remove_file(self.scene.registry()).is_ok()),
            1 => {
                let file = fs::File::options().write(true).open(self.scene.registry());
                self.truncations += u32::from(file.and_then(|file| file.set_len(0)).is_ok());
            }
            2..=5 => self.wrong.extend(unknown(&self.scene, &self.name)),
            _ => {}
        }
        let programs = programs(&self.name);
        self.most = self.most.max(programs.len());
        self.wrong.extend(shared(&programs));
    }
}

#[test]
fn kills_and_removals_leave_no_core_with_two_holders_or_none() {
    let usual = rounds(40, 200) as u32;
    let wanted = std::env::var("NUMAKIT_STORM").map_or(usual, |text| text.parse().unwrap());
    let name = format!("storm-{}", std::process::id());
    let (scene, dice) = (Scene::new("storm"), Dice(1));
    let (launches, kills, removals, truncations, most) = (0, 0, 0, 0, 0);
    let wrong = Vec::new();
    let mut storm = Storm { scene, name, dice, launches, kills, removals, truncations, most, wrong };
    let mut launchers: [Option<Started>; AT_ONCE] = Default::default();
    let late = Instant::now() + Duration::from_secs(300 + 2 * u64::from(wanted));
    while !storm.is_over(wanted) || launchers.iter().any(Option::is_some) {
        assert!(Instant::now() < late, "only {} kills, or a launcher that does not end", storm.kills);
        storm.step(&mut launchers, wanted);
    }
    // Daemons and programs without a launcher end after their time.
    until!(
        {
            storm.wrong.extend(shared(&programs(&storm.name)));
            programs(&storm.name).is_empty()
        },
        "all programs end"
    );
    println!(
        "launches {}, kills {}, files removed {} and emptied {}, at once {}, wrong {}",
        storm.launches,
        storm.kills,
        storm.removals,
        storm.truncations,
        storm.most,
        storm.wrong.len()
    );
    assert!(storm.wrong.is_empty(), "{:#?}", storm.wrong);
    assert!(storm.most >= 2, "programs run side by side");
    storm.scene.until_held("");
    assert!(storm.scene.hold(&["0-63", "true"]).status().unwrap().success());
}
