//! Devices by name.

use crate::amount::Amount;
use crate::assign::Assignment;
use crate::error::PlanError;
use crate::machine::Machine;
use crate::request::RANK;
use numakit_model::topology::Device;
use numakit_model::{CpuSet, Topology};

/// Maximum of devices that an error lists.
const SHOWN: usize = 8;

/// The names of the devices: one for all processes, or one for each.
pub(crate) fn of_processes(name: &str, processes: u64) -> Vec<String> {
    match name.contains(RANK) {
        true => (0..processes).map(|process| name.replace(RANK, &process.to_string())).collect(),
        false => vec![name.to_owned()],
    }
}

/// The device of that name and its node. An unambiguous part of the name is enough: `pci 0000:3b:00.0`,
/// `0000:3b:00.0`, `3b:00.0`, or the class. `gpu0`, `network1` and the like number the devices of a class from 0, in the
/// order of their addresses.
pub(crate) fn find<'a>(topology: &'a Topology, name: &str) -> Result<(&'a Device, u32), PlanError> {
    let devices = || topology.devices.iter();
    let wanted = name.trim().to_ascii_lowercase();
    let bare = |device: &Device| {
        let name = device.name.to_ascii_lowercase();
        name.strip_prefix("pci ").map(str::to_owned).unwrap_or(name)
    };
    let exact = |device: &&Device| device.name.eq_ignore_ascii_case(&wanted) || bare(device) == wanted;
    let short = |device: &&Device| bare(device).ends_with(&format!(":{wanted}"));
    let tries: [&dyn Fn(&&Device) -> bool; 2] = [&exact, &short];
    let found = tries.iter().map(|test| devices().filter(test).collect::<Vec<_>>());
    let found = found.into_iter().find(|found| !found.is_empty());
    let found = found.unwrap_or_else(|| by_class(topology, &wanted));
    match found.as_slice() {
        [device] => match device.node {
            Some(node) if topology.node(node).is_some() => Ok((device, node)),
            _ => Err(PlanError::machine(
                format!("the machine does not say which node device '{}' is at", device.name),
                "name its node in --nodes",
            )),
        },
        [] if topology.devices.is_empty() => Err(PlanError::machine(
            format!("there is no device '{name}': this machine shows no devices with their nodes"),
            "name its node in --nodes",
        )),
        [] => Err(PlanError::machine(
            format!("there is no device '{name}'"),
            format!("devices are {}", list(&devices().collect::<Vec<_>>())),
        )),
        several => Err(PlanError::machine(
            format!("'{name}' is {} devices", several.len()),
            format!("name one of {}", list(several)),
        )),
    }
}

/// The devices of a class, or the one of that number in it.
fn by_class<'a>(topology: &'a Topology, wanted: &str) -> Vec<&'a Device> {
    let word = wanted.trim_end_matches(|c: char| c.is_ascii_digit());
    let of = |class: &str| topology.devices.iter().filter(|d| d.class == class).collect::<Vec<_>>();
    let all = match word {
        "" => Vec::new(),
        // The display of a server rarely computes.
        "gpu" => [of("accelerator"), of("display")].into_iter().find(|d| !d.is_empty()).unwrap_or_default(),
        class => of(class),
    };
    match &wanted[word.len()..] {
        "" => all,
        number => number.parse().ok().and_then(|at: usize| all.get(at).copied()).into_iter().collect(),
    }
}

/// What is not met of a request for cores near devices, and the warning that says why; `None` if each process has all cores on
/// its device's node. `homes` are the positions of the devices' nodes, one for all processes or one for each; `free` are the
/// nodes with free cores.
pub(crate) fn far(
    machine: &Machine<'_>,
    name: &str,
    amount: Amount,
    assignment: &Assignment,
    homes: &[usize],
    free: &[(usize, u64)],
) -> Option<(String, String)> {
    let names = of_processes(name, amount.processes);
    let processes = assignment.spots.chunks(amount.cores as usize).enumerate();
    let mut found = processes.filter_map(|(process, spots)| {
        let name = names.get(process).or(names.first())?;
        let home = *homes.get(process).or(homes.first())?;
        let nodes = spots.iter().map(|&at| machine.spots[at as usize].node);
        let away: Vec<usize> = nodes.filter(|node| *node != home).collect();
        let near = if away.len() < spots.len() { "only in part near" } else { "not near" };
        let clause = format!("{near} {name}, which is on node {}", machine.id(home));
        let who = if amount.processes > 1 { format!("process {process} is ") } else { String::new() };
        (!away.is_empty()).then(|| {
            let why = away_from(machine, home, &away, spots.len(), free);
            (format!("{who}{clause}"), format!("{who}{clause}: {why}"))
        })
    });
    let (clause, warning) = found.next()?;
    Some(match found.count() {
        0 => (clause, warning),
        more => (format!("{clause}, and {more} more"), format!("{warning}; and {more} more processes")),
    })
}

fn away_from(
    machine: &Machine<'_>,
    home: usize,
    away: &[usize],
    cores: usize,
    free: &[(usize, u64)],
) -> String {
    let room = match free.iter().find(|(node, _)| *node == home).map_or(0, |(_, count)| *count) {
        0 => "no free core".to_owned(),
        1 => "1 free core".to_owned(),
        count => format!("{count} free cores"),
    };
    let nodes: CpuSet = away.iter().map(|&node| machine.id(node)).collect();
    let distance = away.iter().map(|&node| machine.distances.between(home, node)).max().unwrap_or_default();
    let (s, up_to) = if nodes.len() == 1 { ("", "") } else { ("s", "up to ") };
    format!(
        "that node has {room} for this plan, and {} of {cores} cores are on node{s} {nodes}, at distance {up_to}{distance}",
        away.len()
    )
}

fn list(devices: &[&Device]) -> String {
    let one = |device: &&Device| {
        let class = if device.class.is_empty() { String::new() } else { format!("{} ", device.class) };
        let node = device.node.map_or("no node".to_owned(), |node| format!("node {node}"));
        format!("{} ({class}at {node})", device.name)
    };
    let mut shown: Vec<String> = devices.iter().take(SHOWN).map(one).collect();
    if devices.len() > SHOWN {
        shown.push(format!("{} more", devices.len() - SHOWN));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(name: &str) -> String {
        let machine = "package:2 node:1 core:2 network@node1 network@node0 accelerator@node1";
        let mut topology = numakit_topology::synthetic::parse(machine).unwrap();
        topology.devices.push(Device { name: "eth0".into(), class: String::new(), node: Some(0) });
        topology.devices.push(Device { name: "lost".into(), class: String::new(), node: None });
        match find(&topology, name) {
            Ok((device, node)) => format!("{} {node}", device.name),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn devices_are_found_by_what_people_call_them() {
        assert_eq!(near("pci 0000:01:00.0"), "pci 0000:01:00.0 1");
        assert_eq!(near("0000:02:00.0"), "pci 0000:02:00.0 0");
        assert_eq!(near("03:00.0"), "pci 0000:03:00.0 1");
        assert_eq!(near("accelerator"), "pci 0000:03:00.0 1");
        assert_eq!(near("ETH0"), "eth0 0");
        assert_eq!(near("network0"), "pci 0000:01:00.0 1");
        assert_eq!(near("network1"), "pci 0000:02:00.0 0");
        assert_eq!([near("gpu"), near("gpu0"), near("GPU0")], ["pci 0000:03:00.0 1"; 3].map(str::to_owned));
    }

    #[test]
    fn others_are_refused_with_those_that_are_there() {
        assert_eq!(
            near("network"),
            "'network' is 2 devices; name one of pci 0000:01:00.0 (network at node 1), pci 0000:02:00.0 \
             (network at node 0)"
        );
        assert!(near("gpu1").starts_with("there is no device 'gpu1'; devices are pci 0000:01:00.0"));
        assert!(near("network99999999999999999999").starts_with("there is no device"));
        assert!(near("nvme0").starts_with("there is no device 'nvme0'; devices are pci 0000:01:00.0"));
        assert!(near("lost").contains("does not say which node device 'lost' is at"));
        let bare = numakit_topology::synthetic::parse("node:2 core:2").unwrap();
        assert!(find(&bare, "eth0").unwrap_err().to_string().contains("shows no devices"));
    }

    fn first_line(machine: &str, policy: &str, processes: u32, cores: &str) -> (Option<String>, Vec<String>) {
        let topology = numakit_topology::synthetic::parse(machine).unwrap();
        let request = crate::PlacementRequest {
            policy: policy.parse().unwrap(),
            processes,
            cores: Some(cores.parse().unwrap()),
            ..crate::PlacementRequest::default()
        };
        let taken = crate::Taken { explicit: "0-2".parse().unwrap(), ..crate::Taken::default() };
        let plan = crate::plan(&topology, &request, &taken).unwrap();
        (plan.unmet, plan.warnings)
    }

    #[test]
    fn what_is_not_near_its_device_is_said_first() {
        const ONE: &str = "package:2 node:1 core:4 accelerator@node0 accelerator@node1";
        assert_eq!(first_line(ONE, "near:gpu0", 1, "1"), (None, Vec::new()));
        // A process is not split if it fits elsewhere.
        let (unmet, warnings) = first_line(ONE, "near:gpu0", 1, "3");
        assert_eq!(unmet.as_deref(), Some("not near gpu0, which is on node 0"));
        assert_eq!(
            warnings,
            [
                "not near gpu0, which is on node 0: that node has 1 free core for this plan, and 3 of 3 cores are on \
                 node 1, at distance 20"
            ]
        );
        let (unmet, _) = first_line(ONE, "near:gpu0", 1, "5");
        assert_eq!(unmet.as_deref(), Some("only in part near gpu0, which is on node 0"));
        let (unmet, _) = first_line("package:2 node:1 core:3 accelerator@node0", "near:gpu0", 1, "2");
        assert_eq!(unmet.as_deref(), Some("not near gpu0, which is on node 0"));
        let (unmet, warnings) = first_line(ONE, "near:gpu{rank}", 2, "4");
        assert_eq!(unmet.as_deref(), Some("process 0 is only in part near gpu0, which is on node 0"));
        assert!(warnings[0].starts_with("process 0 is only in part near gpu0"), "{warnings:?}");
    }
}
