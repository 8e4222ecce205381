//! Memory that several processes share, such as the buffers of a database: samples of all of them decide about it together, and
//! each of them may have pages of it that the others never touched.

use crate::parts::{MappedRange, MovablePart, UsedPage};
use numakit_sys::SysRoot;
use numakit_sys::proc::TaskDir;
use numakit_sys::proc::numa_maps;
use std::collections::{BTreeMap, BTreeSet};

/// One piece of memory, mapped by several processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedMemory {
    /// The mappings. All samples are counted at the first one.
    members: Vec<MappedRange>,
}

/// Where a page is in memory that several processes share: the same for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SharedPage {
    memory: usize,
    offset: u64,
}

/// Where shared memory begins in one of its processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedPlace {
    memory: usize,
    start: u64,
}

impl SharedPlace {
    /// Which page of it is at an address of this process; none before its start.
    pub fn page(self, address: u64) -> Option<SharedPage> {
        Some(SharedPage { memory: self.memory, offset: address.checked_sub(self.start)? })
    }
}

impl SharedMemory {
    /// Of the mappings of all chosen processes that map it, at least one; that of the process with most samples comes first.
    pub fn new(mut members: Vec<MappedRange>, samples: &BTreeMap<u32, u64>) -> Self {
        let of = |process: u32| samples.get(&process).copied().unwrap_or(0);
        members.sort_by_key(|member| {
            (std::cmp::Reverse(of(member.process)), member.process, member.range.start)
        });
        Self { members }
    }

    /// The mapping at which samples are counted.
    pub fn first(&self) -> Option<&MappedRange> {
        self.members.first()
    }

    /// Whether a used page is of it.
    pub fn has(&self, used: &UsedPage) -> bool {
        self.member(used.process, used.page).is_some()
    }

    fn member(&self, process: u32, address: u64) -> Option<&MappedRange> {
        self.members.iter().find(|member| member.process == process && member.range.contains(&address))
    }
}

/// The memory of which more processes map a page than were chosen, and the rest. The kernel walks the page tables of a process for
/// the answer, so each is asked once.
pub fn of_strangers(root: &SysRoot, shared: Vec<SharedMemory>) -> (Vec<SharedMemory>, Vec<SharedMemory>) {
    let members =
        || shared.iter().enumerate().flat_map(|(at, of)| of.members.iter().map(move |one| (at, one)));
    let processes: BTreeSet<u32> = members().map(|(_, member)| member.process).collect();
    let mut strange = BTreeSet::new();
    for process in processes {
        let text = TaskDir::of(root, process).text("numa_maps").unwrap_or_default();
        for (at, member) in members().filter(|(_, member)| member.process == process) {
            let of_it = |line: &str| numa_maps::most_mappings(line.as_bytes(), member.range.start);
            if text.lines().find_map(of_it).is_some_and(|most| most > shared[at].members.len() as u64) {
                strange.insert(at);
            }
        }
    }
    let (of_strangers, own): (Vec<_>, Vec<_>) =
        shared.into_iter().enumerate().partition(|(at, _)| strange.contains(at));
    let without_number =
        |all: Vec<(usize, SharedMemory)>| all.into_iter().map(|(_, memory)| memory).collect();
    (without_number(of_strangers), without_number(own))
}

/// Counts the use of shared memory at its first mapping.
pub fn counted_at_first(shared: &[SharedMemory], used: UsedPage) -> UsedPage {
    let place =
        shared.iter().find_map(|memory| Some((memory.first()?, memory.member(used.process, used.page)?)));
    match place {
        Some((first, member)) => UsedPage {
            process: first.process,
            page: first.range.start + (used.page - member.range.start),
            ..used
        },
        None => used,
    }
}

/// A part as each process has it that shares its memory: itself first.
pub fn everywhere(shared: &[SharedMemory], part: MovablePart) -> Vec<MovablePart> {
    let start = part.ranges.first().map_or(0, |range| range.start);
    let memory = shared.iter().find_map(|memory| Some((memory, memory.member(part.process, start)?)));
    let Some((memory, own)) = memory else { return vec![part] };
    let own = own.clone();
    let elsewhere = |member: &MappedRange| {
        let moved = |address: u64| (member.range.start + (address - own.range.start)).min(member.range.end);
        let ranges = part.ranges.iter().map(|range| moved(range.start)..moved(range.end));
        let hot = part.hot.iter().map(|page| moved(*page)).collect();
        MovablePart { process: member.process, ranges: ranges.collect(), hot, ..part.clone() }
    };
    let others: Vec<MovablePart> =
        memory.members.iter().filter(|member| **member != own).map(elsewhere).collect();
    std::iter::once(part).chain(others).collect()
}

/// Where the shared memory at an address of a process begins; none if only this process maps it.
pub fn place_of(shared: &[SharedMemory], process: u32, address: u64) -> Option<SharedPlace> {
    shared.iter().enumerate().find_map(|(memory, of)| {
        let start = of.member(process, address)?.range.start;
        (of.members.len() > 1).then_some(SharedPlace { memory, start })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::PartPurpose;

    fn mapped(process: u32, start: u64) -> MappedRange {
        MappedRange { process, range: start..start + 0x8000 }
    }

    fn shared() -> Vec<SharedMemory> {
        let samples = BTreeMap::from([(1, 2), (3, 9)]);
        vec![SharedMemory::new(vec![mapped(1, 0x10000), mapped(2, 0x10000), mapped(3, 0x70000)], &samples)]
    }

    #[test]
    fn samples_of_all_are_counted_where_most_are() {
        let used = UsedPage { process: 1, page: 0x12000, node: 1, home: Some(0), object: 0, samples: 4 };
        let counted = counted_at_first(&shared(), used.clone());
        assert_eq!((counted.process, counted.page, counted.samples), (3, 0x72000, 4));
        let other = UsedPage { page: 0x1000, ..used };
        assert_eq!(counted_at_first(&shared(), other.clone()), other);
    }

    #[test]
    fn a_part_is_that_of_all_and_each_page_is_one() {
        let part = MovablePart {
            process: 3,
            ranges: std::iter::once(0x71000..0x79000).collect(),
            node: 1,
            name: "buffers".to_owned(),
            purpose: PartPurpose::UsedByNode,
            homes: BTreeMap::new(),
            samples: 9,
            near: 9,
            hot: vec![0x72000],
        };
        let all = everywhere(&shared(), part.clone());
        let ranges: Vec<(u32, u64, u64)> =
            all.iter().map(|part| (part.process, part.ranges[0].start, part.ranges[0].end)).collect();
        assert_eq!(ranges, [(3, 0x71000, 0x79000), (1, 0x11000, 0x18000), (2, 0x11000, 0x18000)]);
        assert_eq!(all[1].hot, [0x12000]);
        let page = |process, address| place_of(&shared(), process, address)?.page(address);
        assert_eq!(page(1, 0x12000), page(3, 0x72000));
        assert!(page(1, 0x12000).is_some() && page(1, 0x12000) != page(2, 0x13000));
        assert_eq!((page(4, 0x12000), page(1, 0x9000)), (None, None));
        let own = MovablePart { process: 9, ..part };
        assert_eq!(everywhere(&shared(), own.clone()), [own]);
    }

    #[test]
    fn memory_of_one_process_is_shared_with_none() {
        let alone = [SharedMemory::new(vec![mapped(1, 0x10000)], &BTreeMap::new())];
        assert_eq!(place_of(&alone, 1, 0x11000), None);
    }
}
