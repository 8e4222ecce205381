//! The worked examples of CONTRIBUTING.md: they compile, run, and equal the text there.

mod declared;
mod files;

use numakit_model::Topology;
pub use numakit_sensors::*;
use numakit_sys::SysRoot;
use numakit_sys::root::FileTree;

#[test]
fn the_example_measures() {
    let mut tree = FileTree::new();
    tree.file("/proc/sys/fs/file-nr", "1216\t0\t9223372036854775807\n");
    let root = SysRoot::of_tree(tree);
    let mut sensor = (files::ENTRY.probe)(&Scene::new(&root, &Topology::default())).ok().unwrap();
    assert_eq!(sensor.series()[0].name(), "files.open");
    let mut out = [None];
    sensor.read(&Tick::default(), &mut out);
    assert_eq!(out, [Some(1216)]);
    root.change(|t| _ = t.file("/proc/sys/fs/file-nr", "garbage"));
    let mut out = [None];
    sensor.read(&Tick::default(), &mut out);
    assert_eq!(out, [None]);
}

#[test]
fn the_example_says_what_is_missing() {
    let root = SysRoot::of_tree(FileTree::new());
    let why = (files::ENTRY.probe)(&Scene::new(&root, &Topology::default())).err().unwrap();
    assert_eq!(why.seen, "/proc/sys/fs/file-nr: no such file");
}

#[test]
fn a_declared_file_measures_what_it_has() {
    let mut tree = FileTree::new();
    tree.file("/proc/meminfo", "MemTotal:  100 kB\nHugePages_Free:  7\nBrandNew:  5 kB\n");
    let root = SysRoot::of_tree(tree);
    let mut sensor = (declared::ENTRY.probe)(&Scene::new(&root, &Topology::default())).ok().unwrap();
    let mut out = [None; 3];
    sensor.read(&Tick::default(), &mut out);
    let units: Vec<_> = sensor.series().iter().map(|s| (s.name(), s.metric.unit.name())).collect();
    assert_eq!(out, [Some(100), Some(7), Some(5)]);
    let expected =
        [("meminfo.MemTotal", "KiB"), ("meminfo.HugePages_Free", "count"), ("meminfo.BrandNew", "KiB")];
    assert_eq!(units, expected.map(|(name, unit)| (name.to_owned(), unit)));
    assert!(sensor.series()[2].metric.help.starts_with("Unknown to this version"));
    let known = (declared::ENTRY.known)();
    assert_eq!(known[1].name, "meminfo.MemAvailable");
    assert_eq!(known[1].help, "Memory that programs can get without swapping.");
}

#[test]
fn a_declared_file_says_what_is_missing() {
    let why = |tree: FileTree| {
        (declared::ENTRY.probe)(&Scene::new(&SysRoot::of_tree(tree), &Topology::default())).err().unwrap()
    };
    assert_eq!(why(FileTree::new()).seen, "/proc/meminfo: no such file");
    let mut garbage = FileTree::new();
    garbage.file("/proc/meminfo", "nothing\n");
    assert_eq!(why(garbage).seen, "/proc/meminfo has no line 'NAME NUMBER'");
}

#[test]
fn contributing_prints_the_examples() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../CONTRIBUTING.md");
    let before = std::fs::read_to_string(path).unwrap();
    let mut text = before.clone();
    for (file, example) in [
        ("declared.rs", include_str!("declared.rs")),
        ("meminfo.txt", include_str!("meminfo.txt")),
        ("files.rs", include_str!("files.rs")),
    ] {
        let mark = format!("<!-- crates/sensors/tests/worked_example/{file} -->\n```");
        let at = text.find(&mark).expect("the mark of the example is there") + mark.len();
        let from = at + text[at..].find('\n').expect("the fence ends") + 1;
        let to = from + text[from..].find("```\n").expect("the example ends");
        text.replace_range(from..to, example);
    }
    if text != before {
        let hint = "CONTRIBUTING.md prints other examples than tests/worked_example; run with UPDATE=1";
        assert!(std::env::var_os("UPDATE").is_some(), "{hint}");
        std::fs::write(path, text).unwrap();
    }
}
