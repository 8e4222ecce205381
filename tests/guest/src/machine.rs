//! From a shape to the arguments of QEMU.

use crate::shape::{Node, Shape};
use numakit_model::CpuSet;
use std::path::Path;

/// Kernel arguments. An oops ends the guest at once; a lockup does after a minute, for this
/// machine may be slow. The kernel is always in the memory of the same node. It does not test its
/// timer at the start, which fails where this machine is busy. What is slow when emulated is left out: the time of day comes
/// from the counter of the processor, which is one for all CPUs here, and nobody attacks through a cache. The rate of that counter
/// follows in kHz: a kernel that measures it where this machine is busy is wrong in one boot of twelve, by up to 55 times, and then
/// its seconds are as much shorter.
const KERNEL: &str = "console=ttyS0 quiet panic=-1 oops=panic softlockup_panic=1 watchdog_thresh=30 \
                      random.trust_cpu=on nokaslr no_timer_check mitigations=off tsc=reliable clocksource=tsc tsc_early_khz=";

/// What is booted, apart from the shape.
#[derive(Debug)]
pub struct Disk<'a> {
    /// The kernel.
    pub kernel: &'a Path,
    /// The first file system.
    pub initramfs: &'a Path,
    /// The image.
    pub image: &'a Path,
    /// The rate of the processor's counter, in kHz.
    pub counter_khz: u64,
    /// What the kernel is told beside the usual.
    pub options: &'a str,
}

/// Everything that the shape says. Backends of node memory come first, in order of the nodes: the
/// simulator tells addresses from that.
pub fn arguments(shape: &Shape, disk: &Disk<'_>) -> Vec<String> {
    let mut list = Vec::new();
    let mut add = |option: &str, value: String| list.extend([option.to_owned(), value]);
    let with_memory = || shape.nodes.iter().enumerate().filter(|(_, node)| node.memory_mib > 0);
    for (id, node) in with_memory() {
        add("-object", format!("memory-backend-ram,id=node{id},size={}M", node.memory_mib));
    }
    let attributes = !shape.latencies.is_empty();
    add("-machine", format!("pc,hmat={}", if attributes { "on" } else { "off" }));
    add("-cpu", processor(shape));
    let cpus = shape.cpus() as u64;
    let (packages, dies, threads) = (shape.packages, shape.dies, shape.threads);
    let parts = u64::from(packages) * u64::from(dies) * u64::from(threads);
    let cores = cpus.checked_div(parts).unwrap_or(cpus);
    add("-smp", format!("{cpus},sockets={packages},dies={dies},cores={cores},threads={threads}"));
    add("-m", format!("{}M", shape.memory_mib()));
    for (id, node) in shape.nodes.iter().enumerate() {
        add("-numa", numa_node(id, node, attributes));
    }
    for (from, row) in shape.distances.iter().enumerate() {
        for (to, value) in row.iter().enumerate().filter(|(to, _)| *to != from) {
            add("-numa", format!("dist,src={from},dst={to},val={value}"));
        }
    }
    for row in &shape.latencies {
        add("-numa", attribute(row.from, row.to, "latency", format!("latency={}", row.value)));
    }
    for row in &shape.bandwidths {
        add("-numa", attribute(row.from, row.to, "bandwidth", format!("bandwidth={}M", row.value)));
    }
    add("-kernel", disk.kernel.display().to_string());
    add("-initrd", disk.initramfs.display().to_string());
    add("-append", format!("{KERNEL}{} {}", disk.counter_khz, disk.options).trim_end().to_owned());
    add("-drive", format!("file={},if=none,id=disk,format=raw,cache=unsafe", escaped(disk.image)));
    add("-device", "nvme,drive=disk,serial=guest".to_owned());
    list.extend(["-nodefaults", "-no-user-config", "-no-reboot"].map(str::to_owned));
    list.extend(["-display", "none"].map(str::to_owned));
    list
}

/// Neighbours in number share a last-level cache, so where they are on different nodes there is
/// none but those of the cores. Linux knows threads of a core from what Intel's processors tell. An emulated `rep movsb` takes
/// as long for a byte as other instructions for eight, and a fifth level of page tables is walked for nothing.
fn processor(shape: &Shape) -> String {
    let in_order = shape.nodes.iter().flat_map(|node| node.cpus.iter()).is_sorted();
    let mut text = "max,-erms,-la57".to_owned();
    if !in_order {
        text += ",l3-cache=off";
    }
    if shape.threads > 1 {
        text += ",vendor=GenuineIntel";
    }
    text
}

fn numa_node(id: usize, node: &Node, attributes: bool) -> String {
    let mut text = format!("node,nodeid={id}");
    for (first, last) in ranges(&node.cpus) {
        text += &format!(",cpus={first}-{last}");
    }
    if node.memory_mib > 0 {
        text += &format!(",memdev=node{id}");
    }
    match node.initiator {
        Some(near) => text += &format!(",initiator={near}"),
        None if attributes && !node.cpus.is_empty() => text += &format!(",initiator={id}"),
        None => {}
    }
    text
}

fn attribute(from: usize, to: usize, kind: &str, value: String) -> String {
    format!("hmat-lb,initiator={from},target={to},hierarchy=memory,data-type=access-{kind},{value}")
}

fn ranges(cpus: &CpuSet) -> Vec<(u32, u32)> {
    let mut found: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus.iter() {
        match found.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => found.push((cpu, cpu)),
        }
    }
    found
}

/// A path inside an option: QEMU takes two commas for one.
pub fn escaped(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// The arguments of every shape, one a line; `UPDATE=1` writes the file again.
    #[test]
    fn every_shape_has_its_arguments() {
        let disk = Disk {
            kernel: Path::new("vmlinuz"),
            initramfs: Path::new("initramfs"),
            image: Path::new("a,b/image"),
            counter_khz: 2_445_419,
            options: "",
        };
        let mut text = String::new();
        for shape in Shape::all().unwrap() {
            text += &format!("# {}\n", shape.name);
            for pair in arguments(&shape, &disk).join(" ").split(" -") {
                text += &format!("-{}\n", pair.trim_start_matches('-'));
            }
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/machine/arguments.txt");
        if std::env::var_os("UPDATE").is_some() {
            fs::create_dir_all(Path::new(path).parent().unwrap()).unwrap();
            fs::write(path, &text).unwrap();
        }
        assert_eq!(text, fs::read_to_string(path).unwrap_or_default(), "write it with UPDATE=1");
    }
}
