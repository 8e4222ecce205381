use super::*;
use crate::file_use::{FileUse, WantedFile};
use crate::identity::{ObjectIdentity, ObjectOwner};
use crate::objects::{ObjectId, ObjectOrigin, ObjectRow, ObjectTimeline};
use crate::traffic::TrafficCell;
use numakit_sampling::StackPiece;
use numakit_sampling::operand::AddressSpace;
use numakit_sampling::process::{ProcessMapping, parse_mappings};
use numakit_sys::registers::UserRegisters;
use std::ops::Range;
use std::sync::Arc;
use std::sync::OnceLock;

const CODE: u64 = 0x1000;
/// Behind this many `nop`s: `mov rax, [rbx]`, `nop`, `jmp` back to the load.
const LOAD: u64 = CODE + 64;
const LOOP: [u8; 6] = [0x48, 0x8b, 0x03, 0x90, 0xeb, 0xfa];

/// A process with code, and two mappings of 1 MiB whose pages are on nodes 0 and 1.
#[derive(Default)]
struct Machine {
    code: Vec<u8>,
    asked: Vec<u64>,
    changed: Vec<Range<u64>>,
    is_over: bool,
}

impl AddressSpace for Machine {
    fn read(&self, _: u64, _: &mut [u8]) -> bool {
        false
    }

    fn code(&self, address: u64, into: &mut [u8]) -> usize {
        let code = address.checked_sub(CODE).and_then(|at| self.code.get(at as usize..)).unwrap_or(&[]);
        let count = code.len().min(into.len());
        into[..count].copy_from_slice(&code[..count]);
        count
    }
}

const FIRST: u64 = 0x10_0000;
const SECOND: u64 = 0x20_0000;
const SIZE: u64 = 0x10_0000;

/// The two mappings.
fn objects() -> ObjectTimeline {
    let mut timeline = ObjectTimeline::new(10);
    for start in [FIRST, SECOND] {
        let origin = ObjectOrigin::Mapping { name: format!("at {start:#x}") };
        timeline.add(start..start + SIZE, 0, &origin).unwrap();
    }
    timeline
}

impl ObservedProcesses for Machine {
    fn place(&mut self, process: u32) -> u32 {
        process - 7
    }

    fn space(&mut self, _: &Sample) -> &dyn AddressSpace {
        self
    }

    fn mapping(&mut self, _: u32, address: u64) -> Option<&ProcessMapping> {
        static MAPPED: OnceLock<Vec<ProcessMapping>> = OnceLock::new();
        let maps = format!("{FIRST:x}-{SECOND:x} r--s 00000000 fe:01 12 /models/a\n");
        MAPPED.get_or_init(|| parse_mappings(&maps)).iter().find(|mapping| mapping.range.contains(&address))
    }

    fn changed_code(&mut self, _: u32) -> Vec<Range<u64>> {
        std::mem::take(&mut self.changed)
    }

    fn object(&mut self, _: &Sample, address: u64) -> Option<FoundObject> {
        let place = [FIRST, SECOND].iter().position(|start| (*start..start + SIZE).contains(&address))?;
        let (id, _) = objects().rows().nth(place)?;
        Some(FoundObject { id, found_as: FoundAs::Object, kind: MemoryKind::Anonymous })
    }

    fn object_at(&mut self, _: u32, address: u64, _: u64) -> Option<ObjectId> {
        Some(self.object(&Sample::default(), address)?.id)
    }

    fn call_chain(&mut self, _: u32, registers: &UserRegisters, _: &StackPiece) -> Arc<[u64]> {
        [registers.ip, 0x40].into()
    }

    fn identity(&mut self, _: u32, object: ObjectId) -> Option<ObjectIdentity> {
        let owner = ObjectOwner::File(((0, 1), 9));
        let origin = self.row(0, object)?.origin.clone();
        // The second mapping is of each process alone.
        (object == objects().rows().next()?.0).then_some(ObjectIdentity { owner, origin })
    }

    fn object_name(&mut self, process: u32, object: ObjectId) -> Option<String> {
        Some(self.row(process, object)?.origin.to_string())
    }

    fn row(&self, _: u32, object: ObjectId) -> Option<&ObjectRow> {
        static OBJECTS: OnceLock<ObjectTimeline> = OnceLock::new();
        OBJECTS.get_or_init(objects).row(object)
    }

    fn thread_base(&mut self, sample: &Sample) -> Option<u64> {
        (sample.thread == 1).then_some(SECOND + 0x100)
    }

    fn nodes(&mut self, _: u32, pages: &[u64]) -> Vec<Option<u32>> {
        self.asked.extend(pages);
        pages
            .iter()
            .map(|page| {
                [FIRST, SECOND]
                    .iter()
                    .position(|start| (*start..start + SIZE).contains(page))
                    .map(|place| place as u32)
            })
            .collect()
    }

    fn node_of_cpu(&self, cpu: u32) -> Option<u32> {
        Some(cpu / 4)
    }

    fn has_ended(&self, _: u32) -> bool {
        self.is_over
    }
}

fn machine(code: &[u8]) -> Machine {
    Machine { code: [&[0x90; 64], code].concat(), ..Machine::default() }
}

/// Takes a sample of a thread on a CPU, behind the load, with rbx as given.
fn sample(collector: &mut Collector, machine: &mut Machine, thread: u32, cpu: u32, time: u64, rbx: u64) {
    sample_of(9, collector, machine, (thread, cpu), time, rbx);
}

/// The same of a process.
fn sample_of(
    process: u32,
    collector: &mut Collector,
    machine: &mut Machine,
    (thread, cpu): (u32, u32),
    time: u64,
    rbx: u64,
) {
    let mut registers = UserRegisters { ip: LOAD + 3, ..UserRegisters::default() };
    registers.general[3] = rbx;
    if collector.landing == Landing::BlockStart {
        registers.ip = LOAD;
    }
    let taken = Sample { process, thread, time, cpu: Some(cpu), weight: 5, registers, ..Sample::default() };
    collector.take(&taken, machine);
}

#[test]
fn a_sample_becomes_an_access_with_mapping_and_node() {
    let (mut collector, mut machine) = (Collector::new(Landing::Behind), machine(&LOOP));
    for (thread, cpu, time, rbx) in
        [(1, 0, 100, FIRST + 8), (2, 4, 130, SECOND), (1, 1, 200, FIRST + 16), (1, 0, 300, 0x99_0000)]
    {
        sample(&mut collector, &mut machine, thread, cpu, time, rbx);
    }
    collector.locate(&mut machine);
    let found: Vec<_> = collector
        .observations
        .iter()
        .map(|at| {
            (at.thread, at.time, at.cpu_node.unwrap(), at.access().unwrap().object, at.access().unwrap().home)
        })
        .collect();
    assert_eq!(
        found,
        [(0, 0, 0, 0, Some(0)), (1, 30, 1, 1, Some(1)), (0, 100, 0, 0, Some(0)), (0, 200, 0, 2, None)]
    );
    let objects = collector.sampled_objects(&mut machine);
    let names: Vec<_> = objects.iter().map(|object| object.name.as_str()).collect();
    assert_eq!(names, ["at 0x100000", "at 0x200000", "no longer mapped"]);
    assert_eq!(machine.asked, [FIRST, SECOND, 0x99_0000]);
    assert!(collector.observations.iter().all(|at| at.instruction == LOAD));
}

#[test]
fn what_several_processes_share_is_one_object() {
    let (mut collector, mut machine) = (Collector::new(Landing::Behind), machine(&LOOP));
    for (process, thread) in [(8, 1), (9, 2), (9, 3), (10, 4)] {
        sample_of(process, &mut collector, &mut machine, (thread, 0), 0, FIRST + 8);
        sample_of(process, &mut collector, &mut machine, (thread, 0), 1, SECOND + 8);
    }
    let places: Vec<u32> = collector.observations.iter().map(|at| at.access().unwrap().object).collect();
    assert_eq!(places, [0, 1, 0, 2, 0, 2, 0, 3]);
    // What a process had before it executed another program stays its own.
    collector.forget(9, &mut machine);
    sample_of(9, &mut collector, &mut machine, (2, 0), 2, FIRST);
    let objects = collector.sampled_objects(&mut machine);
    let found: Vec<_> = objects.iter().map(|of| (of.pid, of.processes.as_slice(), of.pieces)).collect();
    assert_eq!(found, [(8, &[8, 9, 10][..], 3), (8, &[8], 1), (9, &[9], 1), (10, &[10], 1)]);
    // The process that executed another program since has the first object once, too.
    assert_eq!(objects[0].size, 3 * SIZE, "each has a mapping of its own");
    assert_eq!(collector.listed(0).map(|(process, _)| process).collect::<Vec<_>>(), [8, 10, 9]);
}

#[test]
fn block_samples_give_traffic_and_no_operand() {
    let (mut collector, mut machine) = (Collector::new(Landing::BlockStart), machine(&LOOP));
    for time in [0, 10, 20] {
        sample(&mut collector, &mut machine, 1, 0, time, SECOND + time);
    }
    sample(&mut collector, &mut machine, 2, 4, 30, SECOND);
    collector.locate(&mut machine);
    let traffic = collector.traffic(CacheSizes::default()).unwrap();
    let cell = |cpu_node, memory_node, pages| TrafficCell { cpu_node, memory_node, pages };
    assert_eq!(traffic.pages, [cell(0, 1, 1), cell(1, 1, 1)]);
    assert!(collector.observations.iter().all(|at| at.waited == Waited::Unknown));
    // The memory of a process that has ended tells nothing.
    machine.is_over = true;
    sample(&mut collector, &mut machine, 2, 4, 40, FIRST);
    collector.locate(&mut machine);
    assert_eq!(collector.traffic(CacheSizes::default()), Some(traffic));
}

#[test]
fn each_thread_has_its_turn_where_samples_are_skipped() {
    let (mut collector, mut machine) = (Collector::new(Landing::Behind), machine(&LOOP));
    collector.set_pace(4);
    for time in 0..400 {
        for thread in 0..8 {
            sample(&mut collector, &mut machine, thread, thread, time, FIRST);
        }
    }
    let of = |thread| collector.observations.iter().filter(|at| at.thread == thread).count();
    assert!((0..8).all(|thread| of(thread) == 100), "{:?}", (0..8).map(of).collect::<Vec<_>>());
}

#[test]
fn memory_is_bounded_and_no_weight_is_lost() {
    const LIMIT: usize = 1000;
    let (mut collector, mut machine) = (Collector::with_limit(Landing::Behind, LIMIT), machine(&LOOP));
    let count = LIMIT as u64 * 3;
    for time in 0..count {
        sample(&mut collector, &mut machine, 1, 0, time, FIRST);
    }
    let weight: u64 = collector.observations.iter().map(|at| at.weight).sum();
    assert!(collector.observations.len() < LIMIT);
    assert_eq!(collector.thinned + collector.observations.len() as u64, count);
    assert!(weight.abs_diff(count * 5) <= 5 * 8, "{weight}");
}

#[test]
fn what_a_processor_measured_itself_is_taken_as_it_is() {
    let (mut collector, mut machine) = (Collector::new(Landing::Other), machine(&[]));
    let measured = MeasuredAccess { instruction: 0x7000, address: SECOND + 4, latency: 0, source: 0 };
    let taken = Sample { process: 9, thread: 1, cpu: Some(0), measured: Some(measured), ..Sample::default() };
    collector.take(&taken, &mut machine);
    collector.locate(&mut machine);
    let at = &collector.observations[0];
    assert_eq!((at.instruction, at.access().unwrap().home), (0x7000, Some(1)));
}

#[test]
fn code_that_became_another_one_is_read_again() {
    let (mut collector, mut machine) = (Collector::new(Landing::Behind), machine(&LOOP));
    sample(&mut collector, &mut machine, 1, 0, 0, FIRST);
    // `nop`s in place of the load.
    machine.code[64..67].fill(0x90);
    sample(&mut collector, &mut machine, 1, 0, 1, FIRST);
    machine.changed.push(CODE..CODE + 0x1000);
    sample(&mut collector, &mut machine, 1, 0, 2, FIRST);
    let is_memory: Vec<bool> = collector.observations.iter().map(|at| at.access().is_some()).collect();
    assert_eq!(is_memory, [true, true, false]);
}

#[test]
fn for_the_use_of_files_samples_are_counted_and_not_kept() {
    let wanted = || WantedFile { device: (0xfe, 1), inode: 12, path: "/models/a".to_owned() };
    for landing in [Landing::Behind, Landing::BlockStart] {
        let (collector, mut machine) = (Collector::new(landing), machine(&LOOP));
        let mut collector = collector.for_files(FileUses::of(vec![wanted()]));
        for (cpu, rbx) in [(0, FIRST + 0x2008), (4, FIRST + 0x2010), (4, SECOND)] {
            sample(&mut collector, &mut machine, 1, cpu, 100, rbx);
        }
        collector.locate(&mut machine);
        let files = collector.files.as_ref().unwrap();
        let used = |node| FileUse { file: 0, offset: 0x2000, node, home: Some(0) };
        assert_eq!(files.samples, BTreeMap::from([(used(0), 1), (used(1), 1)]), "{landing:?}");
        assert_eq!((files.others, collector.observations.len()), (1, 0), "{landing:?}");
    }
}
