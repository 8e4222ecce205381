//! All presets are read.

use super::*;
use crate::json;
use numakit_model::CpuSet;
use std::collections::BTreeSet;

#[test]
fn every_file_is_a_machine_with_a_source() {
    let mut names = BTreeSet::new();
    for preset in all() {
        let preset = preset.unwrap_or_else(|error| panic!("{error}"));
        let (name, t) = (preset.name, &preset.topology);
        assert!(preset.sources.iter().all(|source| source.len() > 20), "{name}");
        assert!((2009..=2026).contains(&preset.year), "{name}: {}", preset.year);
        for known in std::iter::once(name).chain(preset.also) {
            assert!(names.insert(names::pieces(known)), "{known} is the name of two presets");
            assert_eq!(find(known).unwrap().name, name);
        }
        let read = json::parse(&json::text(t)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(read, *t, "{name}");
        let in_cores: usize = t.cores.iter().map(|core| core.cpus.len()).sum();
        let in_nodes: usize = t.nodes.iter().map(|node| node.cpus.len()).sum();
        assert_eq!((in_cores, in_nodes), (t.online.len(), t.online.len()), "{name}");
        assert!(t.nodes.is_sorted_by_key(|node| node.os_index), "{name}");
        if let Some(distances) = &t.distances {
            let local = |at: usize| distances.rows[at].iter().all(|value| *value >= distances.rows[at][at]);
            assert!((0..t.nodes.len()).all(local), "{name}");
        }
    }
    assert!(names.len() >= 40, "{} names", names.len());
}

#[test]
fn every_file_of_the_folder_is_embedded() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/presets");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut there: Vec<String> = names.map(|name| name.to_string_lossy().replace(".txt", "")).collect();
    let mut embedded: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
    there.sort();
    embedded.sort_unstable();
    assert_eq!(there, embedded);
}

#[test]
fn what_no_source_states_is_absent() {
    let t = find("EPYC 9755 x2").unwrap().topology;
    assert!(t.nodes.iter().all(|node| node.memory_kb.is_none()));
    assert!(t.caches.iter().all(|cache| cache.ways.is_none() && cache.line_size.is_none()));
    assert_eq!((t.packages.len(), t.cores.len(), t.online.len()), (2, 256, 512));
    assert_eq!(t.nodes[0].cpus.to_string(), "0-127,256-383");
}

#[test]
fn nodes_have_the_numbers_and_cpus_of_the_source() {
    let nodes = |name: &str| {
        let t = find(name).unwrap().topology;
        t.nodes.iter().map(|node| format!("{}: {}", node.os_index, node.cpus)).collect::<Vec<_>>()
    };
    assert_eq!(nodes("POWER9 AC922 4 GPUs"), ["0: 0-63", "8: 64-127", "252: ", "253: ", "254: ", "255: "]);
    assert_eq!(nodes("Threadripper 2990WX")[1..3], ["1: 16-23,48-55", "2: 8-15,40-47"]);
    assert_eq!(nodes("Xeon Gold 6148 x2 SNC2")[0], "0: 0-2,5-6,10-12,15-16,40-42,45-46,50-52,55-56");
    assert_eq!(nodes("EPYC 7451 x2")[7], "7: 42-47,90-95");
    assert_eq!(
        nodes("Xeon E5-2680 v4 x2 SMT off")[1],
        format!("1: {}", CpuSet::parse_list("1-27:2").unwrap())
    );
    let core = |name: &str, at: usize| find(name).unwrap().topology.cores[at].cpus.to_string();
    assert_eq!((core("Xeon Gold 6148 x2 SNC2", 3), core("POWER8 SMT off", 1)), ("3,43".into(), "8".into()));
    assert_eq!((core("POWER10 x16", 1), core("Xeon Phi 7250", 0)), ("8-15".into(), "0,68,136,204".into()));
}

#[test]
fn unknown_names_are_compared_with_known_ones() {
    let near = |name: &str| match find(name) {
        Err(NoMachine::Unknown { near, .. }) => near,
        found => panic!("{name}: {found:?}"),
    };
    assert_eq!(near("EPYC 9755"), ["EPYC 9755 x2"]);
    assert_eq!(near("EPYC 9755 x3"), ["EPYC 9755 x2"]);
    assert_eq!(near("Grace"), ["Grace x2"]);
    for family in ["EPYC", "xeon"] {
        let found = near(family);
        let is_of_family = |name: &&str| name.to_lowercase().starts_with(&family.to_lowercase());
        assert!(found.len() > 1 && found.iter().all(is_of_family), "{family}: {found:?}");
    }
    assert!(near("%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%").is_empty());
    let error = find("EPYC 9755").unwrap_err().to_string();
    assert_eq!(
        error,
        "there is no machine 'EPYC 9755'; did you mean 'EPYC 9755 x2'? 'numa topo --machine list' lists all"
    );
}
