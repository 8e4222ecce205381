//! The topologies of the seven captured machines are exactly what their facts files say.
#![allow(clippy::unwrap_used)]

use numakit_model::topology::{CacheKind, MemorySideCache, Node};
use numakit_model::{CpuSet, Topology};
use numakit_sys::SysRoot;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The captures with their facts; none, and a line that says so, if they are unavailable.
fn captures() -> Vec<(Topology, Value)> {
    numakit_captures::archives()
        .iter()
        .map(|archive| {
            let facts = archive.to_string_lossy().replace(".tar.bz2", ".facts.json");
            let facts = serde_json::from_str(&std::fs::read_to_string(facts).unwrap()).unwrap();
            (numakit_topology::read(&SysRoot::open(archive).unwrap()).unwrap(), facts)
        })
        .collect()
}

/// Compares one aspect of every capture.
fn each(aspect: impl Fn(&Topology) -> Value, fact: impl Fn(&Value) -> Value) {
    for (topology, facts) in captures() {
        assert_eq!(aspect(&topology), fact(&facts), "{} {:?}", facts["name"], topology.notes);
    }
}

fn key(name: &'static str) -> impl Fn(&Value) -> Value {
    move |facts| facts[name].clone()
}

/// A list of sets, `null` in the facts where the kernel shows none.
fn sets(sets: &[CpuSet]) -> Value {
    if sets.is_empty() { Value::Null } else { json!(sets) }
}

/// Facts leave out huge pages if all pools are empty.
fn huge_pages(node: &Node) -> Value {
    let used = node.huge_pages.iter().filter(|pool| pool.count > 0);
    let pools: BTreeMap<String, u64> =
        used.map(|p| (format!("hugepages-{}kB", p.size_kb), p.count)).collect();
    if pools.is_empty() { Value::Null } else { json!(pools) }
}

fn access(topology: &Topology, node: &Node) -> Value {
    let classes = node.access.iter().map(|access| {
        let reached = |other: &&Node| {
            let same = other.access.iter().filter(|a| a.class == access.class);
            same.into_iter().any(|a| a.initiators.contains(node.os_index))
        };
        let targets: CpuSet = topology.nodes.iter().filter(reached).map(|n| n.os_index).collect();
        let value = json!({
            "initiators": access.initiators,
            "read_bandwidth": access.read_bandwidth,
            "write_bandwidth": access.write_bandwidth,
            "read_latency": access.read_latency,
            "write_latency": access.write_latency,
            "targets": targets,
        });
        (format!("access{}", access.class), value)
    });
    let classes: BTreeMap<String, Value> = classes.collect();
    if classes.is_empty() { Value::Null } else { json!(classes) }
}

/// A memory-side cache as in the facts; indexing and write policy are not read.
fn memory_side(caches: &[MemorySideCache]) -> Value {
    let one = |c: &MemorySideCache| {
        (
            format!("index{}", c.level),
            json!({"size": c.size.to_string(), "line_size": c.line_size.to_string()}),
        )
    };
    let all: BTreeMap<String, Value> = caches.iter().map(one).collect();
    if all.is_empty() { Value::Null } else { json!(all) }
}

#[test]
fn nodes() {
    for (topology, facts) in captures() {
        let implicit = facts["nodes_source"] != "sysfs";
        assert_eq!(topology.nodes[0].implicit, implicit, "{}", facts["name"]);
        if implicit {
            let [node] = topology.nodes.as_slice() else { panic!("{}", facts["name"]) };
            assert_eq!((node.os_index, &node.cpus), (0, &topology.online));
            // MemTotal of its /proc/meminfo.
            assert_eq!(node.memory_kb, Some(280_840), "{}", facts["name"]);
            continue;
        }
        let nodes: Vec<Value> = topology
            .nodes
            .iter()
            .map(|n| json!({"os_index": n.os_index, "cpus": n.cpus, "memory_kb": n.memory_kb}))
            .collect();
        let expected: Vec<Value> = facts["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| json!({"os_index": n["os_index"], "cpus": n["cpus"], "memory_kb": n["memory_kb"]}))
            .collect();
        assert_eq!(nodes, expected, "{}", facts["name"]);
    }
}

#[test]
fn memory_of_nodes_in_detail() {
    for (topology, facts) in captures() {
        for (node, fact) in topology.nodes.iter().zip(facts["nodes"].as_array().unwrap()) {
            let name = format!("{} node {}", facts["name"], node.os_index);
            assert_eq!(huge_pages(node), fact["hugepages"], "{name}");
            assert_eq!(access(&topology, node), fact["access"], "{name}");
            assert_eq!(node.cpus.is_empty(), fact["cpuless"] == true, "{name}");
            let mut expected = fact["memory_side_cache"].clone();
            for cache in expected.as_object_mut().into_iter().flat_map(|caches| caches.values_mut()) {
                cache.as_object_mut().unwrap().retain(|key, _| key == "size" || key == "line_size");
            }
            assert_eq!(memory_side(&node.memory_side_caches), expected, "{name}");
        }
    }
}

#[test]
fn packages() {
    each(|t| json!(t.packages), key("packages"));
}

#[test]
fn cores_and_their_widths() {
    each(|t| json!(t.cores.len()), key("cores"));
    each(
        |t| {
            let mut widths: BTreeMap<String, usize> = BTreeMap::new();
            t.cores.iter().for_each(|c| *widths.entry(c.cpus.len().to_string()).or_default() += 1);
            json!(widths)
        },
        key("core_sizes"),
    );
    each(|t| json!(t.cores[0].cpus), key("smt_siblings_first_core"));
}

#[test]
fn cpus_online_offline_and_allowed() {
    each(|t| json!(t.online.len()), key("pus"));
    each(|t| json!(t.online), key("online_cpus"));
    each(|t| json!(t.offline), key("offline_cpus"));
    each(|t| json!(t.allowed), key("allowed_cpus"));
    each(|t| json!(t.not_allowed()), key("disallowed_cpus"));
    each(|t| json!(t.allowed_nodes), key("allowed_nodes"));
}

#[test]
fn distances() {
    each(|t| json!(t.distances.as_ref().map(|d| &d.rows)), key("distances"));
}

#[test]
fn no_capture_has_several_boards() {
    each(|t| sets(&t.boards), |_| Value::Null);
}

#[test]
fn shared_caches() {
    each(
        |t| {
            let size = |size: u64| format!("{}K", size / 1024);
            t.caches_of_level(3).map(|c| json!({"cpus": c.cpus, "size": c.size.map(size)})).collect()
        },
        key("l3_groups"),
    );
    each(|t| json!(t.caches_of_level(2).count()), key("l2_groups"));
}

#[test]
fn dies_clusters_books_and_drawers() {
    each(|t| sets(&t.dies), key("dies"));
    each(|t| sets(&t.clusters), key("clusters"));
    each(|t| sets(&t.books), key("books"));
    each(|t| sets(&t.drawers), key("drawers"));
}

#[test]
fn kinds_of_cores() {
    each(|t| sets(&t.kinds.iter().map(|k| k.cpus.clone()).collect::<Vec<_>>()), key("cpukinds"));
}

#[test]
fn a_cpu_has_one_cache_of_each_level_and_kind() {
    for (topology, facts) in captures() {
        for kind in [CacheKind::Data, CacheKind::Instruction] {
            let first = topology.caches.iter().filter(|c| c.level == 1 && c.kind == kind);
            let cpus: Vec<u32> = first.flat_map(|c| c.cpus.iter()).collect();
            let expected = if topology.caches.is_empty() { 0 } else { topology.online.len() };
            assert_eq!(cpus.len(), expected, "{}", facts["name"]);
            assert_eq!(cpus.into_iter().collect::<CpuSet>().len(), expected, "{}", facts["name"]);
        }
    }
}

/// Of two packages with four cores each: some CPUs list L1 only, some L2 only, though they share it with others.
#[test]
fn a_machine_whose_cpus_list_different_caches() {
    let Some(archive) = numakit_captures::case("sound-asymcaches.tar.bz2") else { return };
    let root = SysRoot::open(&archive).unwrap();
    let topology = numakit_topology::read(&root).unwrap();
    let of = |topology: &Topology, level, kind| -> Vec<String> {
        let caches = topology.caches_of_level(level).filter(|cache| cache.kind == kind);
        caches.map(|cache| cache.cpus.to_string()).collect()
    };
    let first = |kind| {
        let caches = topology.caches.iter().filter(|cache| cache.level == 1 && cache.kind == kind);
        caches.map(|cache| cache.cpus.to_string()).collect::<Vec<_>>()
    };
    for kind in [CacheKind::Data, CacheKind::Instruction] {
        assert_eq!(first(kind), ["0", "3", "4", "6", "7"]);
    }
    let placed = numakit_topology::read_for_placement(&root, false).unwrap();
    for topology in [&topology, &placed] {
        assert_eq!(of(topology, 2, CacheKind::Unified), ["1,5", "2,6", "3,7"]);
    }
    let copy = numakit_topology::read(&SysRoot::of_tree(numakit_testing::sysfs::tree(&topology))).unwrap();
    assert_eq!(copy.caches, topology.caches);
}

#[test]
fn a_generated_copy_reads_the_same() {
    for (topology, facts) in captures() {
        let tree = numakit_testing::sysfs::tree(&topology);
        let copy = numakit_topology::read(&SysRoot::of_tree(tree)).unwrap();
        let expected = Topology { origin: copy.origin.clone(), notes: copy.notes.clone(), ..topology };
        assert_eq!(copy, expected, "{}", facts["name"]);
    }
}

#[test]
fn json_is_read_back() {
    for (topology, facts) in captures() {
        let text = numakit_topology::json::text(&topology);
        assert_eq!(numakit_topology::json::parse(&text).unwrap(), topology, "{}", facts["name"]);
    }
}
