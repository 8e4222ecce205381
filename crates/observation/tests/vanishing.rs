//! A node and a CPU that are removed and added again during sampling.

#![allow(clippy::unwrap_used)]

use numakit_model::topology::Node;
use numakit_model::{CpuSet, Topology};
use numakit_observation::setup::Setup;
use numakit_recording::ring::RingEntry;
use numakit_recording::{Priority, Ring, Sampler, Settings};
use numakit_sensors::{Scene, Selection};
use numakit_sys::SysRoot;
use numakit_sys::root::FileTree;
use numakit_testing::wait::wait_for;
use std::sync::Arc;
use std::time::Duration;

const MILLISECOND: Duration = Duration::from_millis(1);

const STAT: &str = "cpu 9 0 9 9 0 0 0 0 0 0\ncpu0 5 0 5 5 0 0 0 0 0 0\ncpu1 4 0 4 4 0 0 0 0 0 0\nintr 5 1 2\nctxt 6\nprocesses 3\nprocs_running 1\nprocs_blocked 0\n";

fn machine() -> (SysRoot, Topology) {
    let mut tree = FileTree::new();
    tree.file("/proc/vmstat", "nr_free_pages 5\npgfault 7\n").file("/proc/stat", STAT);
    for node in 0..2 {
        put_node(&mut tree, node);
    }
    let nodes = (0..2)
        .map(|n| Node { os_index: n, cpus: CpuSet::range(n, n), memory_kb: Some(1024), ..Node::default() })
        .collect();
    let online = CpuSet::range(0, 1);
    let topology =
        Topology { nodes, online: online.clone(), allowed: online, page_size: 4096, ..Topology::default() };
    (SysRoot::of_tree(tree), topology)
}

fn put_node(tree: &mut FileTree, node: u32) {
    let base = format!("/sys/devices/system/node/node{node}");
    tree.file(&format!("{base}/numastat"), "numa_hit 10\nnuma_miss 0\n")
        .file(&format!("{base}/vmstat"), "nr_free_pages 100\n")
        .file(
            &format!("{base}/meminfo"),
            format!("Node {node} MemTotal: 1024 kB\nNode {node} MemFree: 512 kB\n"),
        );
}

struct Watch {
    sampler: Sampler,
    ring: Arc<Ring>,
    names: Vec<String>,
    rows: Vec<Vec<Option<u64>>>,
    labels: Vec<String>,
}

impl Watch {
    fn start(root: &SysRoot, topology: &Topology) -> Self {
        let setup =
            Setup::new(&Scene::new(root, topology), &Selection::default(), MILLISECOND, None).unwrap();
        let names: Vec<String> = setup.header.series.iter().map(|s| s.name()).collect();
        let ring = Arc::new(Ring::in_memory(names.len(), 100_000).unwrap());
        let settings = Settings { interval: MILLISECOND, cpus: CpuSet::new(), priority: Priority::Normal };
        let sampler = Sampler::start(setup.sensors, settings, vec![Arc::clone(&ring)]).unwrap();
        Self { sampler, ring, names, rows: Vec::new(), labels: Vec::new() }
    }

    /// Takes rows until `wanted` accepts a new one.
    #[track_caller]
    fn until(&mut self, wanted: impl Fn(&Self, &[Option<u64>]) -> bool) {
        let mut checked = self.rows.len();
        wait_for("such a row", || {
            self.take();
            let new = checked..self.rows.len();
            checked = new.end;
            new.into_iter().any(|row| wanted(self, &self.rows[row])).then_some(())
        });
    }

    /// Takes the pending rows and labels of the ring.
    fn take(&mut self) {
        let pending = self.ring.pending(100_000);
        for entry in pending.entries() {
            match entry {
                RingEntry::Row(row) => {
                    let mut values = vec![None; self.names.len()];
                    row.values(&mut values);
                    self.rows.push(values);
                }
                RingEntry::Label { index, .. } => self.labels.push(pending.label_text(index)),
            }
        }
        pending.release();
    }

    fn value(&self, row: &[Option<u64>], name: &str) -> Option<u64> {
        row[self.names.iter().position(|n| n == name).unwrap()]
    }
}

#[test]
fn a_removed_node_loses_only_its_own_values() {
    let (root, topology) = machine();
    let mut watch = Watch::start(&root, &topology);
    watch.until(|w, row| w.value(row, "node.MemFree@node1") == Some(512));
    root.change(|tree| _ = tree.remove("/sys/devices/system/node/node1"));
    watch.until(|w, row| w.value(row, "node.MemFree@node1").is_none());
    let row = watch.rows.last().unwrap().clone();
    for name in ["node.MemFree@node0", "vmstat.pgfault", "node.numa_hit@node0"] {
        assert!(watch.value(&row, name).is_some(), "{name}");
    }
    watch.until(|w, _| w.labels.iter().any(|l| l.starts_with("numakit:absent node:")));
    root.change(|tree| put_node(tree, 1));
    watch.until(|w, row| w.value(row, "node.MemFree@node1") == Some(512));
    watch.until(|w, _| w.labels.iter().any(|l| l == "numakit:back node"));
    let taken = watch.sampler.stop().samples();
    assert_eq!(watch.ring.total_rows(), taken, "no row is lost");
}

#[test]
fn a_removed_cpu_loses_only_its_own_values() {
    let (root, topology) = machine();
    let mut watch = Watch::start(&root, &topology);
    watch.until(|w, row| w.value(row, "cpu.user@cpu1") == Some(4));
    let without = STAT.replace("cpu1 4 0 4 4 0 0 0 0 0 0\n", "");
    root.change(|tree| _ = tree.file("/proc/stat", without));
    watch.until(|w, row| w.value(row, "cpu.user@cpu0") == Some(5) && w.value(row, "cpu.user@cpu1").is_none());
    root.change(|tree| _ = tree.file("/proc/stat", STAT));
    watch.until(|w, row| w.value(row, "cpu.user@cpu1") == Some(4));
    let taken = watch.sampler.stop().samples();
    assert_eq!(watch.ring.total_rows(), taken, "no row is lost");
}
