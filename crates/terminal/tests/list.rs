//! `numa list` and `numa doctor` of simulated machines, as golden texts. `UPDATE=1 cargo xtask
//! test` writes them.
#![allow(clippy::unwrap_used)]

use numakit_sensors::{Probe, Scene, checkup};
use numakit_sys::SysRoot;
use numakit_terminal::doctor;
use numakit_terminal::list::Listing;
use numakit_testing::machines::machine;

fn golden(name: &str, text: &str) {
    let path = format!("{}/tests/list/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, wanted, "{path}; run with UPDATE=1 if this is right");
}

const WIDTH: usize = 150;

#[test]
fn hardware_events_read_like_those_of_the_vendor() {
    for name in ["sapphire-rapids", "zen4", "grace"] {
        let machine = machine(name).unwrap();
        let root = SysRoot::of_tree(machine.tree);
        let probe = Probe::new(&Scene::new(&root, &machine.topology));
        let mut text = Listing::of(&probe, Some("uncore.*")).table(Some(WIDTH));
        text.push('\n');
        text.push_str(&Listing::of(&probe, Some("perf.*")).table(Some(WIDTH)));
        golden(&format!("{name}.list"), &text);
    }
}

#[test]
fn findings_about_missing_counters_are_readable() {
    let machine = machine("kunpeng-hip09").unwrap();
    let root = SysRoot::of_tree(machine.tree);
    let probe = Probe::new(&Scene::new(&root, &machine.topology));
    let mut findings = checkup::check(&probe, &machine.topology, None);
    findings.retain(|f| ["uncore", "resctrl"].iter().any(|sensor| f.about.starts_with(sensor)));
    golden("kunpeng-hip09.doctor", &doctor::text(&findings, Some(WIDTH)));
}
