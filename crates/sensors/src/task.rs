//! `task`: the observed processes and all their descendants: their memory by node, where their
//! threads run, and the cost of observing them.
//!
//! A separate thread observes them; a read copies its last results.

mod layout;

use crate::board::{Board, NONE};
use crate::known::{KnownName, TASK};
use crate::sensor::{Absent, Probed, Sensor, SensorEntry, Tick, narrow};
use crate::{Scene, Target};
use layout::{OF_NODES, TaskSeries};
use numakit_model::{Fix, Instance, Kind, Metric, Scope, Series, Unavailable, Unit};
use numakit_processes::{
    LimitWatch, TaskAccess, TaskNodes, WalkedMachine, Walker, WalkerControl, WatchTargets, may_be_loaded,
};
use numakit_sys::proc::{self, TaskDir};
use numakit_sys::{SysRoot, sched};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Line of the table of sensors.
pub const ENTRY: SensorEntry = SensorEntry {
    name: "task",
    help: "The observed processes: memory and CPU time by node, faults, migrations.",
    default: |_| true,
    known: || TASK.iter().enumerate().map(|(at, known)| describe(at, known)).collect(),
    probe,
};

/// A walk that takes longer is reported.
const LONG_WALK: u64 = 1_000_000_000;

/// What the names of the values of allocators begin with.
const ALLOCATOR: &str = "alloc_";

const NS_PER_MS: u64 = 1_000_000;
const TICK: Duration = Duration::from_millis(10);

fn describe(at: usize, known: &KnownName) -> Metric {
    let scope = if at < OF_NODES { Scope::Node } else { Scope::Machine };
    let mut metric = known.metric("task", scope, source(known.name));
    if metric.unit == Unit::Ticks {
        metric.resolution = TICK;
    }
    metric
}

/// The source of a value.
fn source(name: &str) -> &'static str {
    match name {
        "resident" | "stack" | "heap" | "anonymous" | "file" | "huge" | "resident_error" => {
            "/proc/PID/{numa_maps,maps,pagemap} and move_pages"
        }
        "huge_pages" => "/proc/PID/{smaps_rollup,pagemap}",
        "cpu_time" => "/proc/PID/task/TID/{stat,schedstat}",
        "threads" => "/proc/PID/task/TID/stat",
        "minor_faults" | "major_faults" | "cpu" | "processes" => "/proc/PID/stat",
        "threads_away" => {
            "/proc/PID/{numa_maps,maps,pagemap}, move_pages and /proc/PID/task/TID/{stat,sched}"
        }
        "alloc_local" | "alloc_spilled" => "libnumalloc, /proc/PID/{numa_maps,maps,pagemap} and move_pages",
        _ if name.starts_with(ALLOCATOR) => "the counts of libnumalloc in the memory of the processes",
        "throttled" => "/proc/PID/cgroup and cpu.stat of the control group",
        "migrations" | "voluntary_switches" | "involuntary_switches" => "/proc/PID/task/TID/sched",
        _ => "the observing thread",
    }
}

/// Files that a kernel may lack: name, how sources name them, and which kernel has them.
const OPTIONAL: [(&str, &str, &str); 3] = [
    ("numa_maps", "/proc/PID/numa_maps", "that is built with CONFIG_NUMA"),
    ("smaps_rollup", "/proc/PID/smaps_rollup", "4.14 or newer"),
    ("sched", "/proc/PID/task/TID/sched", "that is built with CONFIG_SCHED_DEBUG"),
];

fn probe(scene: &Scene<'_>) -> Probed {
    Ok(Box::new(Task::of(scene)?))
}

impl Task {
    fn of(scene: &Scene<'_>) -> Result<Self, Unavailable> {
        const MISSING: &str = "observed processes";
        let Some(target) = scene.target else {
            let fix = Fix::CommandLine("give a command after --, or --pid PID".to_owned());
            return Err(Unavailable::new(MISSING, "no process is observed", fix));
        };
        let root = scene.root;
        if let Some((seen, fix)) = unobservable(root, target) {
            return Err(Unavailable::new(MISSING, seen, fix));
        }
        let nodes = TaskNodes::of(scene.topology);
        let example = target.pid().map_or_else(|| TaskDir::own(root), |pid| TaskDir::of(root, pid));
        let lacking: Vec<_> = OPTIONAL.iter().filter(|(file, ..)| !example.has(file)).collect();
        let layout = TaskSeries::new(nodes.count());
        let has_groups = LimitWatch::new(root).is_some();
        let no_allocator = without_allocator(root, target);
        let mut sensor = Self {
            series: Vec::new(),
            places: Vec::new(),
            absent: Vec::new(),
            layout,
            walker: Some(Walker {
                machine: WalkedMachine::of(root, scene.topology, true),
                wanted: WatchTargets::default(),
                urgent: false,
            }),
            target: target.clone(),
            control: Arc::default(),
            published: Arc::new(Published { board: Board::new(layout.values()), unread: OnceLock::new() }),
            row: vec![NONE; layout.values()],
            scratch: vec![NONE; layout.values()],
            last_read: 0,
            access: TaskAccess::read(root),
            seen: NONE,
        };
        for (at, known) in TASK.iter().enumerate() {
            let metric = describe(at, known);
            // Without preferred nodes, the node with most memory is used.
            let has = |file: &str| metric.source.contains(file);
            let needs = |file| has(file) && !(file == "sched" && (has("schedstat") || has("numa_maps")));
            let why = match lacking.iter().find(|(file, ..)| needs(file)) {
                _ if metric.bare() == "throttled" && !has_groups => Some(without_groups()),
                _ if metric.bare().starts_with(ALLOCATOR) && no_allocator.is_some() => no_allocator.clone(),
                Some((_, path, kernel)) => {
                    let fix = Fix::OtherKernel((*kernel).to_owned());
                    Some(Unavailable::new(metric.name.clone(), format!("there is no {path}"), fix))
                }
                None => None,
            };
            match why {
                Some(why) => sensor.absent.push(Absent { metric, why }),
                None => sensor.add(at, &Arc::new(metric), &nodes),
            }
        }
        sensor.select();
        Ok(sensor)
    }
}

fn without_groups() -> Unavailable {
    let fix = Fix::Step("mount them: 'mount -t cgroup2 cgroup2 /sys/fs/cgroup'".to_owned());
    Unavailable::new("time stopped by a CPU limit", "no control groups with CPU limits are mounted", fix)
}

/// Why there are no values of allocators: a running process and its descendants do not load the library any more. Those of
/// a command may.
fn without_allocator(root: &SysRoot, target: &Target) -> Option<Unavailable> {
    const MISSING: &str = "memory of the allocator by node";
    if !root.is_host() {
        let fix = Fix::Step("observe a process of this machine".to_owned());
        return Some(Unavailable::new(MISSING, "the memory of processes is not part of a capture", fix));
    }
    (!may_be_loaded(root, &target.pids()?)).then(|| {
        let fix = Fix::Step("start the program with 'numa run --alloc numa -- CMD'".to_owned());
        Unavailable::new(MISSING, "no observed process has loaded libnumalloc.so", fix)
    })
}

/// Why the processes cannot be observed, and the fix.
fn unobservable(root: &SysRoot, target: &Target) -> Option<(String, Fix)> {
    if root.is_host() && proc::own_pid(root).is_some_and(|seen| seen != std::process::id()) {
        let seen = "/proc belongs to another PID namespace: /proc/self is not this process";
        return Some((seen.to_owned(), root.fix_for("/proc")));
    }
    let error = TaskDir::of(root, target.pid()?).bytes("stat").err()?;
    let fix = "name a process that runs; those of others may need root, or /proc mounted with hidepid=0";
    Some((error.to_string(), Fix::Step(fix.to_owned())))
}

/// What the walker publishes.
struct Published {
    board: Board,
    /// Why the allocator of a process could not be read, the first time.
    unread: OnceLock<String>,
}

struct Task {
    series: Vec<Series>,
    /// The position of each series' value in a row.
    places: Vec<usize>,
    absent: Vec<Absent>,
    layout: TaskSeries,
    /// The walker, until the first read starts it.
    walker: Option<Walker>,
    target: Target,
    control: Arc<WalkerControl>,
    published: Arc<Published>,
    row: Vec<u64>,
    scratch: Vec<u64>,
    last_read: u64,
    /// What this process may read of others.
    access: TaskAccess,
    /// Number of scans of the last row that was read.
    seen: u64,
}

impl Task {
    fn add(&mut self, at: usize, metric: &Arc<Metric>, nodes: &TaskNodes) {
        if at >= OF_NODES {
            self.series.push(Series::new(metric, Instance::Machine));
            return self.places.push(self.layout.of_machine(at - OF_NODES));
        }
        for (place, id) in nodes.ids().iter().enumerate() {
            self.series.push(Series::new(metric, Instance::Node(*id)));
            self.places.push(self.layout.of_node(at, place));
        }
    }

    /// Selects what the walker reads.
    fn select(&mut self) {
        let needs = |file: &str| self.series.iter().any(|s| s.metric.source.contains(file));
        let named = |name: &str| self.series.iter().any(|s| s.metric.bare().starts_with(name));
        let mut wanted = WatchTargets::default();
        wanted.walk.memory = needs("numa_maps") || named("walk_time") || named("walk_age");
        wanted.walk.huge_pages = needs("smaps_rollup");
        wanted.allocators = named(ALLOCATOR);
        wanted.limit = named("throttled");
        wanted.threads.cpu_time = needs("schedstat");
        wanted.threads.scheduling =
            needs("task/TID/sched") && !self.absent.iter().any(|a| a.metric.bare() == "migrations");
        if let Some(walker) = &mut self.walker {
            walker.wanted = wanted;
        }
    }

    /// Starts the walker, with the priority of the sampler.
    fn start(&self, walker: Walker) -> std::io::Result<()> {
        let (target, layout, published) = (self.target.clone(), self.layout, Arc::clone(&self.published));
        let (mut growing, root) = (self.target.clone(), walker.machine.root.clone());
        let mut row = vec![NONE; layout.values()];
        let walker = Walker { urgent: sched::is_realtime(), ..walker };
        walker.start(
            Arc::clone(&self.control),
            move || target.pids(),
            move || growing.joined(&root),
            move |observer, status| {
                if let Some(why) = observer.allocators.unread() {
                    published.unread.get_or_init(|| why.to_owned());
                }
                layout.fill(observer, status, &mut row);
                published.board.publish(&row);
            },
        )
    }

    fn age(&self, tick: &Tick) -> u64 {
        match self.row[self.layout.walk_end()] {
            NONE => NONE,
            end => tick.woke.saturating_sub(end) / NS_PER_MS,
        }
    }
}

impl Sensor for Task {
    fn series(&self) -> &[Series] {
        &self.series
    }

    fn absent(&self) -> &[Absent] {
        &self.absent
    }

    fn keep(&mut self, wanted: &dyn Fn(&Series) -> bool) {
        let successors = narrow(&mut self.series, wanted);
        let mut old = successors.iter();
        self.places.retain(|_| old.next().is_some_and(Option::is_some));
        self.select();
    }

    fn read(&mut self, tick: &Tick, out: &mut [Option<u64>]) {
        if let Some(walker) = self.walker.take()
            && self.start(walker.clone()).is_err()
        {
            // Tried again at the next read.
            self.walker = Some(walker);
        }
        self.control.read_every(tick.woke.saturating_sub(self.last_read));
        self.last_read = tick.woke;
        self.control.leave_running();
        // Without a new row the old one stays.
        let _ = self.published.board.copy(&mut self.scratch, &mut self.row);
        let scans = self.row[self.layout.scans()];
        let fresh = std::mem::replace(&mut self.seen, scans) != scans;
        let age = self.layout.of_machine(layout::WALK_AGE);
        self.row[age] = self.age(tick);
        for ((slot, place), series) in out.iter_mut().zip(&self.places).zip(&self.series) {
            // A level is valid until the next scan. A counter without a new scan would give a rate of 0, and then a peak: also
            // where the row is new since memory was walked.
            if fresh || series.metric.kind == Kind::Gauge {
                *slot = Some(self.row[*place]).filter(|value| *value != NONE);
            }
        }
    }

    fn failure(&self) -> Option<String> {
        let pid = |place: usize| Some(self.row[place]).filter(|pid| *pid != NONE);
        if let Some(pid) = pid(self.layout.denied()) {
            return Some(format!("the memory of PID {pid} may not be read; {}", self.access.fix()));
        }
        if pid(self.layout.allocator_unread()).is_some()
            && let Some(why) = self.published.unread.get()
        {
            return Some(why.clone());
        }
        if let Some(pid) = pid(self.layout.held()) {
            return Some(format!(
                "move_pages is refused here, so the memory of PID {pid} is read from its numa_maps, \
                 which stops its mappings meanwhile; so it is read seldom"
            ));
        }
        if let Some(pid) = pid(self.layout.huge_unknown()) {
            return Some(format!(
                "the huge pages of PID {pid} are not counted: a kernel before 6.7 stops the mappings of a \
                 process of that size meanwhile"
            ));
        }
        let took = self.row[self.layout.of_machine(layout::WALK_TIME)];
        (took != NONE && took > LONG_WALK).then(|| {
            let seconds = took as f64 / 1e9;
            format!("a scan of all memory takes {seconds:.1} s, so its levels are from different times")
        })
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.control.stop();
    }
}

#[cfg(test)]
mod tests;
