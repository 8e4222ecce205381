//! The locks of the kernel and the records beside them, put together.

use crate::audit::Audit;
use crate::holding::{Holding, Seen, State};
use crate::open::read;
use crate::record::{HEADER, MOST_CPUS, MOST_SLOTS, Parsed, RECORD, Record, parse};
use numakit_model::CpuSet;
use numakit_sys::lock;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::time::Duration;

/// Byte N is CPU N. All these bytes are far behind the content, or have nothing to do with it: a
/// lock needs no content.
pub(crate) const CPUS: Range<u64> = 0..MOST_CPUS as u64;
/// Whoever has this byte chooses.
pub(crate) const TURN: Range<u64> = 1 << 40..(1 << 40) + 1;
/// Byte N from here on: record N is somebody's.
const SLOTS: u64 = 1 << 41;
/// So many records are read at once.
const TOGETHER: usize = 4;
/// A record that is being written, or CPUs that are being taken, are whole a moment later.
const TRIES: u32 = 4;
const MOMENT: Duration = Duration::from_millis(2);

/// The lock that makes a record valid.
pub(crate) fn slot_lock(slot: u64) -> Range<u64> {
    SLOTS + slot..SLOTS + slot + 1
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
    /// Records without a lock, by slot: their holders ended, or their locks were lost.
    pub stale: Vec<(u64, Record)>,
    /// Slots that somebody has, in rising order.
    pub slots: Vec<u64>,
}

impl Scan {
    /// All CPUs that are locked.
    pub fn held(&self) -> CpuSet {
        self.holdings.iter().fold(CpuSet::new(), |all, holding| all.or(&holding.cpus))
    }

    /// With what is held although its locks are gone, and what others bound.
    pub fn with(self, audit: Audit) -> Seen {
        let pids = pid_namespace();
        let mut holdings = self.holdings;
        holdings.extend(audit.lost.into_iter().map(|lost| lost.holding(pids)));
        holdings.sort_by_key(|holding| holding.cpus.first());
        Seen { holdings, bound: audit.bound }
    }
}

/// Looks. The file need not be writable.
pub(crate) fn scan(file: &File) -> io::Result<Scan> {
    let mut scan = once(file)?;
    for _ in 1..TRIES {
        if scan.holdings.iter().all(|holding| holding.state != State::Unknown) {
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
    let locked = lock::foreign(file.as_fd(), SLOTS..SLOTS + MOST_SLOTS)?;
    let slots: Vec<u64> = locked.into_iter().flatten().map(|byte| byte - SLOTS).collect();
    let records = records(file, slots.last().copied())?;
    let ranges = lock::foreign(file.as_fd(), CPUS)?;
    let mut rest: CpuSet = ranges.into_iter().flatten().map(|byte| byte as u32).collect();
    let (valid, stale): (Vec<_>, Vec<_>) =
        records.into_iter().partition(|(slot, _)| slots.binary_search(slot).is_ok());
    let pids = pid_namespace();
    let mut holdings = Vec::new();
    for (slot, record) in valid {
        let cpus = record.cpus.and(&rest);
        rest = rest.minus(&cpus);
        if !cpus.is_empty() {
            let same_pids = record.who.pids == pids;
            let ours = is_inherited(file, slot);
            holdings.push(Holding { cpus, state: State::Held, who: Some(record.who), same_pids, ours });
        }
    }
    if !rest.is_empty() {
        let state = State::Unknown;
        holdings.push(Holding { cpus: rest, state, who: None, same_pids: false, ours: false });
    }
    Ok(Scan { holdings, stale, slots })
}

/// All records that are whole, whether they are somebody's or not, by slot. Slots are used from
/// the lowest on: behind the last that is locked, the first that were never used are the end.
fn records(file: &File, last_locked: Option<u64>) -> io::Result<Vec<(u64, Record)>> {
    let written = file.metadata()?.len().saturating_sub(HEADER as u64).div_ceil(RECORD as u64);
    let mut bytes = [0; TOGETHER * RECORD];
    let mut records = Vec::new();
    for first in (0..written.min(MOST_SLOTS)).step_by(TOGETHER) {
        let length = read(file, &mut bytes, slot_place(first))?;
        let bytes = &bytes[..length];
        if last_locked.is_none_or(|last| last < first) && bytes.iter().all(|&byte| byte == 0) {
            break;
        }
        for (slot, bytes) in (first..).zip(bytes.chunks(RECORD)) {
            if let Parsed::Record(record) = parse(bytes) {
                records.push((slot, *record));
            }
        }
    }
    Ok(records)
}

/// Whether this process runs under this holder: then the descriptor that it inherited has the lock.
fn is_inherited(file: &File, slot: u64) -> bool {
    let Some(number) = std::env::var("NUMA_HOLD").ok().and_then(|text| text.parse().ok()) else {
        return false;
    };
    let same = |held: &File| {
        let (held, file) = (held.metadata().ok()?, file.metadata().ok()?);
        use std::os::unix::fs::MetadataExt;
        Some((held.dev(), held.ino()) == (file.dev(), file.ino()))
    };
    // Its own locks are in nobody's way, seen from the descriptor that has them.
    numakit_sys::file::inherited(number).is_some_and(|held| {
        same(&held) == Some(true) && lock::is_foreign(held.as_fd(), slot_lock(slot)).is_ok_and(|other| !other)
    })
}

/// The namespace of process numbers that this process is in.
pub(crate) fn pid_namespace() -> u64 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
}
