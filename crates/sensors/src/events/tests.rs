use super::class::{lines, read};
use super::*;
use crate::testing::root;
use numakit_model::Unit;
use proptest::prelude::*;

const GOOD: &str = "platform Test\ncpu GenuineIntel-6-8F !GenuineIntel-6-8F-0\nsource nobody\n\n# a comment\n\
    [uncore_imc_*,imc per package where identifier=0x30]\n\
    READ[0-3]@4 | event=0x4+0x40*i,umask=0x3 | dram_read*64 dram_write*64/9 mem_req | medium | Lines read.\n\
    [x each-chip per link]\nKNOWN | sysfs:known_[i],umask=2 | link_out*1 | high | Requests.\n";

fn identity(cpu: &str) -> Identity {
    Identity { cpu: Some(cpu.to_owned()), ..Identity::default() }
}

#[test]
fn a_table_is_parsed() {
    let table = EventTable::parse(GOOD).unwrap();
    assert_eq!((table.platform.as_str(), table.source.as_str()), ("Test", "nobody"));
    let (section, event) = table.events().next().unwrap();
    assert_eq!(section.pmus, ["uncore_imc_*", "imc"]);
    assert_eq!((section.open, section.spread), (Open::Everywhere, Spread::Package));
    assert!(section.is_for("imc") && section.is_for("uncore_imc_3") && !section.is_for("uncore_cha_0"));
    assert_eq!((event.name_at(2).as_str(), event.indices.clone(), event.at), ("READ2", 0..=3, Some(4)));
    assert_eq!((event.number(0, "imc_9"), event.number(3, "imc_9")), (Some(4), Some(7)));
    let feeds: Vec<_> =
        event.feeds.iter().map(|f| (f.class.name, f.factor.map(|f| (f.times, f.over)))).collect();
    assert_eq!(feeds, [("dram_read", Some((64, 1))), ("dram_write", Some((64, 9))), ("mem_req", None)]);
    assert_eq!((event.confidence, event.help.as_str()), (Confidence::Medium, "Lines read."));
    let values = event.fields(2, None, &BTreeMap::new()).unwrap();
    assert_eq!(values, [("event".to_owned(), 0x84), ("umask".to_owned(), 3)]);
}

#[test]
fn the_kernel_has_terms_without_a_value() {
    let table = EventTable::parse(GOOD).unwrap();
    let event = &table.sections[1].events[0];
    assert_eq!(event.number(0, "link_7"), Some(7), "the end of the name of the PMU");
    let known = |text: &str| BTreeMap::from([("known_0".to_owned(), text.to_owned())]);
    let values = event.fields(0, Some(3), &known("domain=1,umask=7,chip=?\n")).unwrap();
    assert_eq!(values, [("domain".to_owned(), 1), ("umask".to_owned(), 2), ("chip".to_owned(), 3)]);
    for (text, words) in [
        ("domain=1,core=?", "needs a value for 'core'"),
        ("domain==1", "'domain==1' is not a term"),
        ("", "is not a term"),
    ] {
        let error = event.fields(0, Some(3), &known(text)).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("known_0"), "{error}");
    }
    let missing = event.fields(0, None, &BTreeMap::new()).unwrap_err();
    assert_eq!(missing.to_string(), "the kernel has no event 'known_0' for this PMU");
}

#[test]
fn errors_have_the_line_and_the_fix() {
    let head = "platform Test\nsource nobody\n";
    let title = format!("{head}[x per node]\n");
    for (text, line, words) in [
        (String::new(), 1, "without the line 'platform NAME'"),
        (head.to_owned(), 2, "without a section"),
        ("platform Test\n[x per node]\n".to_owned(), 2, "without the line 'source TEXT'"),
        (format!("{head}colour red\n"), 3, "'colour red' is before the first section"),
        (format!("{head}[x per moon]\n"), 3, "'[x per moon]' is not the title of a section"),
        (format!("{head}[x per node where ../type=1]\n"), 3, "as in [uncore_imc_* per package]"),
        (format!("{title}A | event=1 | dram_read*64 | high\n"), 4, "has 4 of 5 columns"),
        (format!("{title}\nA B | event=1 | dram_read*64 | high | X.\n"), 5, "'A B' is not a name"),
        (format!("{title}A[5-2] | event=1 | dram_read*64 | high | X.\n"), 4, "the indices 5 to 2"),
        (format!("{title}A[0-4000000000] | event=1 | dram_read | high | X.\n"), 4, "from FIRST to 1023"),
        (format!("{title}A@70000 | event=1 | dram_read*64 | high | X.\n"), 4, "@3 for a number"),
        (format!("{title}A | event=x | dram_read*64 | high | X.\n"), 4, "FIELD=NUMBER"),
        (format!("{title}A | sysfs: | dram_read*64 | high | X.\n"), 4, "has no event"),
        (format!("{title}A | event=1 | dram_raed*64 | high | X.\n"), 4, "did you mean 'dram_read'?"),
        (format!("{title}A | event=1 | dram_read*0 | high | X.\n"), 4, "'dram_read*0' has an invalid factor"),
        (format!("{title}A | event=1 | dram_read*1/0 | high | X.\n"), 4, "an invalid factor"),
        (format!("{title}A | event=1 | | high | X.\n"), 4, "'A' has no class"),
        (format!("{title}A | event=1 | dram_read | sure | X.\n"), 4, "write 'high' or 'medium'"),
        (
            format!("{title}A | event=1 | dram_read | high | X.\nA | event=2 | dram_read | high | X.\n"),
            5,
            "twice",
        ),
    ] {
        let error = EventTable::parse(&text).unwrap_err();
        assert_eq!(error.line, line, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn a_table_is_for_cpus_or_for_pmus() {
    let fits = |text: &str, identity: &Identity, pmus: &[&str]| {
        parse::fits(text, identity, &pmus.iter().map(|&p| p.to_owned()).collect::<Vec<_>>())
    };
    assert!(fits(GOOD, &identity("GenuineIntel-6-8F-8"), &[]));
    assert!(!fits(GOOD, &identity("GenuineIntel-6-8F-0"), &["imc"]), "left out by its stepping");
    assert!(!fits(GOOD, &identity("GenuineIntel-6-8"), &["imc"]));
    let free = "platform Test\nsource nobody\n[arm_cmn_*,x_? per package]\n";
    assert!(
        fits(free, &Identity::default(), &["cpu", "arm_cmn_0"]) && fits(free, &Identity::default(), &["x_1"])
    );
    assert!(!fits(free, &Identity::default(), &["cpu"]));
}

#[test]
fn generations_are_distinguished() {
    for (cpu, wanted) in [
        ("GenuineIntel-6-55-4", &["Skylake-SP"][..]),
        ("GenuineIntel-6-55-7", &["Cascade Lake and Cooper Lake"]),
        ("GenuineIntel-6-55-B", &["Cascade Lake and Cooper Lake"]),
        ("GenuineIntel-6-3F-2", &["Haswell-EP and EX"]),
        ("GenuineIntel-6-3E-4", &["Nehalem to Ivy Bridge"]),
        ("AuthenticAMD-23-1-2", &["Zen 1"]),
        ("AuthenticAMD-23-31-0", &["Zen 2"]),
        ("AuthenticAMD-25-1-1", &["Zen 3"]),
        ("AuthenticAMD-25-11-1", &["Zen 4", "Zen 4 to 6, cores and memory controllers"]),
        ("AuthenticAMD-26-2-1", &["Zen 5", "Zen 4 to 6, cores and memory controllers"]),
        ("AuthenticAMD-26-50-0", &["Zen 4 to 6, cores and memory controllers"]),
        ("AuthenticAMD-16-9-1", &["Opteron family 10h"]),
        ("GenuineIntel-6-9E-9", &[]),
    ] {
        let names: Vec<_> =
            tables(&identity(cpu), &["cpu".to_owned()]).into_iter().map(|t| t.platform).collect();
        assert_eq!(names, wanted, "{cpu}");
    }
}

#[test]
fn cpus_are_identified() {
    let x86 = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: Big\n\
               stepping\t: 8\n";
    let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd0c\n";
    let power = "processor\t: 0\ncpu\t\t: POWER10 (architected), altivec supported\nrevision\t: 2.0 (pvr 0080 0200)\n";
    for (text, name) in [
        (x86, "GenuineIntel-6-8F-8"),
        (arm, "midr 0x41-0xd0c"),
        (power, "pvr 0x0080"),
        ("", "an unknown CPU"),
        ("model : lots\nCPU part : +1\nrevision : (pvr \n", "an unknown CPU"),
    ] {
        assert_eq!(Identity::read(&root(&[("/proc/cpuinfo", text)])).to_string(), name);
    }
    let midr = root(&[("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", "0x00000000410fd4f1\n")]);
    assert_eq!(Identity::read(&midr).midr, Some((0x41, 0xd4f)));
}

#[test]
fn conditions_compare_numbers_and_patterns() {
    let holds = |condition: &str, identifier: Option<&str>| {
        let text = format!("platform T\nsource s\n[x_* per node where {condition}]\n");
        let path = "/sys/bus/event_source/devices/x_1/identifier";
        let root = root(&identifier.map(|text| (path, text)).into_iter().collect::<Vec<_>>());
        EventTable::parse(&text).unwrap().sections[0].holds(&root, "x_1")
    };
    assert!(
        holds("identifier=0x30", Some("0x00000030\n")) && !holds("identifier=0x30", Some("0x00000031\n"))
    );
    assert!(holds("identifier=43c*", Some("43c03\n")) && !holds("identifier=43c*", Some("43403\n")));
    assert!(!holds("identifier=0x30", None) && holds("identifier!=0x30", None));
    assert!(!holds("identifier!=0x30", Some("0x30")));
}

#[test]
fn every_class_is_valid() {
    let mut names = std::collections::HashSet::new();
    for line in lines() {
        let class = read(line).unwrap_or_else(|| panic!("not a line of the classes: {line}"));
        assert!(names.insert(class.name), "{} exists twice", class.name);
        assert!(class.help.ends_with('.') && class.help.len() > 10, "{line}");
        assert!([Unit::Bytes, Unit::Count, Unit::Cycles].contains(&class.unit), "{line}");
        assert!(!class.mean || class.unit == Unit::Cycles, "only clocks have equal rates: {line}");
    }
    assert_eq!(names.len(), classes().len());
    assert_eq!(class("dram_read").map(|c| (c.unit, c.default, c.mean)), Some((Unit::Bytes, true, false)));
}

proptest! {
    #[test]
    fn no_line_makes_it_panic(line in "[A-C0-9@|*/ ,=!:\\[\\]i+-]{0,40}(\\| event=1 \\| dram_read[*0-9/]{0,4} \\| high \\| X.)?") {
        let text = format!("platform T\nsource s\n[x per node]\n{line}\n[{line} per link]\n{line}");
        if let Ok(table) = EventTable::parse(&text) {
            for (_, event) in table.events() {
                for index in event.indices.clone() {
                    let _ = (event.name_at(index), event.number(index, "x_1"));
                }
            }
        }
    }
}
