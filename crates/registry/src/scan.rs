//! Reads the kernel's locks and the records in the file.

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

/// Byte N is CPU N. Locks are independent of the content of the file.
pub(crate) const CPUS: Range<u64> = 0..MAX_CPUS as u64;
/// The allocation lock.
pub(crate) const ALLOCATION_LOCK: Range<u64> = 1 << 40..(1 << 40) + 1;
/// Offset of the locks of records: byte N from here on is locked while record N is in use.
const SLOTS: u64 = 1 << 41;
/// Offset of the locks of identities: from here on there is a byte for each registry, on which all its holders have a shared
/// lock. Removed files are recognised by it.
const IDENTITIES: u64 = 1 << 42;
const RECORDS_PER_READ: usize = 4;
/// Until records and locks that are being written are complete.
const MAX_SCANS: u32 = 4;
const RETRY_DELAY: Duration = Duration::from_millis(2);

/// The lock that makes a record valid.
pub(crate) fn slot_lock(slot: u64) -> Range<u64> {
    SLOTS + slot..SLOTS + slot + 1
}

/// The lock that identifies a file of this registry.
pub(crate) fn identity_lock(identity: u64) -> Range<u64> {
    let byte = IDENTITIES + (identity & (IDENTITIES - 1));
    byte..byte + 1
}

/// Whether a lock that begins at `start` is the lock of this identity.
pub(crate) fn is_identity_lock(identity: u64, start: u64) -> bool {
    identity_lock(identity).start == start
}

/// The offset of a record.
pub(crate) fn record_offset(slot: u64) -> u64 {
    HEADER as u64 + slot * RECORD as u64
}

/// The contents of the file and its locks.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// Locked CPUs.
    pub holdings: Vec<Holding>,
    /// Records without all their locks, by slot: their holders ended, or their locks were lost.
    pub stale: Vec<(u64, HolderRecord)>,
    /// Locked slots, in ascending order.
    pub slots: Vec<u64>,
    /// A record is damaged: it may have been that of a program that runs without locks.
    pub is_damaged: bool,
    /// CPUs that are locked in files that were the registry before.
    pub in_removed_files: CpuSet,
}

impl Scan {
    /// All CPUs that are locked.
    pub fn held(&self) -> CpuSet {
        self.holdings.iter().fold(CpuSet::new(), |all, holding| all.or(&holding.cpus))
    }

    /// Adds the programs without locks and the processes that others bound.
    pub fn into_view(self, audit: Audit) -> RegistryView {
        let pid_namespace = pid_namespace();
        let mut holdings = self.holdings;
        holdings.extend(audit.lost.into_iter().map(|lost| lost.holding(pid_namespace)));
        let known = holdings.iter().fold(CpuSet::new(), |all, holding| all.or(&holding.cpus));
        let cpus = self.in_removed_files.minus(&known);
        if !cpus.is_empty() {
            let state = HolderState::InRemovedFile;
            holdings.push(Holding { cpus, state, holder: None, same_pid_namespace: false, is_own: false });
        }
        holdings.sort_by_key(|holding| holding.cpus.first());
        RegistryView { holdings, bound: audit.bound, warning: None }
    }
}

/// Scans the file, which need not be writable.
pub(crate) fn scan(file: &File) -> io::Result<Scan> {
    let mut scan = scan_once(file)?;
    for _ in 1..MAX_SCANS {
        if scan.holdings.iter().all(|holding| holding.state != HolderState::Unknown) {
            break;
        }
        std::thread::sleep(RETRY_DELAY);
        scan = scan_once(file)?;
    }
    Ok(scan)
}

fn scan_once(file: &File) -> io::Result<Scan> {
    // Records are read before CPUs: a holder writes its record before it locks CPUs, so a locked CPU without a record means
    // that the record is damaged or very new.
    let locked = lock::foreign(file.as_fd(), SLOTS..SLOTS + MAX_SLOTS)?;
    let slots: Vec<u64> = locked.into_iter().flatten().map(|byte| byte - SLOTS).collect();
    let Records { valid, is_damaged } = records(file)?;
    let ranges = lock::foreign(file.as_fd(), CPUS)?;
    let locked: CpuSet = ranges.into_iter().flatten().map(|byte| byte as u32).collect();
    let mut rest = locked.clone();
    let (mut holdings, mut stale) = (Vec::new(), Vec::new());
    for (slot, record) in valid {
        let is_locked = slots.binary_search(&slot).is_ok();
        // The holder may have been killed since the slots were read.
        if !is_locked || !record.cpus.is_subset(&locked) {
            stale.push((slot, record.clone()));
        }
        let cpus = record.cpus.and(&rest);
        if !is_locked || cpus.is_empty() {
            continue;
        }
        rest = rest.minus(&cpus);
        let same_pid_namespace = record.holder.pid_namespace == pid_namespace();
        let own = numakit_sys::tag::own();
        let is_own = own.is_some_and(|own| record.holder.tag == Some(own)) || is_inherited(file, slot);
        holdings.push(Holding {
            cpus,
            state: HolderState::Held,
            holder: Some(record.holder),
            same_pid_namespace,
            is_own,
        });
    }
    if !rest.is_empty() {
        let state = HolderState::Unknown;
        holdings.push(Holding { cpus: rest, state, holder: None, same_pid_namespace: false, is_own: false });
    }
    Ok(Scan { holdings, stale, slots, is_damaged, in_removed_files: CpuSet::new() })
}

/// The records in the file.
#[derive(Default)]
struct Records {
    /// All valid records, by slot.
    valid: Vec<(u64, HolderRecord)>,
    /// Whether a record is damaged.
    is_damaged: bool,
}

fn records(file: &File) -> io::Result<Records> {
    let written = file.metadata()?.len().saturating_sub(HEADER as u64).div_ceil(RECORD as u64);
    let mut bytes = [0; RECORDS_PER_READ * RECORD];
    let mut records = Records::default();
    for first in (0..written.min(MAX_SLOTS)).step_by(RECORDS_PER_READ) {
        let length = read(file, &mut bytes, record_offset(first))?;
        for (slot, bytes) in (first..).zip(bytes[..length].chunks(RECORD)) {
            match parse(bytes) {
                Parsed::Record(record) => records.valid.push((slot, *record)),
                Parsed::Damaged => records.is_damaged = true,
                Parsed::Empty => {}
            }
        }
    }
    Ok(records)
}

/// The record in one slot.
pub(crate) fn read_record(file: &File, slot: u64) -> io::Result<Parsed> {
    let mut bytes = [0; RECORD];
    let length = read(file, &mut bytes, record_offset(slot))?;
    Ok(parse(&bytes[..length]))
}

/// Whether this process belongs to the holder of a slot: then it has inherited the descriptor with the holder's lock.
fn is_inherited(file: &File, slot: u64) -> bool {
    let Some(number) = std::env::var("NUMA_HOLD").ok().and_then(|text| text.parse().ok()) else {
        return false;
    };
    // A descriptor does not see its own lock as one of others.
    numakit_sys::file::inherited(number).is_some_and(|held| {
        numakit_sys::file::is_same(&held, file).unwrap_or(false)
            && lock::is_foreign(held.as_fd(), slot_lock(slot)).is_ok_and(|other| !other)
    })
}

/// The PID namespace of this process.
pub(crate) fn pid_namespace() -> u64 {
    proc::pid_namespace(&SysRoot::host()).unwrap_or(0)
}
