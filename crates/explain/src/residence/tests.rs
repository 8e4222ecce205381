use super::*;
use crate::memory_policies::BoundBy;
use numakit_model::CpuSet;
use std::io::Read;
use std::process::{Command, Stdio};

#[test]
fn runs_are_split_at_multiples() {
    let run = |start, end| PageRun { start, end, huge: None };
    let pieces = |start, end, size| split(&run(start, end), size, 0x1000).collect::<Vec<_>>();
    assert_eq!(pieces(0x3000, 0x5000, 0x1000), [(0x3000, 0x1000), (0x4000, 0x1000)]);
    assert_eq!(pieces(0x3000, 0x9000, 0x4000), [(0x3000, 0x1000), (0x6000, 0x4000), (0x8000, 0x1000)]);
    assert_eq!(pieces(0x3000, 0x3000, 0x4000), []);
}

/// Two processes; pages of the second half are on node 1, those of a third of the zero page.
#[derive(Debug)]
struct Made;

impl Pages for Made {
    fn open(&self, _: u32) -> std::io::Result<Box<dyn Present>> {
        Ok(Box::new(Made))
    }

    fn nodes(&self, process: u32, pages: &[u64]) -> std::io::Result<Vec<Option<u32>>> {
        if process == 9 {
            return Err(std::io::ErrorKind::PermissionDenied.into());
        }
        let node = |page: &u64| (*page < 0x30_0000).then_some(u32::from(*page >= 0x20_0000));
        Ok(pages.iter().map(node).collect())
    }

    fn pools(&self) -> Vec<(u32, u32)> {
        Vec::new()
    }
}

impl Present for Made {
    fn runs(&self, start: u64, end: u64, runs: &mut Vec<PageRun>) -> std::io::Result<u64> {
        let reached = end.min(start + 0x8_0000);
        runs.push(PageRun { start, end: reached, huge: None });
        Ok(reached)
    }
}

fn machine(resident: u64) -> SysRoot {
    let mut tree = numakit_sys::root::FileTree::new();
    for process in [7, 9] {
        let maps = "100000-200000 rw-p 00000000 00:00 0\n200000-380000 rw-p 00000000 00:00 0\n";
        tree.file(&format!("/proc/{process}/maps"), maps);
        tree.file(&format!("/proc/{process}/statm"), format!("999 {resident} 1 0 0 0 0\n"));
    }
    SysRoot::of_tree(tree).with_pages(Arc::new(Made))
}

#[test]
fn memory_is_told_by_node_and_by_who_touched_it() {
    let root = machine(512);
    let mut residence = Residence::new(&root, true);
    let by = FaultingThread { thread: 3, node: Some(0), chain: 5 };
    for page in (0x10_0000..0x18_0000).step_by(0x1000) {
        residence.touched.add(7, page, by);
    }
    residence.visit(&[7], 1);
    let peak = residence.peak();
    // Of 2.5 MiB, half a MiB is the zero page; a MiB on node 0 was touched within one block of pages.
    assert_eq!(peak.bytes(), 2 << 20);
    let values = peak.by_chain();
    let expected = [((0, FlamePart::Node(1)), 1 << 20), ((5, FlamePart::Node(0)), 1 << 20)];
    assert_eq!(values, ChainValues::from(expected));
    let homes = peak.homes(|piece| (piece.address >= 0x18_0000).then_some(4));
    let share = |node, share| NodeShare { node, share };
    assert_eq!(homes[&4], [share(0, 1.0 / 3.0), share(1, 2.0 / 3.0)]);
}

#[test]
fn page_faults_that_are_read_after_the_look_count() {
    let mut residence = Residence::new(&machine(512), true);
    residence.visit(&[7], 1);
    let by = FaultingThread { thread: 3, node: Some(0), chain: 5 };
    for page in (0x10_0000..0x18_0000).step_by(0x1000) {
        residence.touched.add(7, page, by);
    }
    let expected = [((0, FlamePart::Node(1)), 1 << 20), ((5, FlamePart::Node(0)), 1 << 20)];
    assert_eq!(residence.peak().by_chain(), ChainValues::from(expected));
}

#[test]
fn what_binds_most_of_an_object_is_its_binding() {
    let piece = |address, bytes| ResidentPiece { process: 7, address, bytes, node: Some(0), by: None };
    let pieces = vec![piece(1, 10), piece(2, 11), piece(3, 10), piece(4, 11), piece(5, 9)];
    let binding = MemoryBinding { nodes: CpuSet::range(0, 0), by: BoundBy::Policy };
    let object =
        |piece: &ResidentPiece| [None, Some(0), Some(0), Some(1), Some(1), None][piece.address as usize];
    let bound = |piece: &ResidentPiece| [2, 3, 5].contains(&piece.address).then_some(&binding);
    let found = ResidentMemory { time: 0, pieces }.bound(object, bound);
    assert_eq!(found, BTreeMap::from([(0, binding.clone())]));
}

#[test]
fn what_the_kernel_does_not_say_is_unknown() {
    let mut residence = Residence::new(&machine(512), true);
    residence.visit(&[9], 1);
    assert_eq!(residence.peak().bytes(), 5 << 19);
    assert_eq!(residence.peak().by_chain(), ChainValues::from([((0, FlamePart::UnknownNode), 5 << 19)]));
}

#[test]
fn it_is_looked_at_again_only_where_it_has_grown_or_may_have_moved() {
    let look = |has_nodes, before: u64, then: u64, after: u64| {
        let mut residence = Residence::new(&machine(before), has_nodes);
        residence.visit(&[7], 1);
        (residence.next, residence.root) = (0, machine(then));
        residence.visit(&[7], after);
        (residence.peak().time, residence.latest().time)
    };
    assert_eq!(look(false, 512, 513, 2), (1, 1));
    assert_eq!(look(false, 512, 516, 2), (2, 2));
    assert_eq!(look(false, 512, 400, EACH + 2), (1, 1));
    assert_eq!(look(true, 512, 400, EACH + 2), (1, EACH + 2));
    assert_eq!(look(true, 512, 400, EACH), (1, 1));
}

#[test]
fn the_memory_of_a_process_is_as_the_kernel_counts_it() {
    // A process that has memory and does nothing: tests of this one allocate all the time.
    let script = "x=$(head -c 64000000 /dev/zero | tr '\\0' x); echo; read end";
    let mut shell = Command::new("sh");
    let mut shell = shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    shell.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
    let mut residence = Residence::new(&SysRoot::host(), false);
    residence.visit(&[shell.id()], 1);
    let counted = resident(&SysRoot::host(), shell.id()).unwrap();
    // The end of its input ends it.
    drop(shell.stdin.take());
    shell.wait().unwrap();
    let seen = residence.peak().bytes();
    // The kernel's counter may be behind by some pages for each CPU.
    assert!(seen > 64_000_000 && seen.abs_diff(counted) < counted / 20, "{seen} {counted}");
}
