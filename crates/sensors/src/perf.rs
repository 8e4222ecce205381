//! `perf`: software events, tracepoints about NUMA, and cycles and instructions of the cores, counted
//! on each CPU and summed by node.
//!
//! An event counts for the node of the CPU on which it happens. All software events and tracepoints
//! of a CPU are one group, so that a CPU is read with one system call.

mod table;
mod tracepoints;

use crate::Scene;
use crate::hardware::{self, Hardware, KNOWN_OF_CORES, of_cores};
use crate::pmu::counting::running;
use crate::pmu::device::{self, DEVICES};
use crate::pmu::{CounterRequest, Counting, Factor, Need, Privilege, privilege};
use crate::sensor::{Absent, Probed, Sensor, SensorEntry};
use numakit_model::{CpuSet, Instance, Scope, Series, Unavailable};
use numakit_sys::SysRoot;
use numakit_sys::perf::{MAX_GROUP, PerfEvent};
use std::sync::Arc;
use table::{PerfLine, PerfSource, lines};
use tracepoints::Tracefs;

const SENSOR: &str = "perf";

/// Line of the table of sensors.
pub const ENTRY: SensorEntry = SensorEntry {
    name: SENSOR,
    help: "Page faults, context switches, migrations, cycles and the kernel's NUMA tracepoints by node.",
    // Reading a CPU's counters interrupts it at every tick, and vmstat and cpu have most of these values.
    default: |_| false,
    known: || {
        let own = lines().map(|line| line.metric(line.scope));
        own.chain(KNOWN_OF_CORES.iter().cloned()).chain([running(SENSOR)]).collect()
    },
    probe,
};

fn probe(scene: &Scene<'_>) -> Probed {
    let of_cores = hardware::find(scene, SENSOR, of_cores);
    let mut counting = match Counting::new(SENSOR, scene) {
        Ok(counting) => counting,
        // The core events of a capture can at least be listed.
        Err(why) if of_cores.nothing.is_some() => return Err(why),
        Err(why) => return Ok(listed(scene, of_cores, &why)),
    };
    let counted = CountedCpus::of(scene)?;
    let cores = cores(scene.root);
    let mut found = locate(scene.root, &cores);
    for (at, why) in refused(scene, &counted, &found)? {
        found[at].1 = Err(why);
    }
    let kinds = cores.unwrap_or_default();
    for (line, event) in found {
        match event {
            Ok(event) => counted.add(&mut counting, &line, &|cpu| on_core(event, cpu, &kinds)),
            Err(why) => counting.add_absent(Absent { metric: line.metric(line.scope), why }),
        }
    }
    of_cores.add_to(&mut counting);
    Ok(counting.finish())
}

fn listed(scene: &Scene<'_>, mut of_cores: Hardware, why: &Unavailable) -> Box<dyn Sensor> {
    let own = lines().map(|line| Absent { metric: line.metric(line.scope), why: why.clone() });
    of_cores.absent.splice(0..0, own);
    of_cores.listed(scene.root)
}

/// Each line of the table with its event.
fn locate(
    root: &SysRoot,
    cores: &Result<Cores, Unavailable>,
) -> Vec<(PerfLine, Result<PerfEvent, Unavailable>)> {
    // Tracepoints are not opened to try them: the kernel takes long to close one.
    let tracefs = Tracefs::find(root)
        .and_then(|tracefs| Privilege::read(root).permits(Need::Tracepoint).map(|()| tracefs));
    let event = |line: &PerfLine| match line.source {
        PerfSource::Software(event) => Ok(event),
        PerfSource::Hardware(event) => cores.as_ref().map(|_| event).map_err(Clone::clone),
        PerfSource::Tracepoint(system, name) => tracefs.as_ref().map_err(Clone::clone)?.event(system, name),
    };
    lines().map(|line| (line, event(&line))).collect()
}

/// The events that cannot be opened on the first CPU, each with the reason. An error if no software
/// event can be opened.
fn refused(
    scene: &Scene<'_>,
    counted: &CountedCpus,
    found: &[(PerfLine, Result<PerfEvent, Unavailable>)],
) -> Result<Vec<(usize, Unavailable)>, Unavailable> {
    let (counters, cpu) = (privilege::counters(scene)?, counted.cpus.first().unwrap_or(0));
    let privilege = Privilege::read(scene.root);
    let mut refused = Vec::new();
    let mut open = |wanted: &dyn Fn(&PerfEvent) -> bool| {
        let located =
            found.iter().enumerate().filter_map(|(at, (_, event))| Some((at, *event.as_ref().ok()?)));
        let mut rest: Vec<(usize, PerfEvent)> = located.filter(|(_, event)| wanted(event)).collect();
        while let Some((at, event)) = rest.first().copied() {
            let events: Vec<PerfEvent> = rest.iter().map(|(_, event)| *event).take(MAX_GROUP).collect();
            let taken = match counters.open(cpu, &events) {
                Ok((_, taken)) => taken.max(1),
                Err(error) => {
                    refused.push((at, privilege.explain(&event, cpu, &error)));
                    1
                }
            };
            rest.drain(..taken.min(rest.len()));
        }
    };
    open(&|event| event.pmu == PerfEvent::SOFTWARE);
    open(&|event| event.pmu == PerfEvent::HARDWARE);
    let software = |at: &usize| matches!(found[*at].0.source, PerfSource::Software(_));
    let all = (0..found.len()).filter(software).count();
    match refused.iter().filter(|(at, _)| software(at)).count() {
        some if some < all => Ok(refused),
        _ => Err(refused.swap_remove(0).1),
    }
}

/// The kinds of cores: on which CPUs they are, and the number of their PMU.
type Cores = Vec<(CpuSet, u32)>;

fn cores(root: &SysRoot) -> Result<Cores, Unavailable> {
    let names = device::names(root);
    let found = device::devices(root, |name| device::is_core(root, name)).found;
    if found.is_empty() {
        let seen = match names.is_empty() {
            true => format!("{DEVICES} is empty or missing"),
            false => format!("{DEVICES} has only {}", names.join(", ")),
        };
        return Err(Unavailable::new("no core PMU", seen, privilege::other_core_pmu()));
    }
    Ok(found.into_iter().map(|device| (device.cpus, device.kind)).collect())
}

/// A generic core event, with the kind of core if there are several.
fn on_core(event: PerfEvent, cpu: u32, cores: &[(CpuSet, u32)]) -> PerfEvent {
    let kind = cores.iter().find(|(cpus, _)| cpus.contains(cpu)).filter(|_| cores.len() > 1);
    match kind {
        Some((_, kind)) if event.pmu == PerfEvent::HARDWARE => {
            PerfEvent::new(event.pmu, event.config[0] | u64::from(*kind) << 32)
        }
        _ => event,
    }
}

/// The CPUs on which events are counted, and their sums.
struct CountedCpus {
    cpus: CpuSet,
    sums: Vec<(Instance, CpuSet)>,
}

impl CountedCpus {
    fn of(scene: &Scene<'_>) -> Result<Self, Unavailable> {
        const ONLINE: &str = "/sys/devices/system/cpu/online";
        let mut cpus = scene.topology.online.clone();
        if cpus.is_empty() {
            let text = scene.root.text(ONLINE).unwrap_or_default();
            cpus = CpuSet::parse_list(text.trim()).unwrap_or_default();
        }
        if cpus.is_empty() {
            let seen = format!("no CPU is known to be online: {ONLINE} names none");
            let fix = scene.root.fix_for(ONLINE);
            return Err(Unavailable::new("counts of whole CPUs", seen, fix));
        }
        let nodes = scene.topology.nodes.iter().filter(|n| n.cpus.intersects(&cpus));
        let mut sums: Vec<_> = nodes.map(|n| (Instance::Node(n.os_index), n.cpus.and(&cpus))).collect();
        if sums.is_empty() {
            sums.push((Instance::Machine, cpus.clone()));
        }
        Ok(Self { cpus, sums })
    }

    /// Adds the series of a line, whose event may have another code on some CPUs.
    fn add(&self, counting: &mut Counting, line: &PerfLine, events: &dyn Fn(u32) -> PerfEvent) {
        let parts = |cpus: &CpuSet| -> Vec<_> {
            cpus.iter().map(|cpu| (CounterRequest { cpu, event: events(cpu) }, Factor::ONE)).collect()
        };
        if line.scope == Scope::Cpu {
            let metric = Arc::new(line.metric(Scope::Cpu));
            for cpu in self.cpus.iter() {
                counting.add(Series::new(&metric, Instance::Cpu(cpu)), parts(&CpuSet::range(cpu, cpu)));
            }
            return;
        }
        let scope = self.sums.first().map_or(line.scope, |(instance, _)| instance.scope());
        let metric = Arc::new(line.metric(scope));
        for (instance, cpus) in &self.sums {
            counting.add(Series::new(&metric, *instance), parts(cpus));
        }
    }
}

#[cfg(test)]
mod tests;
