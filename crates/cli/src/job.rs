//! The threads of a running job, as /proc has them.

use anyhow::{Context, bail};
use numakit_model::CpuSet;
use numakit_placement::check::ObservedThread;
use numakit_sensors::task::stat;
use numakit_sys::SysRoot;
use std::collections::BTreeMap;

/// Variables by which launchers tell a process its rank.
const RANKS: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"];

/// What a process was started with.
pub fn environment(root: &SysRoot, pid: u32) -> anyhow::Result<Vec<(String, String)>> {
    if !root.exists(&format!("/proc/{pid}")) {
        bail!("--check: there is no process {pid} in {}; 'numa tasks' lists them", root.name());
    }
    let bytes = root.bytes(&format!("/proc/{pid}/environ")).with_context(|| {
        format!("--check: the environment of process {pid} cannot be read; run as its user or as root")
    })?;
    Ok(variables(&bytes))
}

fn variables(bytes: &[u8]) -> Vec<(String, String)> {
    let words = bytes.split(|&byte| byte == 0).map(String::from_utf8_lossy);
    let pair = |word: std::borrow::Cow<'_, str>| {
        word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
    };
    words.filter_map(pair).collect()
}

/// The threads of a process, in the order in which they came.
pub fn threads(root: &SysRoot, pid: u32, process: u32) -> anyhow::Result<Vec<ObservedThread>> {
    let folder = format!("/proc/{pid}/task");
    let names = root.list(&folder).with_context(|| format!("--check: process {pid} has ended"))?;
    let mut tids: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    tids.sort_unstable();
    let mut threads = Vec::new();
    for tid in tids {
        // A thread that ends meanwhile is no thread of the job any more.
        let Ok(status) = root.text(&format!("{folder}/{tid}/status")) else { continue };
        let field = |name: &str| {
            status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
        };
        let Some(list) = field("Cpus_allowed_list") else {
            bail!("--check: {folder}/{tid}/status says nothing of allowed CPUs; use a kernel with cpusets");
        };
        let allowed = CpuSet::parse_list(list)
            .with_context(|| format!("--check: {folder}/{tid}/status: Cpus_allowed_list is '{list}'"))?;
        let last = root.bytes(&format!("{folder}/{tid}/stat")).ok().and_then(|text| stat::parse(&text)?.cpu);
        let name = field("Name").unwrap_or_default().to_owned();
        threads.push(ObservedThread { process, thread: threads.len() as u32, tid, name, allowed, last });
    }
    Ok(threads)
}

/// The threads of all ranks that a process started, itself among them. A rank is a process
/// whose launcher told it so; what a rank starts has the same rank and is left out.
pub fn ranks(root: &SysRoot, pid: u32) -> anyhow::Result<Vec<ObservedThread>> {
    let mut family = vec![pid];
    let children = children(root);
    let mut at = 0;
    while let Some(parent) = family.get(at) {
        family.extend(children.get(parent).into_iter().flatten().filter(|child| **child != pid));
        at += 1;
    }
    let mut first: BTreeMap<u32, u32> = BTreeMap::new();
    for member in family {
        let Ok(bytes) = root.bytes(&format!("/proc/{member}/environ")) else { continue };
        let own = variables(&bytes);
        let rank = RANKS.iter().find_map(|name| own.iter().find(|(known, _)| known == name));
        if let Some(rank) = rank.and_then(|(_, value)| value.parse().ok()) {
            first.entry(rank).or_insert(member);
        }
    }
    if first.is_empty() {
        bail!(
            "--check: no process that {pid} started says its rank in {}; check each process by itself, or \
             give the process of the MPI launcher on this machine",
            RANKS.join(", ")
        );
    }
    let mut all = Vec::new();
    for (rank, member) in first {
        all.extend(threads(root, member, rank)?);
    }
    Ok(all)
}

/// All processes by their parents, in rising order.
fn children(root: &SysRoot) -> BTreeMap<u32, Vec<u32>> {
    let names = root.list("/proc").unwrap_or_default();
    let mut pids: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    pids.sort_unstable();
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for pid in pids {
        let text = root.bytes(&format!("/proc/{pid}/stat"));
        if let Some(stat) = text.ok().and_then(|text| stat::parse(&text)) {
            children.entry(stat.parent).or_default().push(pid);
        }
    }
    children
}
