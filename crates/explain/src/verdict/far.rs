//! Rules about memory of other nodes.

use super::remedy::{self, nodes};
use super::{Gain, ObjectEvidence, Rule};
use crate::memory_policies::{BoundBy, MemoryBinding};
use crate::object_use::NodeShare;
use crate::objects::ObjectKind;
use numakit_model::thresholds::REMOTE;
use numakit_sys::command::quoted;

/// Nearly all of something.
const ALL: f64 = 0.9;
/// Above this, nodes use parts of their own.
const PARTS: f64 = 0.4;
/// This part of the far time explains it.
const CAUSE: f64 = 0.5;
/// This part of the pages is no accident.
const SOME: f64 = 0.25;
/// With fewer writes, data can be copied to each node.
const READ: f64 = 0.05;
const HUGE_PAGE: u64 = 2 << 20;
/// What commands do.
const SPREADS: Option<&str> = Some(
    "spreads the load over the memory of all nodes, and makes nothing local: only the change in the source does",
);
const BOUND: Option<&str> = Some("binds the threads to CPUs");
const PLACED: Option<&str> = Some("places stacks and thread-local storage on the nodes of their threads");

/// The rules, the most certain first.
pub(super) const RULES: [Rule; 12] = [
    Rule {
        word: "contended-lines",
        seen: "most of its time is at lines that several threads change",
        applies: |e| e.used.time.contended * 2 > e.used.time.outside() && e.used.time.contended > 0,
        says: |_| "several threads change the same lines of it".to_owned(),
        change: remedy::contention,
        command: |_| None,
        expect: |_| None,
        gain: Gain::Contention,
    },
    Rule {
        word: "bound-memory",
        seen: "a policy or a cpuset binds it to nodes, and threads of other nodes use it",
        applies: |e| is_far(e) && e.object.kind != ObjectKind::File && is_bound(e),
        says: |e| {
            let by = match e.bound.map(|bound| bound.by) {
                Some(BoundBy::Cpuset) => "the cpuset of the program",
                _ => "a memory policy",
            };
            format!("{by} binds it to {}; threads of {} use it", home(e), used_from(e))
        },
        change: |e| {
            match e.bound.map(|bound| bound.by) {
            Some(BoundBy::Cpuset) => "Give the cpuset the memory of the nodes of its CPUs (cpuset.mems)".to_owned(),
            _ => "Leave out the policy (mbind, set_mempolicy, numactl --membind), so that memory is on the nodes of the threads \
                  that touch it first; or run the threads where the policy binds it"
                .to_owned(),
        }
        },
        command: |e| {
            let bound = e.bound.filter(|bound| bound.by == BoundBy::Policy)?;
            Some(format!("numa run --nodes {} -- {}", bound.nodes, e.command))
        },
        expect: |_| Some("runs the threads where the memory is, on the CPUs of these nodes only"),
        gain: Gain::Distance,
    },
    Rule {
        word: "thread-local",
        seen: "stacks or thread-local storage that threads of other nodes use",
        applies: |e| is_far(e) && matches!(e.object.kind, ObjectKind::ThreadLocal | ObjectKind::Stack),
        says: |e| format!("stacks or thread-local storage are on {}, where they were created", home(e)),
        change: |_| {
            "Touch it first in the thread that uses it: create threads from threads of their node, or allocate what they use \
             after they are bound"
                .to_owned()
        },
        command: |e| Some(format!("numa run -- {}", e.command)),
        expect: |_| PLACED,
        gain: Gain::Distance,
    },
    Rule {
        word: "page-cache",
        seen: "a mapped file whose pages are on another node than its readers",
        applies: |e| is_far(e) && e.object.kind == ObjectKind::File,
        says: |e| format!("the pages of this file are on {}, where it was read first", home(e)),
        change: |_| {
            "Move its pages to the nodes whose threads use them, or read the file by threads of each node into memory of their own"
                .to_owned()
        },
        command: |e| {
            let path = Some(&e.object.name).filter(|name| name.starts_with('/'))?;
            let observed = match e.command {
                "CMD" => format!("--pid {}", e.object.pid),
                command => format!("-- {command}"),
            };
            Some(format!("numa file spread --by-use {} {observed}", quoted(&[path])))
        },
        expect: |e| {
            e.object.name.starts_with('/').then_some(
                "observes the program again, then moves each page of the file to the node whose threads use it",
            )
        },
        gain: Gain::Distance,
    },
    Rule {
        word: "thread-moved",
        seen: "threads used it locally first, then from another node",
        applies: |e| is_far(e) && e.used.wandered >= CAUSE,
        says: |_| "its threads used it on its node first, and were moved to another one".to_owned(),
        change: |_| "Bind the threads to CPUs before they touch their data".to_owned(),
        command: |e| Some(format!("numa run -- {}", e.command)),
        expect: |_| BOUND,
        gain: Gain::Distance,
    },
    Rule {
        word: "pages-moved",
        seen: "a quarter of its pages, or more, were on several nodes in turn",
        applies: |e| is_far(e) && e.used.moved.is_some_and(|moved| moved >= SOME),
        says: |e| match e.used.roams {
            true => "its pages were moved between nodes while it was used".to_owned(),
            false => format!("its pages were moved between nodes, after threads of {} in turn", used_from(e)),
        },
        change: |e| {
            match e.used.roams {
            true => "Bind the threads, so that pages have no reason to follow them".to_owned(),
            false => "Give each node an array of its own, or let one node work on it; else switch automatic NUMA balancing off \
                      (sysctl kernel.numa_balancing=0): moving it back and forth costs more than it saves"
                .to_owned(),
        }
        },
        command: |e| {
            // Interleaving stops the moving, but makes more of it far.
            e.used.roams.then(|| format!("numa run -- {}", e.command))
        },
        expect: |_| BOUND,
        gain: Gain::Distance,
    },
    Rule {
        word: "reused-across-nodes",
        seen: "the allocator gave its threads memory that threads of another node had touched and freed",
        applies: |e| is_far(e) && e.object.kind == ObjectKind::Allocated && !handed_from(e).is_empty(),
        says: |e| {
            format!(
                "threads of {} allocated it, in memory that threads of {} had touched before: freeing a block leaves its pages \
                 where they are",
                nodes(&e.object.blocks.allocated_on()),
                nodes(&handed_from(e))
            )
        },
        change: remedy::own_memory,
        command: |_| None,
        expect: |_| None,
        gain: Gain::Distance,
    },
    Rule {
        word: "other-node",
        seen: "one node has it, and threads of one other node use it",
        applies: |e| is_far(e) && most(&e.used.home).is_some() && most(&e.used.used_from()).is_some(),
        says: |e| format!("it is on {}, and its threads run on {}", home(e), nodes(&e.used.used_from())),
        change: |_| {
            "Run the threads where the memory is, or touch the memory first where they run".to_owned()
        },
        command: |e| Some(format!("numa run --nodes {} -- {}", most(&e.used.home)?, e.command)),
        expect: |_| Some("runs the threads where the memory is"),
        gain: Gain::Distance,
    },
    Rule {
        word: "first-touch",
        seen: "one node has all of it, and threads of several nodes use parts of their own",
        applies: |e| is_far(e) && most(&e.used.home).is_some() && has_parts(e),
        says: |e| {
            format!("{} touched all of it first; threads of {} use parts of their own", home(e), used_from(e))
        },
        change: remedy::parallel_first_touch,
        command: |e| Some(format!("numa run --memory interleave -- {}", e.command)),
        expect: |_| SPREADS,
        gain: Gain::Distance,
    },
    Rule {
        word: "shared-by-all",
        seen: "one node has all of it, and threads of several nodes use all of it",
        applies: |e| is_far(e) && most(&e.used.home).is_some(),
        says: |e| format!("all of it is on {}; threads of {} share it", home(e), used_from(e)),
        change: shared,
        command: |e| Some(format!("numa run --memory interleave -- {}", e.command)),
        expect: |_| SPREADS,
        gain: Gain::Distance,
    },
    Rule {
        word: "huge-pages-across-parts",
        seen: "several nodes have it, and the parts of the threads are smaller than huge pages",
        applies: |e| {
            let parts = e.used.threads.max(1) as u64;
            let is_huge = e.huge_pages.is_some_and(|huge| huge >= CAUSE);
            is_far(e) && has_parts(e) && is_huge && e.object.size / parts < 2 * HUGE_PAGE
        },
        says: |_| {
            "the parts of the threads are smaller than huge pages, which several of them share".to_owned()
        },
        change: |_| {
            "Align the part of each thread to 2 MiB, or give this memory small pages (MADV_NOHUGEPAGE)"
                .to_owned()
        },
        command: |e| Some(format!("numa run --thp off -- {}", e.command)),
        expect: |_| Some("gives all its memory small pages"),
        gain: Gain::Distance,
    },
    Rule {
        word: "spread",
        seen: "several nodes have it, and threads use what is on other nodes",
        applies: is_far,
        says: |e| match has_parts(e) {
            true => "threads use other parts of it than they touched first".to_owned(),
            false => format!("it is on {}, and threads of {} use all of it", home(e), used_from(e)),
        },
        change: |e| if has_parts(e) { remedy::parallel_first_touch(e) } else { shared(e) },
        command: |_| None,
        expect: |_| None,
        gain: Gain::Distance,
    },
];

/// Even the low end of the interval of the remote part counts as a problem.
fn is_far(e: &ObjectEvidence<'_>) -> bool {
    e.used.remote.is_some_and(|remote| remote.low > REMOTE)
}

/// The nodes whose memory the allocator handed to the threads that allocated it on other nodes and use it there. Of small
/// blocks it is not known who had their addresses before; but who allocates one writes it at once, so that its page would be
/// on that node if nobody had touched it.
fn handed_from(e: &ObjectEvidence<'_>) -> Vec<NodeShare> {
    let blocks = &e.object.blocks;
    let allocated_on = blocks.allocated_on();
    let users = e.used.used_from();
    let part = |of: &[NodeShare], among: &[NodeShare]| {
        let is_among = |part: &&NodeShare| among.iter().any(|other| other.node == part.node);
        of.iter().filter(is_among).map(|part| part.share).sum::<f64>()
    };
    if part(&users, &allocated_on) < CAUSE {
        return Vec::new();
    }
    let (from, is_much) = match blocks.are_small {
        true => {
            let other = |part: &&NodeShare| !allocated_on.iter().any(|node| node.node == part.node);
            (e.used.home.iter().filter(other).copied().collect(), true)
        }
        false => {
            let from = blocks.handed_from();
            let share: f64 = from.iter().map(|part| part.share).sum();
            (from, share >= SOME)
        }
    };
    if is_much && part(&e.used.home, &from) >= CAUSE { from } else { Vec::new() }
}

/// Whether the nodes that it is bound to have nearly all of it, and threads of others use it.
fn is_bound(e: &ObjectEvidence<'_>) -> bool {
    let on = |bound: &MemoryBinding, parts: &[NodeShare]| -> f64 {
        parts.iter().filter(|part| bound.nodes.contains(part.node)).map(|part| part.share).sum()
    };
    e.bound
        .is_some_and(|bound| on(bound, &e.used.home) >= ALL && on(bound, &e.used.used_from()) <= 1.0 - REMOTE)
}

fn has_parts(e: &ObjectEvidence<'_>) -> bool {
    e.used.partition.is_some_and(|parts| parts >= PARTS)
}

/// The node that has nearly all of it.
fn most(parts: &[NodeShare]) -> Option<u32> {
    parts.iter().find(|part| part.share >= ALL).map(|part| part.node)
}

fn home(e: &ObjectEvidence<'_>) -> String {
    nodes(&e.used.home)
}

fn used_from(e: &ObjectEvidence<'_>) -> String {
    nodes(&e.used.used_from())
}

fn shared(e: &ObjectEvidence<'_>) -> String {
    match e.used.writes.is_some_and(|writes| writes < READ) {
        true => "Give each node a copy of it: it is only read. Interleaving it spreads the load over the memory of all nodes, \
                 but makes nothing local"
            .to_owned(),
        false => "Give each node a part of it and the work on that part. Interleaving it spreads the load over the memory of \
                  all nodes, but makes nothing local"
            .to_owned(),
    }
}
