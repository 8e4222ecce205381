//! The tables of events: rules for all of them, and that each fits the PMUs of a machine with that
//! hardware.

use numakit_model::Unit;
use numakit_sensors::events::{
    EventTable, FieldsError, HW_CACHE, Identity, Open, Spread, TABLES, classes, hw_cache, tables,
};
use numakit_sensors::pmu::device::names;
use numakit_sensors::pmu::{Pmu, devices};
use numakit_sys::SysRoot;
use numakit_testing::machines;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The PMUs that the kernel has drivers for.
const PMUS: &[&str] = &[
    "cpu",
    HW_CACHE,
    "uncore_imc_[0-9]*",
    "uncore_imc_free_running_*",
    "uncore_qpi_*",
    "uncore_upi_*",
    "uncore_ha_*",
    "uncore_cbox_*",
    "uncore_cha_*",
    "uncore_m2m_*",
    "uncore_cxldp_*",
    "uncore_cxlcm_*",
    "uncore_b2cmi_*",
    "uncore_b2upi_*",
    "amd_df",
    "amd_nb",
    "amd_umc_*",
    "armv8_*",
    "arm_cmn_*",
    "arm_dmc620_*",
    "ampere_mcu_pmu_*",
    "nvidia_scf_pmu_*",
    "nvidia_nvlink_c2c0_pmu_*",
    "nvidia_nvlink_c2c1_pmu_*",
    "nvidia_cnvlink_pmu_*",
    "nvidia_pcie_pmu_*",
    "hisi_sccl*_hha*",
    "hisi_sccl*_ddrc*",
    "hisi_sccl*_l3c*",
    "hisi_sicl*_pa*",
    "hisi_sicl*_h60pa*",
    "hv_24x7",
    "nest_mcs01_imc",
    "nest_mcs23_imc",
    "nest_powerbus0_imc",
    "cxl_pmu_mem*",
];

fn all() -> impl Iterator<Item = (&'static str, EventTable)> {
    TABLES
        .iter()
        .map(|&(name, text)| (name, EventTable::parse(text).unwrap_or_else(|e| panic!("{name}: {e}"))))
}

#[test]
fn every_file_is_a_table_of_the_program() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/data/events");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap().trim_end_matches(".txt").to_owned())
        .collect();
    assert_eq!(files, TABLES.iter().map(|(name, _)| (*name).to_owned()).collect());
    let mut platforms = HashSet::new();
    assert!(all().all(|(_, table)| platforms.insert(table.platform)), "a platform exists twice");
}

#[test]
fn every_line_is_complete() {
    for (name, table) in all() {
        assert!(table.source.len() > 10, "{name} does not say where it is from");
        for (section, event) in table.events() {
            let at = format!("{name}: {}", event.name);
            assert!(section.pmus.iter().all(|p| PMUS.contains(&p.as_str())), "{at}: {:?}", section.pmus);
            assert!(event.help.ends_with('.') && event.help.len() > 10, "{at}: {}", event.help);
            assert!(event.known.is_some() || event.terms.is_some(), "{at} has no terms");
            let indexed = event.terms.as_ref().is_some_and(|t| t.indexed())
                || event.known.as_ref().is_some_and(|k| k.contains("[i]"));
            assert_eq!(indexed, event.name_at(0) != event.name, "{at}: index in the name or the terms only");
            let number = || event.number(*event.indices.start(), "pmu_0");
            assert!(
                !matches!(section.spread, Spread::Link | Spread::Target) || number().is_some(),
                "{at} has no number"
            );
            assert!(
                event.at.is_none() || matches!(section.spread, Spread::Link | Spread::Target),
                "{at} has an unused number"
            );
            assert!(section.open != Open::EachChip || event.known.is_some(), "{at}: chips are the kernel's");
        }
    }
}

#[test]
fn factors_agree_with_units() {
    for (name, table) in all() {
        for (_, event) in table.events() {
            for feed in &event.feeds {
                let Some(factor) = feed.factor else { continue };
                let sound = match feed.class.unit {
                    Unit::Bytes => factor.times > factor.over || event.name.contains("bytes"),
                    _ => factor.over == 1 && factor.times <= 2,
                };
                assert!(sound, "{name}: {} gives {} in {}", event.name, feed.class.name, feed.class.unit);
            }
        }
    }
}

#[test]
fn every_class_is_used_and_has_one_spread_in_a_table() {
    let mut used = HashSet::new();
    for (name, table) in all() {
        let mut spreads = BTreeMap::new();
        for (section, event) in table.events() {
            for feed in event.feeds.iter().filter(|f| f.factor.is_some()) {
                used.insert(feed.class.name);
                // Events of a core and of its node are both values of the node.
                let spread = if section.spread == Spread::Cpu { Spread::Node } else { section.spread };
                let first = *spreads.entry(feed.class.name).or_insert(spread);
                assert_eq!(first, spread, "{name}: {} in {}", event.name, feed.class.name);
            }
        }
        for (_, event) in table.events() {
            for feed in &event.feeds {
                let fed_here = spreads.contains_key(feed.class.name);
                let elsewhere = ["zen5", "neoverse", "granite-rapids", "sierra-forest", "clearwater-forest"];
                assert!(fed_here || elsewhere.contains(&name), "{name}: nothing adds to {}", feed.class.name);
            }
        }
    }
    for class in classes() {
        assert!(used.contains(class.name), "nothing counts {}", class.name);
    }
}

#[test]
fn nothing_counts_twice() {
    for (name, table) in all() {
        let mut seen = HashSet::new();
        for (section, event) in table.events() {
            for index in event.indices.clone() {
                let terms: Vec<_> = event.terms.iter().flat_map(|t| t.at(index.into())).collect();
                let known = event.known.as_ref().map(|k| k.replace("[i]", &index.to_string()));
                for feed in event.feeds.iter().filter(|f| f.factor.is_some()) {
                    let what = format!("{:?} {:?} {known:?} {terms:?}", section.pmus, section.condition);
                    assert!(
                        seen.insert((what, feed.class.name)),
                        "{name}: {} adds to {} what another line adds",
                        event.name_at(index),
                        feed.class.name
                    );
                }
            }
        }
    }
}

#[test]
fn a_clock_is_counted_by_one_event_of_a_pmu() {
    for (name, table) in all() {
        let mut seen = HashSet::new();
        for (section, event) in table.events() {
            for feed in event.feeds.iter().filter(|f| f.factor.is_some() && f.class.mean) {
                let place = format!("{:?} {:?}", section.pmus, section.condition);
                assert!(seen.insert((place, feed.class.name)), "{name}: {}", event.name);
                assert_eq!(event.indices, 0..=0, "{name}: {}", event.name);
            }
        }
    }
}

/// Number of events of a table that fit the PMUs of a machine.
fn fitting(machine: &str, table: &EventTable, root: &SysRoot, found: &[Pmu]) -> usize {
    let mut fitting = 0;
    for (section, event) in table.events() {
        for device in found.iter().filter(|d| section.holds(root, &d.name)) {
            let chip = (section.open == Open::EachChip).then_some(1);
            for index in event.indices.clone() {
                let at = || format!("{machine}: {} {}", device.name, event.name_at(index));
                match event.fields(index, chip, &device.events) {
                    Ok(fields) => {
                        let terms = fields.iter().map(|(field, value)| (field.as_str(), *value));
                        device.formats.encode(terms).unwrap_or_else(|e| panic!("{}: {e}", at()));
                        fitting += 1;
                    }
                    // The kernel shows what the cores have.
                    Err(FieldsError::Missing { .. }) if device.core => {}
                    Err(error) => panic!("{}: {error}", at()),
                }
            }
        }
    }
    fitting
}

#[test]
fn every_event_fits_the_pmus_of_its_machine() {
    let mut tried = HashSet::new();
    for name in machines::names() {
        let root = SysRoot::of_tree(machines::machine(name).unwrap().tree);
        let mut found = devices(&root, |_| true).found;
        found.push(hw_cache().unwrap());
        let tables = tables(&Identity::read(&root), &names(&root));
        assert!(!tables.is_empty(), "{name} is not a known platform");
        for table in &tables {
            assert!(fitting(name, table, &root, &found) > 0, "{name}: nothing of {} fits", table.platform);
            tried.insert(table.platform.clone());
        }
    }
    assert!(tried.len() >= 16, "{tried:?}");
}

#[test]
fn every_section_finds_its_pmu_on_the_machine_of_its_platform() {
    // PMUs that not all hardware of the platform has.
    let optional = ["uncore_imc_free_running_*", "hisi_sicl*_h60pa*"];
    let mut tried = Vec::new();
    for (name, table) in all() {
        let machine = match name {
            "dmc-620" => "altra",
            "kunpeng" => continue,
            "cmn" => "cmn-700",
            name => name,
        };
        let Ok(machine) = machines::machine(machine) else { continue };
        tried.push(name);
        let root = SysRoot::of_tree(machine.tree);
        let pmus = names(&root);
        for section in table.sections.iter().filter(|s| s.condition.is_none() && s.pmus != [HW_CACHE]) {
            let optional = section.pmus.iter().all(|p| optional.contains(&p.as_str()));
            assert!(optional || pmus.iter().any(|p| section.is_for(p)), "{name}: {:?}", section.pmus);
        }
    }
    assert!(tried.len() >= 12, "{tried:?}");
}
