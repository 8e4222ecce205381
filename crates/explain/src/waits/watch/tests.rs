use super::*;
use crate::waits::{ThreadWaits, WaitTime};
use numakit_model::topology::Topology;
use numakit_sampling::Landing;
use numakit_sys::root::FileTree;
use std::io::Read;
use std::thread::JoinHandle;

/// An observation of this process.
struct Observing {
    accounts: ThreadAccounts,
    collector: Collector,
    processes: Processes,
    watch: WaitWatch,
    java: JavaWatch,
}

impl Observing {
    fn new() -> Self {
        let root = SysRoot::host();
        Self {
            accounts: ThreadAccounts::new(&root, false),
            collector: Collector::new(Landing::Behind),
            processes: Processes::new(&Topology::default()),
            watch: WaitWatch::new(&root),
            java: JavaWatch::new(false),
        }
    }

    /// Looks at all threads.
    fn round(&mut self) {
        let Self { accounts, collector, processes, watch, java } = self;
        accounts.visit(&[std::process::id()], clock::monotonic());
        watch.next = 0;
        watch.visit(&mut WaitScene { accounts, collector, processes, java });
    }

    fn answer(&mut self) -> ThreadWaits {
        let Self { accounts, collector, processes, watch, java } = self;
        watch.answer(&mut WaitScene { accounts, collector, processes, java }, true, clock::monotonic())
    }
}

/// A thread that waits for a byte of a pipe until the other end is dropped.
fn waiting() -> (JoinHandle<usize>, std::io::PipeWriter) {
    let (mut read, write) = std::io::pipe().unwrap();
    (std::thread::spawn(move || read.read(&mut [0]).unwrap()), write)
}

/// Whether this process may not look at its own calls, which is a skip.
fn is_refused(observing: &Observing) -> bool {
    let refused = observing.watch.refused.as_ref();
    refused.is_some_and(|why| {
        numakit_skips::PRIVILEGES.skip(why);
        true
    })
}

#[test]
fn a_thread_that_waits_is_a_row_with_its_chain_and_the_other_end() {
    let (thread, write) = waiting();
    let mut observing = Observing::new();
    let this = format!("({})", std::process::id());
    let found = numakit_testing::wait::wait_for("the wait for a pipe", || {
        // Until the thread has begun, looks at others cost more than they may.
        observing.watch.cost = 0;
        observing.round();
        if is_refused(&observing) {
            return Some(None);
        }
        // A process that another test starts has the pipe too until it executes its program.
        let both =
            |row: &WaitTime| row.kind == WaitKind::Pipe && row.peers.iter().any(|peer| peer.ends_with(&this));
        observing.answer().rows.into_iter().find(both).map(Some)
    });
    drop(write);
    assert_eq!(thread.join().unwrap(), 0);
    let Some(found) = found else { return };
    assert_eq!(found.call.as_deref(), Some("read"));
    assert!(!found.chain.is_empty(), "{found:?}");
}

#[test]
fn looks_end_with_their_budget_and_go_on_when_time_has_passed() {
    let (thread, write) = waiting();
    let mut observing = Observing::new();
    observing.round();
    if is_refused(&observing) {
        return;
    }
    let looks = observing.watch.looks;
    assert!(looks > 0);
    observing.watch.cost = u64::MAX / 2;
    observing.round();
    assert_eq!(observing.watch.looks, looks, "the budget is spent");
    // As if it had cost as much a long time ago.
    observing.watch.cost = 0;
    observing.round();
    assert!(observing.watch.looks > looks);
    drop(write);
    assert_eq!(thread.join().unwrap(), 0);
}

#[test]
fn a_wait_for_a_file_is_one_for_storage_unless_a_signal_would_end_it() {
    let mut tree = FileTree::new();
    for (thread, state) in [(1, 'D'), (2, 'S'), (3, 'R'), (4, 'T')] {
        let stat = format!("{thread} (w) {state} 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0\n");
        tree.file(&format!("/proc/7/task/{thread}/stat"), stat);
    }
    let watch = WaitWatch::new(&SysRoot::of_tree(tree));
    let number =
        |wanted: &str| (0..500).find(|number| call(*number).is_some_and(|(name, _)| name == wanted)).unwrap();
    let kind = |kind, name, thread| {
        let found = FoundWait { kind, target: WaitTarget::Nothing, owner: None };
        watch.stored(found, number(name), (7, thread)).kind
    };
    let kinds = [1, 2, 3, 4, 5].map(|thread| kind(WaitKind::File, "read", thread));
    use WaitKind::{File, Kernel, Pipe, Storage};
    assert_eq!(kinds, [Storage, File, Storage, File, File], "of a named pipe it is woken by signals");
    let others = [("openat", Kernel), ("mmap", Kernel), ("read", Pipe)].map(|(name, of)| kind(of, name, 1));
    assert_eq!(others, [Storage, Kernel, Pipe]);
}
