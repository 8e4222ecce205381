use super::*;
use crate::waits::ThreadWaits;
use numakit_model::topology::Topology;
use numakit_sampling::Landing;
use std::io::Read;
use std::thread::JoinHandle;

/// An observation of this process.
struct Observing {
    accounts: ThreadAccounts,
    collector: Collector,
    processes: Processes,
    watch: WaitWatch,
}

impl Observing {
    fn new() -> Self {
        let root = SysRoot::host();
        Self {
            accounts: ThreadAccounts::new(&root, false),
            collector: Collector::new(Landing::Behind),
            processes: Processes::new(&Topology::default()),
            watch: WaitWatch::new(&root),
        }
    }

    /// Looks at all threads.
    fn round(&mut self) {
        let Self { accounts, collector, processes, watch } = self;
        accounts.visit(&[std::process::id()], clock::monotonic());
        watch.next = 0;
        watch.visit(&mut WaitScene { accounts, collector, processes });
    }

    fn answer(&mut self) -> ThreadWaits {
        let Self { accounts, collector, processes, watch } = self;
        watch.answer(&mut WaitScene { accounts, collector, processes }, true)
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
    let mut found = None;
    for _ in 0..1000 {
        observing.round();
        if is_refused(&observing) {
            return;
        }
        let answer = observing.answer();
        let pipe = |row: &crate::waits::WaitTime| row.kind == WaitKind::Pipe && row.peers.len() == 1;
        found = answer.rows.into_iter().find(pipe);
        if found.is_some() {
            break;
        }
        std::thread::yield_now();
    }
    drop(write);
    assert_eq!(thread.join().unwrap(), 0);
    let found = found.unwrap();
    assert!(
        found.peers[0].ends_with(&format!("({})", std::process::id())),
        "this process has both ends: {found:?}"
    );
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
