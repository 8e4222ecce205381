//! When NUMA balancing is switched on for hint faults: for a few seconds at a time, since the kernel moves pages to their users
//! meanwhile. Samples of that time are left out, and pages that were moved are moved back.

use crate::hint_faults::{HintFaultCounts, HintFaults};
use crate::observation::PAGE;
use crate::residence;
use numakit_model::CpuSet;
use numakit_model::topology::Topology;
use numakit_sampling::MethodError;
use numakit_sampling::faults::PageTouch;
use numakit_sampling::hint_faults::HintFaultRings;
use numakit_sys::balancing::{BalancingError, BalancingFiles, BalancingSwitch};
use numakit_sys::pages::{MAX_QUERY, Pages};
use numakit_sys::proc::{TaskDir, maps};
use numakit_sys::{SysRoot, clock, migrate, user};
use std::collections::HashMap;
use std::sync::Arc;
use thiserror::Error;

/// The first time begins after this, in ns, and when the memory of the program did not grow for `STEADY`: pages that are
/// touched first meanwhile could not be moved back.
const FIRST: u64 = 1_000_000_000;
const STEADY: u64 = 500_000_000;
/// They last this long, and longer while further pages are seen, and begin this often.
const LENGTH: u64 = 3_000_000_000;
const MAX_LENGTH: u64 = 5 * LENGTH;
const EACH: u64 = 30_000_000_000;
/// Memory, or the number of pages with hint faults, has grown if at least one in this many of its bytes or pages is new.
const GROWN: u64 = 50;
/// Maximum number of pages whose nodes are remembered. Hint faults at other pages do not count, and other pages are not
/// moved back.
const MAX_PAGES: usize = 1 << 20;

/// Why there are no hint faults.
#[derive(Debug, Error)]
pub enum HintFaultError {
    /// Not root.
    #[error(
        "--hint-faults switches kernel.numa_balancing on for the whole machine, and this is user {0}; run it as root: sudo numa explain --hint-faults ..."
    )]
    User(u32),
    /// One node.
    #[error(
        "--hint-faults tells which nodes use a page, and this machine has {0} node with memory; leave the option out"
    )]
    Nodes(usize),
    /// It cannot be switched on.
    #[error("--hint-faults")]
    Balancing(#[from] BalancingError),
    /// Page faults cannot be seen.
    #[error(
        "--hint-faults needs the page faults of all CPUs; run it as root outside of containers, or leave the option out"
    )]
    Faults(#[from] MethodError),
}

/// A time for which the kernel's NUMA balancing is switched on.
#[derive(Debug)]
struct Window {
    rings: HintFaultRings,
    /// The nodes of all pages before the window, by process and number of the page.
    before: HashMap<(u32, u64), u32>,
    since: u64,
    /// How many of the pages have been seen, and the last time at which that number grew.
    seen: u64,
    grew: u64,
    /// The switch that restores balancing; `None` after it has restored it.
    switch: Option<BalancingSwitch>,
}

/// The windows, and the hint faults that were taken in them.
#[derive(Debug)]
pub struct HintWindows {
    files: BalancingFiles,
    cpus: CpuSet,
    node_of_cpu: HashMap<u32, u32>,
    pages: Option<Arc<dyn Pages>>,
    window: Option<Window>,
    next: u64,
    /// Bytes in memory when they were looked at last, and when that is done again.
    resident: u64,
    look: u64,
    /// The hint faults that were taken.
    pub faults: HintFaults,
    counts: HintFaultCounts,
}

impl HintWindows {
    /// Makes windows for an observation of this machine that starts now. Switches balancing on and off once: an error says
    /// why that is not possible.
    pub fn new(topology: &Topology) -> Result<Self, HintFaultError> {
        let nodes = topology.nodes.iter().filter(|node| node.memory_kb != Some(0)).count();
        if user::id() != 0 {
            return Err(HintFaultError::User(user::id()));
        }
        if nodes < 2 {
            return Err(HintFaultError::Nodes(nodes));
        }
        let cpus = topology.nodes.iter().flat_map(|node| node.cpus.iter().map(|cpu| (cpu, node.os_index)));
        let windows = Self {
            node_of_cpu: cpus.collect(),
            files: BalancingFiles::default(),
            cpus: topology.online.clone(),
            pages: SysRoot::host().pages().cloned(),
            window: None,
            next: clock::monotonic() + FIRST,
            resident: 0,
            look: 0,
            faults: HintFaults::default(),
            counts: HintFaultCounts::default(),
        };
        HintFaultRings::open(&windows.cpus)?;
        drop(windows.files.switch_on()?);
        Ok(windows)
    }

    /// Whether balancing is switched on now.
    pub fn is_open(&self) -> bool {
        self.window.is_some()
    }

    /// Switches balancing on or off when it is time for that.
    pub fn visit(&mut self, processes: &[u32], now: u64) -> Result<(), HintFaultError> {
        if self.window.is_some() {
            self.visit_open(processes, now);
            return Ok(());
        }
        if now < self.next || self.has_grown(processes, now) != Some(false) {
            return Ok(());
        }
        self.next = now + EACH;
        let before = self.places(processes);
        let rings = HintFaultRings::open(&self.cpus)?;
        let switch = self.files.switch_on()?;
        self.counts.was_on = switch.was_on;
        let since = clock::monotonic();
        self.window = Some(Window { rings, before, since, seen: 0, grew: since, switch: Some(switch) });
        Ok(())
    }

    /// Switches balancing off when it is time for that, or when the program touches more memory.
    fn visit_open(&mut self, processes: &[u32], now: u64) {
        let (pages, _) = self.faults.counts();
        let has_grown = self.has_grown(processes, now) == Some(true);
        let Some(window) = &mut self.window else { return };
        if pages > window.seen + window.seen / GROWN {
            (window.seen, window.grew) = (pages, now);
        }
        let is_over = now >= window.since + LENGTH && now >= window.grew + LENGTH / 2;
        if has_grown || is_over || now >= window.since + MAX_LENGTH {
            self.close();
            if has_grown {
                self.next = now;
            }
        }
    }

    /// Whether the memory of these processes has grown since it was looked at last; `None` if it is too early to say.
    fn has_grown(&mut self, processes: &[u32], now: u64) -> Option<bool> {
        if now < self.look {
            return None;
        }
        self.look = now + STEADY;
        let resident: u64 =
            processes.iter().filter_map(|process| residence::resident(&SysRoot::host(), *process)).sum();
        let before = std::mem::replace(&mut self.resident, resident);
        Some(resident > before + before / GROWN)
    }

    /// Takes the faults since the last call at pages that were in memory before. `object` finds the place of the object of a
    /// fault.
    pub fn drain(&mut self, object: &mut dyn FnMut(&PageTouch) -> Option<u32>) {
        let Self { window, faults, node_of_cpu, .. } = self;
        let Some(Window { rings, before, .. }) = window else { return };
        rings.drain(&mut |used| {
            let home = before.get(&(used.process, used.address / PAGE)).copied();
            if let (Some(home), Some(node)) = (home, used.cpu.and_then(|cpu| node_of_cpu.get(&cpu))) {
                faults.add(&used, *node, Some(home), || object(&used));
            }
        });
    }

    /// Restores the settings of the kernel. Also moves pages back to where they were, unless balancing was on before and
    /// moves them anyway.
    pub fn close(&mut self) {
        let Some(mut window) = self.window.take() else { return };
        drop(window.switch.take());
        self.counts.seconds += clock::monotonic().saturating_sub(window.since) as f64 / 1e9;
        self.counts.lost += window.rings.lost();
        let mut processes: HashMap<u32, Vec<u64>> = HashMap::new();
        for (process, page) in window.before.keys() {
            processes.entry(*process).or_default().push(page * PAGE);
        }
        for (process, pages) in processes {
            for batch in pages.chunks(MAX_QUERY) {
                let before = |page: &u64| window.before.get(&(process, page / PAGE)).copied();
                let Ok(now) = self.nodes(process, batch) else { break };
                let moved = batch.iter().zip(now).filter_map(|(page, now)| {
                    let before = before(page)?;
                    (now? != before).then_some((*page, before))
                });
                let moved: Vec<(u64, u32)> = moved.collect();
                self.counts.moved += moved.len() as u64;
                if !self.counts.was_on {
                    self.counts.moved_back += migrate::move_pages(process, &moved).unwrap_or(0);
                }
            }
        }
    }

    fn nodes(&self, process: u32, pages: &[u64]) -> std::io::Result<Vec<Option<u32>>> {
        match &self.pages {
            Some(kernel) => kernel.nodes(process, pages),
            None => Err(std::io::ErrorKind::Unsupported.into()),
        }
    }

    /// The nodes of the pages of processes that are in memory.
    fn places(&self, processes: &[u32]) -> HashMap<(u32, u64), u32> {
        let mut places = HashMap::new();
        let Some(kernel) = &self.pages else { return places };
        for &process in processes {
            let Ok(mut present) = kernel.open(process) else { continue };
            let text = TaskDir::of(&SysRoot::host(), process).text("maps").unwrap_or_default();
            for range in text.lines().filter_map(maps::addresses) {
                let runs = residence::runs(present.as_mut(), &range);
                let pages: Vec<u64> =
                    runs.iter().flat_map(|run| (run.start..run.end).step_by(PAGE as usize)).collect();
                for batch in pages.chunks(MAX_QUERY) {
                    if places.len() >= MAX_PAGES {
                        return places;
                    }
                    let nodes = kernel.nodes(process, batch).unwrap_or_default();
                    let known = batch
                        .iter()
                        .zip(nodes)
                        .filter_map(|(page, node)| Some(((process, page / PAGE), node?)));
                    places.extend(known);
                }
            }
        }
        places
    }

    /// What was seen so far.
    pub fn counts(&self) -> HintFaultCounts {
        let (pages, faults) = self.faults.counts();
        HintFaultCounts { pages, faults, ..self.counts }
    }
}
