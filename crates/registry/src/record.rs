//! What a holder writes beside its locks: bytes to values and back. Whoever may use the file may
//! write anything into it, so nothing here trusts it.

use crate::holding::{ProcessId, Who};
use numakit_model::CpuSet;
use serde::{Deserialize, Serialize};

/// CPUs have numbers below this.
pub const MAX_CPUS: u32 = 16_384;
/// Bytes of a record.
pub const RECORD: usize = 4096;
/// Bytes before the first record.
pub const HEADER: usize = 4096;
/// More programs cannot hold cores at once.
pub const MAX_SLOTS: u64 = 1 << 14;
/// What a registry begins with; the number is the version of its form.
pub const MAGIC: &[u8; 16] = b"NUMAKIT CORES 1\n";

const START: &[u8; 8] = b"HOLDING1";
const SUM: usize = 8;
const LENGTH: usize = 16;
const CPUS: usize = 32;
const TEXT: usize = CPUS + MAX_CPUS as usize / 8;
/// Where the header says that whoever holds cores is in this file.
pub(crate) const COMPLETE: usize = 32;
/// What it says.
pub(crate) const IS_COMPLETE: &[u8; 9] = b"COMPLETE\n";
/// Where the header says who chooses.
pub(crate) const CHOOSER: usize = 64;
const CHOOSER_SIZE: usize = 512;
/// Longest name of a program, control group or job that is kept.
const LONGEST: usize = 400;

/// Which CPUs are held and by whom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HolderRecord {
    /// The CPUs.
    pub cpus: CpuSet,
    /// The holder.
    pub who: Who,
    /// The holder and all its descendants ended in good order.
    pub ended: bool,
}

/// What the bytes of a record are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// Nothing was ever written.
    Empty,
    /// Something else, or not all of it.
    Damaged,
    /// A record.
    Record(Box<HolderRecord>),
}

#[derive(Serialize, Deserialize)]
struct Text {
    who: Who,
    ended: bool,
}

impl HolderRecord {
    /// The bytes. Names that are too long lose their end, paths of control groups their start.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; RECORD];
        for cpu in self.cpus.iter().filter(|&cpu| cpu < MAX_CPUS) {
            bytes[CPUS + cpu as usize / 8] |= 1 << (cpu % 8);
        }
        let mut who = self.who.clone();
        who.application = kept(&who.application, false);
        who.cgroup = who.cgroup.map(|path| kept(&path, true));
        who.job = who.job.map(|job| kept(&job, false));
        let text = serde_json::to_vec(&Text { who, ended: self.ended }).unwrap_or_default();
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
    if let Some(place) = bytes.get_mut(SUM..SUM + 8) {
        place.copy_from_slice(&sum);
    }
}

/// Reads the bytes of a record; what is missing at the end counts as zero.
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
    let mut who = text.who;
    // It is printed on the terminals of others.
    who.application = kept(&who.application, false);
    who.cgroup = who.cgroup.map(|path| kept(&path, true));
    who.job = who.job.map(|job| kept(&job, false));
    Some(HolderRecord { cpus, who, ended: text.ended })
}

/// Without control characters, and not longer than is kept.
fn kept(text: &str, its_end: bool) -> String {
    let clean: Vec<char> = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    // Escapes and letters of several bytes take room.
    let mut room = LONGEST;
    let mut take = |c: &&char| {
        let cost = if matches!(c, '"' | '\\') { 2 } else { c.len_utf8() };
        let fits = cost <= room;
        room = room.saturating_sub(cost);
        fits
    };
    if its_end {
        let mut end: Vec<char> = clean.iter().rev().take_while(&mut take).copied().collect();
        end.reverse();
        end.into_iter().collect()
    } else {
        clean.iter().take_while(&mut take).collect()
    }
}

/// A sum over everything but the sum itself: tells damage, not malice.
fn sum(bytes: &[u8]) -> u64 {
    let rest = bytes.iter().enumerate().filter(|(at, _)| !(SUM..SUM + 8).contains(at));
    fnv(rest.map(|(_, &byte)| byte))
}

/// FNV-1a.
pub(crate) fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Who chooses cores, as it says itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chooser {
    /// The process.
    pub process: ProcessId,
    /// The namespace in which its number is meant.
    pub pids: u64,
    /// Since when, by the monotonic clock: tells one turn from the next.
    pub since: u64,
    /// Its name.
    pub name: String,
}

impl Chooser {
    /// The bytes in the header; all of them 0 where nobody chooses.
    pub fn bytes(chooser: Option<&Self>) -> Vec<u8> {
        let text = chooser.map_or_else(String::new, |chooser| {
            let ProcessId { pid, start } = chooser.process;
            format!("{pid} {start} {} {} {}\n", chooser.pids, chooser.since, kept(&chooser.name, false))
        });
        let mut bytes = text.into_bytes();
        bytes.resize(CHOOSER_SIZE, 0);
        bytes
    }
}

/// The first bytes of a registry in which somebody or nobody chooses.
pub fn header(chooser: Option<&Chooser>) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    bytes[..MAGIC.len()].copy_from_slice(MAGIC);
    bytes[CHOOSER..CHOOSER + CHOOSER_SIZE].copy_from_slice(&Chooser::bytes(chooser));
    bytes
}

/// Who chooses, from the first bytes of a registry.
pub fn chooser(header: &[u8]) -> Option<Chooser> {
    let bytes = header.get(CHOOSER..CHOOSER + CHOOSER_SIZE)?;
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut words = text.split('\n').next()?.splitn(5, ' ');
    let mut number = || words.next()?.parse::<u64>().ok();
    let (pid, start, pids, since) = (number()?, number()?, number()?, number()?);
    let process = ProcessId { pid: u32::try_from(pid).ok()?, start };
    Some(Chooser { process, pids, since, name: kept(words.next()?, false) })
}

/// Whether whoever holds cores is in the file with this header: if not, some may be in one that had
/// the name before.
pub(crate) fn is_complete(header: &[u8]) -> bool {
    header.starts_with(MAGIC) && header.get(COMPLETE..COMPLETE + IS_COMPLETE.len()) == Some(IS_COMPLETE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample() -> HolderRecord {
        let who = Who {
            application: "ep.C".to_owned(),
            user: 1000,
            since: Some(1_700_000_000_000_000_000),
            since_boot: 77,
            cores: Some(3),
            cgroup: Some("/user.slice".to_owned()),
            job: None,
            keeper: Some(ProcessId { pid: 7, start: 78 }),
            program: None,
            pids: 4_026_531_836,
            tag: Some(77),
        };
        HolderRecord { cpus: "0-2,64,16383".parse().unwrap(), who, ended: false }
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = sample().bytes();
        assert_eq!(bytes.len(), RECORD);
        assert_eq!(parse(&bytes), Parsed::Record(Box::new(sample())));
        assert_eq!(parse(&[0; RECORD]), Parsed::Empty);
        assert_eq!(parse(&[]), Parsed::Empty);
    }

    #[test]
    fn every_damaged_bit_is_noticed() {
        let bytes = sample().bytes();
        for at in 0..RECORD {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert_eq!(parse(&damaged), Parsed::Damaged, "byte {at}");
        }
        assert_eq!(parse(&bytes[..RECORD - 1]), Parsed::Damaged);
    }

    #[test]
    fn names_are_cut_where_they_must_and_never_drive_a_terminal() {
        let mut record = sample();
        record.who.application = "\u{1b}[2J\"é".repeat(1000);
        record.who.cgroup = Some(format!("/{}/last", "x".repeat(5000)));
        record.who.job = Some("\\".repeat(5000));
        let Parsed::Record(read) = parse(&record.bytes()) else { panic!("too long") };
        assert!(read.who.application.starts_with("?[2J\"é?") && read.who.application.len() <= LONGEST);
        assert!(read.who.cgroup.unwrap().ends_with("x/last"));
        assert_eq!(read.cpus, record.cpus);
    }

    #[test]
    fn the_chooser_is_told() {
        let process = ProcessId { pid: 42, start: 7 };
        let one = Chooser { process, pids: 9, since: u64::MAX, name: "numa run".to_owned() };
        assert_eq!(chooser(&header(Some(&one))), Some(one.clone()));
        assert_eq!(chooser(&header(None)), None);
        assert_eq!(chooser(MAGIC), None);
        assert_eq!(chooser(&[0; HEADER]), None);
        let long = Chooser { name: "\u{1b}é".repeat(1000), ..one };
        assert!(chooser(&header(Some(&long))).unwrap().name.starts_with("?é?é"));
    }

    proptest! {
        #[test]
        fn any_set_survives(ids in prop::collection::vec(0..MAX_CPUS, 0..200), name in ".{0,600}") {
            let mut record = HolderRecord { cpus: ids.into_iter().collect(), ..sample() };
            record.who.application = name;
            let Parsed::Record(read) = parse(&record.bytes()) else { panic!("unreadable") };
            prop_assert_eq!(read.cpus, record.cpus);
        }
    }

    #[test]
    fn the_library_knows_a_registry_by_the_same_bytes() {
        let source = include_str!("../../../native/src/cores.c");
        let text = std::str::from_utf8(MAGIC).unwrap().replace('\n', "\\n");
        assert!(source.contains(&format!("MAGIC[] = \"{text}\"")), "{text}");
    }
}
