//! The locks of the kernel and the records beside them, put together.

use crate::audit::Audit;
use crate::holding::{HolderState, Holding, RegistryView};
use crate::open::read;
use crate::record::{HEADER, HolderRecord, MAX_CPUS, MAX_SLOTS, Parsed, RECORD, parse};
use numakit_model::CpuSet;
use numakit_sys::{SysRoot, lock, proc};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::time::Duration;

/// Byte N is CPU N. All these bytes are far behind the content, or have nothing to do with it: a
/// lock needs no content.
pub(crate) const CPUS: Range<u64> = 0..MAX_CPUS as u64;
/// Whoever has this byte chooses.
pub(crate) const TURN: Range<u64> = 1 << 40..(1 << 40) + 1;
/// Byte N from here on: record N is somebody's.
const SLOTS: u64 = 1 << 41;
/// From here on there is a byte for each registry, which all its holders lock together: files that
/// lost their name are told by it.
const MARKS: u64 = 1 << 42;
/// So many records are read at once.
const TOGETHER: usize = 4;
/// A record that is being written, or CPUs that are being taken, are whole a moment later.
const TRIES: u32 = 4;
const MOMENT: Duration = Duration::from_millis(2);

/// The lock that makes a record valid.
pub(crate) fn slot_lock(slot: u64) -> Range<u64> {
    SLOTS + slot..SLOTS + slot + 1
}

/// The lock that tells a file of this identity.
pub(crate) fn mark(identity: u64) -> Range<u64> {
    let byte = MARKS + (identity & (MARKS - 1));
    byte..byte + 1
}

/// Whether a lock that begins here is that one.
pub(crate) fn is_marked(identity: u64, start: u64) -> bool {
    mark(identity).start == start
}

/// Where a record is.
pub(crate) fn slot_place(slot: u64) -> u64 {
    HEADER as u64 + slot * RECORD as u64
}

/// What the file and the kernel tell.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// What is locked.
    pub holdings: Vec<Holding>,
    /// Records without all their locks, by slot: their holders ended, or their locks were lost.
    pub stale: Vec<(u64, HolderRecord)>,
    /// Slots that somebody has, in rising order.
    pub slots: Vec<u64>,
    /// A record is no record any more: it may have told of a program that runs without locks.
    pub is_damaged: bool,
    /// What is locked in files that were the registry before.
    pub elsewhere: CpuSet,
}

impl Scan {
    /// All CPUs that are locked.
    pub fn held(&self) -> CpuSet {
        self.holdings.iter().fold(CpuSet::new(), |all, holding| all.or(&holding.cpus))
    }

    /// With what is held although its locks are gone, and what others bound.
    pub fn with(self, audit: Audit) -> RegistryView {
        let pids = pid_namespace();
        let mut holdings = self.holdings;
        holdings.extend(audit.lost.into_iter().map(|lost| lost.holding(pids)));
        let known = holdings.iter().fold(CpuSet::new(), |all, holding| all.or(&holding.cpus));
        let cpus = self.elsewhere.minus(&known);
        if !cpus.is_empty() {
            let state = HolderState::Elsewhere;
            holdings.push(Holding { cpus, state, who: None, same_pids: false, ours: false });
        }
        holdings.sort_by_key(|holding| holding.cpus.first());
        RegistryView { holdings, bound: audit.bound, warning: None }
    }
}

/// Looks. The file need not be writable.
pub(crate) fn scan(file: &File) -> io::Result<Scan> {
    let mut scan = once(file)?;
    for _ in 1..TRIES {
        if scan.holdings.iter().all(|holding| holding.state != HolderState::Unknown) {
            break;
        }
        std::thread::sleep(MOMENT);
        scan = once(file)?;
    }
    Ok(scan)
}

fn once(file: &File) -> io::Result<Scan> {
    // First the records, then the CPUs: who takes cores writes the record first, so what is locked
    // without one is damaged, or came just now.
    let locked = lock::foreign(file.as_fd(), SLOTS..SLOTS + MAX_SLOTS)?;
    let slots: Vec<u64> = locked.into_iter().flatten().map(|byte| byte - SLOTS).collect();
    let Records { whole, is_damaged } = records(file)?;
    let ranges = lock::foreign(file.as_fd(), CPUS)?;
    let locked: CpuSet = ranges.into_iter().flatten().map(|byte| byte as u32).collect();
    let mut rest = locked.clone();
    let (mut holdings, mut stale) = (Vec::new(), Vec::new());
    for (slot, record) in whole {
        let is_locked = slots.binary_search(&slot).is_ok();
        // Its holder may have been killed since the first look.
        if !is_locked || !record.cpus.is_subset(&locked) {
            stale.push((slot, record.clone()));
        }
        let cpus = record.cpus.and(&rest);
        if !is_locked || cpus.is_empty() {
            continue;
        }
        rest = rest.minus(&cpus);
        let same_pids = record.who.pids == pid_namespace();
        let own = numakit_sys::tag::own();
        let ours = own.is_some_and(|own| record.who.tag == Some(own)) || is_inherited(file, slot);
        holdings.push(Holding { cpus, state: HolderState::Held, who: Some(record.who), same_pids, ours });
    }
    if !rest.is_empty() {
        let state = HolderState::Unknown;
        holdings.push(Holding { cpus: rest, state, who: None, same_pids: false, ours: false });
    }
    Ok(Scan { holdings, stale, slots, is_damaged, elsewhere: CpuSet::new() })
}

/// What is written where records are.
#[derive(Default)]
struct Records {
    /// All that are whole, whether they are somebody's or not, by slot.
    whole: Vec<(u64, HolderRecord)>,
    /// There is something else as well.
    is_damaged: bool,
}

fn records(file: &File) -> io::Result<Records> {
    let written = file.metadata()?.len().saturating_sub(HEADER as u64).div_ceil(RECORD as u64);
    let mut bytes = [0; TOGETHER * RECORD];
    let mut records = Records::default();
    for first in (0..written.min(MAX_SLOTS)).step_by(TOGETHER) {
        let length = read(file, &mut bytes, slot_place(first))?;
        for (slot, bytes) in (first..).zip(bytes[..length].chunks(RECORD)) {
            match parse(bytes) {
                Parsed::Record(record) => records.whole.push((slot, *record)),
                Parsed::Damaged => records.is_damaged = true,
                Parsed::Empty => {}
            }
        }
    }
    Ok(records)
}

/// What is written in one place.
pub(crate) fn record_at(file: &File, slot: u64) -> io::Result<Parsed> {
    let mut bytes = [0; RECORD];
    let length = read(file, &mut bytes, slot_place(slot))?;
    Ok(parse(&bytes[..length]))
}

/// Whether this process runs under this holder: then the descriptor that it inherited has the lock.
fn is_inherited(file: &File, slot: u64) -> bool {
    let Some(number) = std::env::var("NUMA_HOLD").ok().and_then(|text| text.parse().ok()) else {
        return false;
    };
    // Its own locks are in nobody's way, seen from the descriptor that has them.
    numakit_sys::file::inherited(number).is_some_and(|held| {
        numakit_sys::file::is_same(&held, file).unwrap_or(false)
            && lock::is_foreign(held.as_fd(), slot_lock(slot)).is_ok_and(|other| !other)
    })
}

/// The namespace of process numbers that this process is in.
pub(crate) fn pid_namespace() -> u64 {
    proc::pid_namespace(&SysRoot::host()).unwrap_or(0)
}
