//! Records in the registry, which describe the holders of the locks: bytes to values and back. Any user may write
//! anything into the file, so nothing here trusts it.

use crate::holding::{Holder, ProcessId};
use numakit_model::CpuSet;
use serde::{Deserialize, Serialize};

/// CPUs have numbers below this.
pub const MAX_CPUS: u32 = 16_384;
/// Bytes of a record.
pub const RECORD: usize = 4096;
/// Bytes before the first record.
pub const HEADER: usize = 4096;
/// The maximum number of holders.
pub const MAX_SLOTS: u64 = 1 << 14;
/// The first bytes of a registry; the number is the version of the format.
pub const MAGIC: &[u8; 16] = b"NUMAKIT CORES 1\n";
/// The first bytes of a registry of any version.
pub(crate) const ANY_VERSION: &[u8] = MAGIC.split_at(14).0;

const START: &[u8; 8] = b"HOLDING1";
const SUM: usize = 8;
const LENGTH: usize = 16;
const CPUS: usize = 32;
const TEXT: usize = CPUS + MAX_CPUS as usize / 8;
/// Offset of the mark that says that all holders are in this file.
pub(crate) const COMPLETE: usize = 32;
/// The mark.
pub(crate) const IS_COMPLETE: &[u8; 9] = b"COMPLETE\n";
/// Offset of the signature of the process that has the allocation lock.
pub(crate) const LOCK_OWNER: usize = 64;
const LOCK_OWNER_SIZE: usize = 512;
/// Longest stored name of a program, control group or job.
const MAX_NAME: usize = 400;

/// CPUs and their holder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HolderRecord {
    /// The CPUs.
    pub cpus: CpuSet,
    /// The holder.
    pub holder: Holder,
    /// Whether the reservation was released, after all descendants had ended.
    pub ended: bool,
}

/// The result of parsing a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// All bytes are zero.
    Empty,
    /// The bytes are something else, or a part of a record.
    Damaged,
    /// A record.
    Record(Box<HolderRecord>),
}

#[derive(Serialize, Deserialize)]
struct Text {
    #[serde(rename = "who")]
    holder: Holder,
    ended: bool,
}

impl HolderRecord {
    /// The bytes. Long names lose their end, long paths of control groups their start.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; RECORD];
        for cpu in self.cpus.iter().filter(|&cpu| cpu < MAX_CPUS) {
            bytes[CPUS + cpu as usize / 8] |= 1 << (cpu % 8);
        }
        let mut holder = self.holder.clone();
        holder.application = clean(&holder.application, false);
        holder.cgroup = holder.cgroup.map(|path| clean(&path, true));
        holder.job = holder.job.map(|job| clean(&job, false));
        let text = serde_json::to_vec(&Text { holder, ended: self.ended }).unwrap_or_default();
        let text = if text.len() > RECORD - TEXT { Vec::new() } else { text };
        bytes[TEXT..TEXT + text.len()].copy_from_slice(&text);
        bytes[LENGTH..LENGTH + 4].copy_from_slice(&(text.len() as u32).to_le_bytes());
        bytes[..8].copy_from_slice(START);
        seal(&mut bytes);
        bytes
    }
}

/// Puts the sum that belongs to the rest into the bytes of a record.
pub fn seal(bytes: &mut [u8]) {
    let sum = sum(bytes).to_le_bytes();
    if let Some(field) = bytes.get_mut(SUM..SUM + 8) {
        field.copy_from_slice(&sum);
    }
}

/// Parses the bytes of a record.
pub fn parse(bytes: &[u8]) -> Parsed {
    if bytes.iter().all(|&byte| byte == 0) {
        return Parsed::Empty;
    }
    match record(bytes) {
        Some(record) => Parsed::Record(Box::new(record)),
        None => Parsed::Damaged,
    }
}

fn record(bytes: &[u8]) -> Option<HolderRecord> {
    let stored = bytes.get(SUM..SUM + 8)?;
    if bytes.len() != RECORD || bytes[..8] != *START || stored != sum(bytes).to_le_bytes() {
        return None;
    }
    let length = u32::from_le_bytes(bytes.get(LENGTH..LENGTH + 4)?.try_into().ok()?) as usize;
    let text: Text = serde_json::from_slice(bytes.get(TEXT..TEXT.checked_add(length)?)?).ok()?;
    let parts = bytes[CPUS..TEXT].iter().enumerate().filter(|(_, part)| **part != 0);
    let held = |(at, part): (usize, &u8)| {
        let part = *part;
        (0..8).filter(move |bit| part >> bit & 1 == 1).map(move |bit| at as u32 * 8 + bit)
    };
    let cpus = parts.flat_map(held).collect();
    let mut holder = text.holder;
    // Other users print these fields on their terminals.
    holder.application = clean(&holder.application, false);
    holder.cgroup = holder.cgroup.map(|path| clean(&path, true));
    holder.job = holder.job.map(|job| clean(&job, false));
    Some(HolderRecord { cpus, holder, ended: text.ended })
}

/// Replaces control characters and shortens the text to its start or end.
fn clean(text: &str, keep_end: bool) -> String {
    let letters: Vec<char> = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    // Bytes in JSON.
    let mut room = MAX_NAME;
    let mut take = |c: &&char| {
        let cost = if matches!(c, '"' | '\\') { 2 } else { c.len_utf8() };
        let fits = cost <= room;
        room = room.saturating_sub(cost);
        fits
    };
    if keep_end {
        let mut end: Vec<char> = letters.iter().rev().take_while(&mut take).copied().collect();
        end.reverse();
        end.into_iter().collect()
    } else {
        letters.iter().take_while(&mut take).collect()
    }
}

/// A checksum of everything except itself: it detects damage, not malice.
fn sum(bytes: &[u8]) -> u64 {
    let rest = bytes.iter().enumerate().filter(|(at, _)| !(SUM..SUM + 8).contains(at));
    fnv(rest.map(|(_, &byte)| byte))
}

/// FNV-1a.
pub(crate) fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The signature of the process that has the allocation lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockOwner {
    /// The process.
    pub process: ProcessId,
    /// The namespace of its PID.
    pub pid_namespace: u64,
    /// The time of the acquisition (monotonic clock), which distinguishes it from a later one.
    pub since: u64,
    /// Its name.
    pub name: String,
}

impl LockOwner {
    /// The bytes in the header; zeros while the lock is free.
    pub fn bytes(owner: Option<&Self>) -> Vec<u8> {
        let text = owner.map_or_else(String::new, |owner| {
            let ProcessId { pid, start } = owner.process;
            format!("{pid} {start} {} {} {}\n", owner.pid_namespace, owner.since, clean(&owner.name, false))
        });
        let mut bytes = text.into_bytes();
        bytes.resize(LOCK_OWNER_SIZE, 0);
        bytes
    }
}

/// The header of a registry. It names the owner of the allocation lock, if there is one.
pub fn header(owner: Option<&LockOwner>) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    bytes[..MAGIC.len()].copy_from_slice(MAGIC);
    bytes[LOCK_OWNER..LOCK_OWNER + LOCK_OWNER_SIZE].copy_from_slice(&LockOwner::bytes(owner));
    bytes
}

/// The owner of the allocation lock, from the header of a registry.
pub fn lock_owner(header: &[u8]) -> Option<LockOwner> {
    let bytes = header.get(LOCK_OWNER..LOCK_OWNER + LOCK_OWNER_SIZE)?;
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut words = text.split('\n').next()?.splitn(5, ' ');
    let mut number = || words.next()?.parse::<u64>().ok();
    let (pid, start, pid_namespace, since) = (number()?, number()?, number()?, number()?);
    let process = ProcessId { pid: u32::try_from(pid).ok()?, start };
    Some(LockOwner { process, pid_namespace, since, name: clean(words.next()?, false) })
}

/// Whether the header says that all holders are in the file. If it does not, some may be in a file that had the name before.
pub(crate) fn is_complete(header: &[u8]) -> bool {
    header.starts_with(MAGIC) && header.get(COMPLETE..COMPLETE + IS_COMPLETE.len()) == Some(IS_COMPLETE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample() -> HolderRecord {
        let holder = Holder {
            application: "ep.C".to_owned(),
            user: 1000,
            since: Some(1_700_000_000_000_000_000),
            since_boot: 77,
            cores: Some(3),
            cgroup: Some("/user.slice".to_owned()),
            job: None,
            supervisor: Some(ProcessId { pid: 7, start: 78 }),
            program: None,
            pid_namespace: 4_026_531_836,
            tag: Some(77),
        };
        HolderRecord { cpus: "0-2,64,16383".parse().unwrap(), holder, ended: false }
    }

    #[test]
    fn bytes_parse_to_the_same_record() {
        let bytes = sample().bytes();
        assert_eq!(bytes.len(), RECORD);
        assert_eq!(parse(&bytes), Parsed::Record(Box::new(sample())));
        assert_eq!(parse(&[0; RECORD]), Parsed::Empty);
        assert_eq!(parse(&[]), Parsed::Empty);
    }

    #[test]
    fn every_damaged_byte_is_detected() {
        let bytes = sample().bytes();
        for at in 0..RECORD {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert_eq!(parse(&damaged), Parsed::Damaged, "byte {at}");
        }
        assert_eq!(parse(&bytes[..RECORD - 1]), Parsed::Damaged);
    }

    #[test]
    fn names_are_shortened_and_have_no_control_characters() {
        let mut record = sample();
        record.holder.application = "\u{1b}[2J\"é".repeat(1000);
        record.holder.cgroup = Some(format!("/{}/last", "x".repeat(5000)));
        record.holder.job = Some("\\".repeat(5000));
        let Parsed::Record(read) = parse(&record.bytes()) else { panic!("too long") };
        assert!(read.holder.application.starts_with("?[2J\"é?") && read.holder.application.len() <= MAX_NAME);
        assert!(read.holder.cgroup.unwrap().ends_with("x/last"));
        assert_eq!(read.cpus, record.cpus);
    }

    #[test]
    fn the_lock_owner_is_read_back() {
        let process = ProcessId { pid: 42, start: 7 };
        let one = LockOwner { process, pid_namespace: 9, since: u64::MAX, name: "numa run".to_owned() };
        assert_eq!(lock_owner(&header(Some(&one))), Some(one.clone()));
        assert_eq!(lock_owner(&header(None)), None);
        assert_eq!(lock_owner(MAGIC), None);
        assert_eq!(lock_owner(&[0; HEADER]), None);
        let long = LockOwner { name: "\u{1b}é".repeat(1000), ..one };
        assert!(lock_owner(&header(Some(&long))).unwrap().name.starts_with("?é?é"));
    }

    proptest! {
        #[test]
        fn any_set_survives(ids in prop::collection::vec(0..MAX_CPUS, 0..200), name in ".{0,600}") {
            let mut record = HolderRecord { cpus: ids.into_iter().collect(), ..sample() };
            record.holder.application = name;
            let Parsed::Record(read) = parse(&record.bytes()) else { panic!("unreadable") };
            prop_assert_eq!(read.cpus, record.cpus);
        }
    }

    #[test]
    fn the_library_knows_a_registry_by_the_same_bytes() {
        let source = include_str!("../../../native/place/cores.c");
        let text = std::str::from_utf8(MAGIC).unwrap().replace('\n', "\\n");
        assert!(source.contains(&format!("MAGIC[] = \"{text}\"")), "{text}");
    }
}
