use super::find::{Madt, address, candidate, chain, is_opteron, madt};
use super::registers::{CONTROL, FIRST, FIRST_COUNTER, NEXT, RUN, Registers, STATUS, STOP};
use super::scripted::{AccessLog, CardAccess, Scripted};
use super::*;
use crate::testing::{self, read};
use crate::{Probe, Selection};
use numakit_model::{Fix, Topology, Unavailable};
use numakit_sys::SysRoot;
use numakit_sys::root::FileTree;
use numakit_testing::cards::{self, counter_value};
use numakit_testing::machines;

const RECEIVED: usize = 0x3368;

fn sensor(cards: &[Scripted], acknowledges: bool) -> NumaConnect2 {
    let card = |c: &Scripted| Card::new(c.number, Box::new(c.clone()), acknowledges);
    NumaConnect2::of(cards.iter().map(card).collect())
}

fn scripted(count: u32) -> (Vec<Scripted>, AccessLog) {
    let log = AccessLog::default();
    ((0..count).map(|number| Scripted::new(number, &log)).collect(), log)
}

fn accesses(log: &AccessLog) -> Vec<CardAccess> {
    std::mem::take(&mut *log.lock().unwrap())
}

#[test]
fn all_cards_are_stopped_then_read_then_run() {
    let (cards, log) = scripted(3);
    let mut sensor = sensor(&cards, false);
    assert_eq!(accesses(&log), [], "finding the series sends no command");
    cards[1].count(RECEIVED, 0x1234_5678_9abc);
    cards[2].count(RECEIVED, 0xffff_0000_0000_0007);
    let values = read(&mut sensor);
    assert_eq!(values.len(), 360);
    assert_eq!(values["numaconnect2.n2CachelinesRecv@card1"], Some(0x1234_5678_9abc));
    assert_eq!(values["numaconnect2.n2CachelinesRecv@card2"], Some(7), "a counter has 48 bits");
    let accesses = accesses(&log);
    let orders = |order| [0, 1, 2].map(|card| CardAccess::Write(card, CONTROL, order));
    assert_eq!(accesses[..3], orders(STOP));
    assert_eq!(accesses[accesses.len() - 3..], orders(RUN));
    let reads = &accesses[3..accesses.len() - 3];
    // Low half, then high half.
    assert_eq!(reads[..2], [CardAccess::Read(0, FIRST_COUNTER), CardAccess::Read(0, FIRST_COUNTER + 4)]);
    assert!(reads.iter().all(|act| matches!(act, CardAccess::Read(..))) && reads.len() == 2 * 360);
}

#[test]
fn series_that_are_not_selected_are_not_read() {
    let (cards, log) = scripted(3);
    let mut sensor = sensor(&cards, false);
    sensor.keep(&|s| s.name().ends_with("n2CachelinesRecv@card2"));
    assert_eq!((sensor.series().len(), sensor.files()), (1, 1));
    read(&mut sensor);
    let expected = [
        CardAccess::Write(2, CONTROL, STOP),
        CardAccess::Read(2, RECEIVED),
        CardAccess::Read(2, RECEIVED + 4),
        CardAccess::Write(2, CONTROL, RUN),
    ];
    assert_eq!(accesses(&log), expected);
}

#[test]
fn a_simulated_card_is_read_when_it_has_executed_the_command() {
    let (cards, log) = scripted(2);
    let mut sensor = sensor(&cards, true);
    cards[1].answers_after(Some(3));
    assert!(read(&mut sensor).values().all(Option::is_some));
    assert_eq!(sensor.failure(), None);
    let accesses = accesses(&log);
    let last_look = accesses.iter().rposition(|act| matches!(act, CardAccess::Read(_, STATUS))).unwrap();
    let first_count =
        accesses.iter().position(|act| matches!(act, CardAccess::Read(_, at) if *at >= FIRST_COUNTER));
    assert!(Some(last_look) < first_count, "no card is read before all are stopped");
}

#[test]
fn a_card_that_does_not_answer_has_no_values_and_is_counted() {
    let (cards, _) = scripted(2);
    let mut sensor = sensor(&cards, true);
    sensor.keep(&|s| s.metric.bare() == "n2Cyc");
    cards[1].answers_after(None);
    let values = read(&mut sensor);
    assert_eq!((values["numaconnect2.n2Cyc@card0"], values["numaconnect2.n2Cyc@card1"]), (Some(0), None));
    let expected = "card 1 did not execute a command within 30 ms, once so far";
    assert_eq!(sensor.failure().as_deref(), Some(expected));
    read(&mut sensor);
    assert!(sensor.failure().unwrap().ends_with("30 ms, 2 times so far"));
    cards[1].answers_after(Some(0));
    assert_eq!(read(&mut sensor)["numaconnect2.n2Cyc@card1"], Some(0));
    assert_eq!(sensor.failure(), None);
}

#[test]
fn a_start_that_was_not_executed_yet_is_waited_for() {
    let (cards, log) = scripted(1);
    let mut sensor = sensor(&cards, true);
    sensor.keep(&|s| s.metric.bare() == "n2Cyc");
    // Another program stopped it and was killed.
    cards[0].set(CONTROL, STOP);
    cards[0].set(STATUS, 7 << 8 | STOP);
    assert_eq!(read(&mut sensor)["numaconnect2.n2Cyc@card0"], Some(0));
    let stores = |log| -> Vec<u32> {
        let value = |act| if let CardAccess::Write(_, _, value) = act { Some(value) } else { None };
        accesses(log).into_iter().filter_map(value).collect()
    };
    assert_eq!(stores(&log), [RUN, STOP, RUN]);
    // The last command is not executed yet: it is neither repeated nor followed by another.
    assert_eq!(cards[0].words.lock().unwrap()[&STATUS] & 0xff, STOP);
    cards[0].answers_after(None);
    assert_eq!(read(&mut sensor)["numaconnect2.n2Cyc@card0"], None);
    assert_eq!(stores(&log), [0u32; 0]);
}

#[test]
fn no_card_is_left_stopped() {
    let (cards, log) = scripted(1);
    let mut card = Card::new(0, Box::new(cards[0].clone()), false);
    drop(Card::new(1, Box::new(cards[0].clone()), false));
    assert_eq!(accesses(&log), []);
    card.stop();
    drop(card);
    assert_eq!(accesses(&log), [CardAccess::Write(0, CONTROL, STOP), CardAccess::Write(0, CONTROL, RUN)]);
}

/// Cards by address, with the position that each names as the next.
fn walk(first: u32, next: &[(u32, u32)]) -> Result<usize, Unavailable> {
    let log = AccessLog::default();
    let found = chain(&mut |at| {
        let card = Scripted::new(0, &log);
        card.set(FIRST, first << 4);
        // Bits 12-14: the link; others are ignored.
        card.set(NEXT, 0x8000 | 3 << 12);
        if at != 0xf000_0000 {
            let (_, next) = next.iter().find(|(position, _)| address(*position, 3) == at).unwrap();
            card.set(NEXT, *next);
        }
        Ok(Box::new(card) as Box<dyn Registers>)
    });
    found.map(|cards| cards.len())
}

#[test]
fn cards_are_found_one_from_the_other() {
    assert_eq!(address(0x010, 2), 0x3f01_000c_8000);
    assert_eq!(walk(0x10, &[(0x10, 0x20), (0x20, 0x05), (0x05, 0xfff)]), Ok(3));
    let words = |result: Result<usize, Unavailable>| result.unwrap_err().to_string();
    assert!(words(walk(0xfff, &[])).contains("names no first card"));
    assert!(words(walk(1, &[(1, 2), (2, 1)])).contains("position 0x1 follows itself"));
}

fn machine(cards: u32) -> SysRoot {
    let mut tree = FileTree::new();
    cards::put(&mut tree, cards, 0);
    SysRoot::of_tree(tree)
}

#[test]
fn cards_in_files_are_read_and_their_counters_wrap() {
    let root = machine(3);
    let mut sensor = testing::sensor(&ENTRY, &root, &Topology::default());
    assert_eq!(sensor.series().len(), 360);
    for steps in 0..5 {
        root.change(|tree| cards::put(tree, 3, steps));
        let values = read(sensor.as_mut());
        for counter in COUNTERS.iter() {
            for card in 0..3 {
                let name = format!("numaconnect2.{}@card{card}", counter.name);
                assert_eq!(values[&name], Some(counter_value(card, counter.register, steps)), "{name}");
            }
        }
    }
    assert!(counter_value(1, RECEIVED, 2) > counter_value(1, RECEIVED, 3), "a wrap was part of it");
    root.change(|tree| _ = tree.remove("/dev/mem"));
    assert!(read(sensor.as_mut()).values().all(Option::is_none));
}

#[test]
fn only_the_folder_is_read_in_another_root() {
    let root = machine(2).traced();
    testing::sensor(&ENTRY, &root, &Topology::default());
    assert!(root.touched().iter().all(|path| path.starts_with("/dev/mem/0x")), "{:?}", root.touched());
}

fn why(root: &SysRoot) -> Unavailable {
    find::cards(root).err().unwrap()
}

#[test]
fn what_is_not_a_card_is_absent_with_a_reason() {
    let none = why(&testing::root(&[]));
    assert_eq!(none.seen, "memory has no /dev/mem/0xf0000000.bin");
    assert!(matches!(none.fix, Fix::OtherMachine(_)));
    let root = machine(1);
    let other = |content: &[u8]| {
        root.change(|tree| _ = tree.file("/dev/mem/0xf0000000.bin", content));
        why(&root).seen
    };
    assert_eq!(other(&[0xff; 0x4000]), "0xf0000000 reads 0xffffffff, not 0x07001b47");
    let short = other(&[0x47; 12]);
    assert_eq!(short, "/dev/mem/0xf0000000.bin has 12 bytes, and a window has 16384");
    let root = machine(2);
    root.change(|tree| _ = tree.remove("/dev/mem/0x3f01000c8000.bin"));
    assert_eq!(why(&root).seen, "/dev/mem/0x3f01000c8000.bin: no such file");
}

#[test]
fn only_small_shared_memory_near_a_node_may_be_a_card() {
    let node = |vendor: &str, device: &str, node: &str, size: u64| {
        let range = format!("0xfe000000 {:#x} 0x40200\n0x0 0x0 0x0\n", 0xfe00_00ffu64);
        let resource = format!("{range}0xf000000000 {:#x} 0x14220c\n", 0xf0_0000_0000u64 + size - 1);
        let file = |name: &str, text: &str| (format!("/sys/x/{name}"), format!("{text}\n"));
        let files = [
            file("vendor", vendor),
            file("device", device),
            file("numa_node", node),
            ("/sys/x/resource".into(), resource),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
        candidate(&testing::root(&files), "/sys/x")
    };
    assert_eq!(node("0x1af4", "0x1110", "2", 1 << 20), Some(2));
    assert_eq!(node("0x1af4", "0x1110", "-1", 1 << 20), None);
    assert_eq!(node("0x1af4", "0x1110", "2", 1 << 21), None);
    assert_eq!(node("0x1af4", "0x1000", "2", 1 << 20), None);
    assert_eq!(node("0x8086", "0x1110", "2", 1 << 20), None);
}

#[test]
fn physical_memory_is_for_machines_whose_firmware_names_them() {
    let table = |makers: &str| {
        let mut table = b"APIC\x2c\x01\0\0\x03\x5a".to_vec();
        table.extend_from_slice(makers.as_bytes());
        table.resize(300, 0);
        let mut tree = FileTree::new();
        tree.file("/sys/firmware/acpi/tables/APIC", table);
        madt(&SysRoot::of_tree(tree))
    };
    assert_eq!(table("NUMASCNCONECT2"), Madt::NumaConnect2);
    assert_eq!(table("NUMASCNCONNECT"), Madt::Other, "the cards before had other registers");
    assert_eq!(table("BOCHS BXPC    "), Madt::Other);
    assert_eq!(madt(&SysRoot::of_tree(FileTree::new())), Madt::Other);
    let mut denied = FileTree::new();
    denied.failing("/sys/firmware/acpi/tables/APIC", std::io::ErrorKind::PermissionDenied);
    assert_eq!(madt(&SysRoot::of_tree(denied)), Madt::Unreadable);
    let opteron = |name: &str| is_opteron(&SysRoot::of_tree(machines::machine(name).unwrap().tree));
    assert_eq!(["opteron-10h", "opteron-15h", "zen3", "altra"].map(opteron), [true, true, false, false]);
}

#[test]
fn names_of_numascope_and_patterns_over_them_are_accepted() {
    let root = machine(2);
    let topology = Topology::default();
    let select = |list: &str| -> Vec<String> {
        let selection: Selection = list.parse().unwrap();
        let selected = Probe::selected(&Scene::new(&root, &topology), &selection).unwrap();
        selected.sensors.iter().flat_map(|s| s.series()).map(Series::name).collect()
    };
    let lines = ["n2CachelinesRecv", "n2CachelinesSent"];
    let names = lines.map(|n| [0, 1].map(|card| format!("numaconnect2.{n}@card{card}"))).concat();
    assert_eq!(select("n2CachelinesRecv,n2CachelinesSent"), names);
    assert_eq!(select("n2Cachelines*"), names);
    assert_eq!(select("n2CachelinesSent@card1"), names[3..]);
    assert_eq!(select("numaconnect2").len(), 240);
    assert_eq!(select("numaconnect2,!*Tag*@card[0-9]").len(), 240 - 2 * 56);
    let default = select("!vmstat");
    assert_eq!(default.iter().filter(|name| name.starts_with("numaconnect2.")).count(), 66);
}
