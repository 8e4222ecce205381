use super::*;
use crate::threads::ThreadReason;
use numakit_cure::{CuredThreads, ObjectPart, PageSize, PartsOver};
use std::sync::Mutex;

/// What a test finds again in its own process.
static VARIABLE: Mutex<[u8; 2 << 20]> = Mutex::new([0; 2 << 20]);
const BYTES: u64 = 1 << 20;

/// A cure of the variable, and the variable's address.
fn own_cure(policy: ObjectPolicy) -> (Cure, u64) {
    let start = std::ptr::from_ref(&VARIABLE) as u64;
    let module = ModuleFile::read(&std::env::current_exe().unwrap()).unwrap().file;
    let own = CuredProcess::of(&SysRoot::host(), std::process::id()).unwrap().unwrap().files;
    let (file, first) = own.iter().find(|(file, _)| file.file.build_id == module.build_id).unwrap();
    let address = start - first + file.address(0);
    let object = CuredObject {
        name: "VARIABLE".to_owned(),
        verdict: "first-touch".to_owned(),
        reason: String::new(),
        identity: CuredIdentity::Variable { module: module.clone(), address, bytes: BYTES },
        policy,
        pages: PageSize::AsItIs,
    };
    let cure = Cure {
        version: Cure::VERSION,
        program: module,
        threads: CuredThreads { working: vec![0, 1], count: 2, cpus: 64, open_mp: false },
        objects: vec![object],
        ..Cure::default()
    };
    (cure, start)
}

/// What this process gets with threads on two nodes.
fn found(cure: &Cure) -> (Vec<MovablePart>, NotCured) {
    let processes = cured_processes(&SysRoot::host(), cure, &[std::process::id()]).unwrap();
    let threads = RunThreads { nodes: vec![0, 3], told: Some(2) };
    let mut not = NotCured::default();
    (processes[0].parts(cure, &threads, &mut not), not)
}

#[test]
fn a_variable_is_found_and_its_parts_go_to_the_nodes_of_their_threads() {
    let part = |from, to, thread| ObjectPart { from, to, thread, samples: 9, sure: 1.0 };
    let parts = vec![part(0, 32, 0), part(32, 48, 1)];
    let (cure, start) = own_cure(ObjectPolicy::Parts { over: PartsOver::Block, parts });
    let (parts, not) = found(&cure);
    assert_eq!(not, NotCured::default());
    let page = page_size();
    let rounded = |bytes: u64| (start + bytes + page / 2) / page * page;
    let shown: Vec<_> = parts.iter().map(|part| (part.node, part.ranges.as_slice())).collect();
    let (one, other) = (rounded(0)..rounded(BYTES / 2), rounded(BYTES / 2)..rounded(BYTES / 4 * 3));
    assert_eq!(shown, [(0, std::slice::from_ref(&one)), (3, std::slice::from_ref(&other))]);
}

#[test]
fn what_a_running_process_cannot_have_is_named() {
    let (near, _) = own_cure(ObjectPolicy::Near);
    assert!(found(&near).1.at_start.contains("VARIABLE"));
    let (mut blocks, _) = own_cure(ObjectPolicy::Interleave);
    let (by, chain) = ("malloc".to_owned(), Vec::new());
    blocks.objects[0].identity = CuredIdentity::Blocks { by, chain, count: 1, smallest: 8, largest: 8 };
    assert!(found(&blocks).1.blocks.contains("VARIABLE"));
    let (mut gone, _) = own_cure(ObjectPolicy::Interleave);
    let module = ProgramFile { file: "lib.so".to_owned(), build_id: "ff".to_owned() };
    gone.objects[0].identity = CuredIdentity::Variable { module, address: 0, bytes: 8 };
    assert!(found(&gone).1.absent.contains("VARIABLE"));
    let (mut other, _) = own_cure(ObjectPolicy::Interleave);
    other.program.build_id = "ff".to_owned();
    let refused = cured_processes(&SysRoot::host(), &other, &[std::process::id()]);
    assert!(refused.unwrap_err().to_string().contains("with build ID ff"));
}

#[test]
fn pieces_in_turn_cover_all_pages_once() {
    let page = page_size();
    let by_node = in_turn(&(3 * page + 5..40 * page + 7), &[1, 3].into());
    let pages: u64 = by_node.values().flatten().map(|range| (range.end - range.start) / page).sum();
    assert_eq!((by_node.keys().copied().collect::<Vec<_>>(), pages), (vec![1, 3], 38));
    assert_eq!(by_node[&1].len(), 19);
}

#[test]
fn a_decided_thread_is_on_its_node_and_unknown_ones_are_left_out() {
    let (root, own) = (SysRoot::host(), std::process::id());
    let (cure, _) = own_cure(ObjectPolicy::Interleave);
    let processes = cured_processes(&root, &cure, &[own]).unwrap();
    let first = ThreadDecision {
        process: own,
        thread: own,
        name: String::new(),
        from_cpu: None,
        from_node: None,
        cpu: None,
        node: Some(7),
        reason: ThreadReason::Stays,
        changes: false,
        samples: 0,
    };
    // Of other threads, this machine without nodes does not know where they run.
    let threads = processes[0].threads(&root, &Topology::default(), &cure, &[first]);
    assert_eq!(threads, RunThreads { nodes: vec![7], told: Some(1) });
}
