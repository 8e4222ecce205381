//! Output about interconnect cards: simulated ones whose counters wrap.
#![allow(clippy::unwrap_used)]

use numakit_formulas::Catalog;
use numakit_model::{Topology, Unit};
use numakit_recording::Header;
use numakit_sensors::numaconnect2::table::COUNTERS;
use numakit_sensors::{Probe, SENSORS, Scene, Sensor, Tick, summed};
use numakit_sys::SysRoot;
use numakit_sys::root::FileTree;
use numakit_terminal::columns::Per;
use numakit_terminal::list::Listing;
use numakit_terminal::stat::{StatColumns, StatOptions, StatTable, TableFormat};
use numakit_testing::cards;

const CARDS: u32 = 3;
const MS: u64 = 1_000_000;

fn machine() -> SysRoot {
    let mut tree = FileTree::new();
    cards::put(&mut tree, CARDS, 0);
    SysRoot::of_tree(tree)
}

fn probe(root: &SysRoot) -> Probe {
    let cards = SENSORS.iter().filter(|entry| entry.name == "numaconnect2");
    Probe::of(&Scene::new(root, &Topology::default()), cards)
}

/// Lines of five samples 1 ms apart; in the third step every counter wraps.
fn lines(sensor: &mut dyn Sensor, root: &SysRoot, show: StatColumns<'_>, per: Option<Per>) -> Vec<String> {
    let header = Header { series: sensor.series().to_vec(), ..Header::default() };
    let options = StatOptions { show, per, format: TableFormat::Csv, ..StatOptions::default() };
    let mut table = StatTable::new(&header, Catalog::built_in(), options).unwrap();
    let mut text = String::new();
    for steps in 0..5 {
        root.change(|tree| cards::put(tree, CARDS, steps));
        let mut values = vec![None; header.series.len()];
        sensor.read(&Tick::default(), &mut values);
        table.sample(steps * MS, &values, &mut text);
    }
    text.lines().map(|line| line.split_once(",,").map_or(line, |(_, values)| values).to_owned()).collect()
}

fn shown(show: StatColumns<'_>, per: Option<Per>, keep: &str) -> Vec<String> {
    let root = machine();
    let mut sensor = probe(&root).sensors.remove(0);
    sensor.keep(&|s| keep.split(' ').any(|name| s.metric.bare() == name));
    lines(sensor.as_mut(), &root, show, per)
}

fn number(name: &str) -> u64 {
    cards::step(0, COUNTERS.iter().find(|c| c.name == name).unwrap().register)
}

#[test]
fn rates_are_right_when_counters_wrap() {
    let received = number("n2CachelinesRecv");
    let each = [received, 1000 + received, 2000 + received].map(|step| (1000 * step).to_string());
    let lines = shown(StatColumns::Series, None, "n2CachelinesRecv");
    assert!(lines[0].ends_with("numaconnect2.n2CachelinesRecv@card2"), "{}", lines[0]);
    assert_eq!(lines[1..], vec![each.join(","); 4], "the same before, at and after the wrap");
}

#[test]
fn the_machine_is_the_sum_of_its_cards() {
    let lines = shown(StatColumns::Series, Some(Per::Machine), "n2CachelinesRecv");
    let sum = 1000 * (3000 + 3 * number("n2CachelinesRecv"));
    assert_eq!(lines[1..], vec![sum.to_string(); 4], "no average");
    let root = machine();
    let mut sensor = summed(probe(&root).sensors.remove(0));
    sensor.keep(&|s| s.metric.bare() == "n2CachelinesRecv");
    assert_eq!(
        self::lines(sensor.as_mut(), &root, StatColumns::Series, None),
        lines,
        "sums that are recorded"
    );
}

#[test]
fn cycles_are_shares_of_the_clock_per_card_and_together() {
    let names = ["n2WaitCycReqPiuRmpe".to_owned()];
    let keep = "n2WaitCycReqPiuRmpe n2Cyc";
    let step = number("n2WaitCycReqPiuRmpe") as f64;
    let percent = |cycles: f64| (cycles / 200_000.0 * 100_000.0).round() / 1000.0;
    let cards = shown(StatColumns::Formulas(&names), Some(Per::Device), keep);
    let of_cards = [0.0, 1000.0, 2000.0].map(|more| percent(step + more).to_string());
    assert_eq!(cards[1..], vec![of_cards.join(","); 4]);
    let machine = shown(StatColumns::Formulas(&names), Some(Per::Machine), keep);
    assert_eq!(machine[1..], vec![percent(step + 1000.0).to_string(); 4], "no sum of shares");
}

#[test]
fn every_counter_of_cycles_has_its_formula() {
    let catalog = Catalog::built_in();
    for counter in COUNTERS.iter().filter(|c| c.unit == Unit::Cycles && c.name != "n2Cyc") {
        let formula = catalog.get(counter.name).unwrap_or_else(|| panic!("no formula {}", counter.name));
        let expected = format!("100 * numaconnect2.{} / numaconnect2.n2Cyc", counter.name);
        assert_eq!(formula.expr.to_string(), expected);
        let help = counter.help.replacen("Cycles in", "Share of the time in", 1);
        assert_eq!(formula.help, help);
    }
}

#[test]
fn a_table_per_card_has_its_own_columns() {
    let root = machine();
    let mut sensor = probe(&root).sensors.remove(0);
    let lines = lines(sensor.as_mut(), &root, StatColumns::Columns, Some(Per::Device));
    assert!(
        lines[0].starts_with("time,label,link_in@card0,link_out@card0,n2CycRmpeHalf@card0,"),
        "{}",
        lines[0]
    );
    assert!(lines[1].starts_with(&format!("{},", 64_000 * number("n2CachelinesRecv"))), "{}", lines[1]);
}

#[test]
fn cards_are_listed_with_their_numbers_and_absent_ones_in_one_line() {
    let catalog = Catalog::built_in();
    let list = |root: &SysRoot, pattern| {
        let probe = probe(root);
        let listing = Listing::of(&probe, pattern);
        listing.with_formulas(&probe, &Topology::default(), catalog, pattern).table(None)
    };
    let present = list(&machine(), Some("n2*Rmpe"));
    let line = |start: &str| present.lines().find(|l| l.starts_with(start)).unwrap();
    assert!(
        line("numaconnect2.n2WaitCycReqPiuRmpe ").contains("cycles   counter  device 0-2  Cycles in"),
        "{present}"
    );
    assert!(line("n2WaitCycReqPiuRmpe ").contains("percent  formula  device "), "{present}");
    let none = list(&SysRoot::of_tree(FileTree::new()), None);
    assert!(
        none.contains("Unavailable: memory has no /dev/mem/0xf0000000.bin; run on a machine with such cards"),
        "{none}"
    );
    assert!(!none.contains("\nn2Wait"), "the line of the sensor says enough");
}
