//! The worked example of CONTRIBUTING.md: it compiles, it runs, and it is what is printed there.

mod files;

use numakit_model::Topology;
pub use numakit_sensors::*;
use numakit_sys::SysRoot;
use numakit_sys::root::Tree;

#[test]
fn the_example_measures() {
    let mut tree = Tree::new();
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
    let root = SysRoot::of_tree(Tree::new());
    let why = (files::ENTRY.probe)(&Scene::new(&root, &Topology::default())).err().unwrap();
    assert_eq!(why.seen, "/proc/sys/fs/file-nr: no such file");
}

#[test]
fn contributing_prints_the_example() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../CONTRIBUTING.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (start, end) = ("<!-- crates/sensors/tests/worked_example/files.rs -->\n```rust\n", "```\n");
    let from = text.find(start).expect("the mark of the example is there") + start.len();
    let to = from + text[from..].find(end).expect("the example ends");
    let example = include_str!("files.rs");
    if text[from..to] == *example {
        return;
    }
    assert!(
        std::env::var_os("UPDATE").is_some(),
        "CONTRIBUTING.md prints another example than tests/worked_example/files.rs; run with UPDATE=1"
    );
    std::fs::write(path, format!("{}{example}{}", &text[..from], &text[to..])).unwrap();
}
