//! Rules about memory of other nodes, in the order in which they are tried.

use super::remedy::{self, nodes};
use super::{Gain, ObjectCase, rule};
use crate::rules::Rule;
use crate::thread_waits::{ADAPTS, adaptive_loops};
use numakit_explain::memory_policies::{BoundBy, MemoryBinding};
use numakit_explain::object_use::NodeShare;
use numakit_explain::objects::ObjectKind;
use numakit_model::thresholds::REMOTE;
use numakit_sys::command::quoted;

/// A node has nearly all of something from this part on.
const ALL: f64 = 0.9;
/// Each node uses a part of its own if an object's `partition` is above this.
const PARTS: f64 = 0.4;
/// What explains at least this part of the remote time is taken for its cause.
const CAUSE: f64 = 0.5;
/// This part of the pages is no accident.
const SOME: f64 = 0.25;
/// A node with a smaller part of an object, or of its use, does not count.
const USER: f64 = 0.05;
/// A node with this part of an equal part, or more, has its part of an object.
const EVEN: f64 = 0.5;
/// If fewer samples than this part are writes, data can be copied to each node.
const READ: f64 = 0.05;
const HUGE_PAGE: u64 = 2 << 20;
/// What the commands of remedies do, in words.
const SPREADS: &str = "spreads the load over the memory of all nodes, and makes nothing local: only the change in the source does";
const BOUND: &str = "binds the threads to CPUs";
const PLACED: &str = "places stacks and thread-local storage on the nodes of their threads";

/// Most of its time is at contended lines.
pub(crate) const CONTENDED_LINES: Rule =
    rule("contended-lines", "most of its time is at lines that several threads change", |e| {
        let times = e.used.time;
        (times.contended > 0 && times.contended * 2 > times.outside()).then(|| {
            let says = match remedy::processes_of_line(e) {
                Some(processes) => {
                    format!("threads of the processes {processes} change the same lines of it")
                }
                None => "several threads change the same lines of it".to_owned(),
            };
            e.draft(says, remedy::contention(e), Gain::Contention)
        })
    });

/// A policy or a cpuset keeps it away from its threads.
pub(crate) const BOUND_MEMORY: Rule = rule(
    "bound-memory",
    "a policy or a cpuset binds it to nodes, and threads of other nodes use it",
    |e| {
        let bound = e.facts.bound.as_ref().filter(|bound| is_bound(e, bound))?;
        if !is_remote(e) || e.object.kind == ObjectKind::File {
            return None;
        }
        let (by, change) = match bound.by {
            BoundBy::Cpuset => (
                "the cpuset of the program",
                "Give the cpuset the memory of the nodes of its CPUs (cpuset.mems)",
            ),
            BoundBy::Policy => (
                "a memory policy",
                "Leave out the policy (mbind, set_mempolicy, numactl --membind), so that memory is on the nodes of the threads \
                 that touch it first; or run the threads where the policy binds it",
            ),
        };
        let says = format!("{by} binds it to {}; threads of {} use it", home(e), used_from(e));
        let is_policy = bound.by == BoundBy::Policy;
        let command = is_policy.then(|| format!("numa run --nodes {} {}", bound.nodes, e.program.command));
        let expect = "runs the threads where the memory is, on the CPUs of these nodes only";
        Some(e.draft(says, change, Gain::Distance).trying(command, expect))
    },
);

/// Stacks and thread-local storage away from their threads.
pub(crate) const THREAD_LOCAL: Rule = rule(
    "thread-local",
    "stacks or thread-local storage that threads of other nodes use",
    |e| {
        let is_own = matches!(e.object.kind, ObjectKind::ThreadLocal | ObjectKind::Stack);
        (is_own && is_remote(e)).then(|| {
            let says =
                format!("stacks or thread-local storage are on {}, where they were created", home(e));
            let change = "Touch it first in the thread that uses it: create threads from threads of their node, or allocate what \
                          they use after they are bound";
            e.draft(says, change, Gain::Distance).trying(run(e), PLACED)
        })
    },
);

/// A file in the page cache of another node.
pub(crate) const PAGE_CACHE: Rule = rule(
    "page-cache",
    "a mapped file whose pages are on another node than its readers",
    |e| {
        let is_file = e.object.kind == ObjectKind::File;
        // Of what all nodes use, each has its part already: no page has a better place.
        let users = nodes_with(&e.used.used_from(), USER);
        let has_best_place = is_even(e, &users) && !has_parts(e);
        (is_file && is_remote(e) && !has_best_place).then(|| {
            let says = format!("the pages of this file are on {}, where it was read first", home(e));
            let change = "Move its pages to the nodes whose threads use them, or read the file by threads of each node into \
                          memory of their own";
            let path = Some(&e.object.name).filter(|name| name.starts_with('/'));
            let observed = match e.program.is_attached {
                true => format!("--pid {}", e.object.pid),
                false => format!("-- {}", e.program.command),
            };
            let command = path.map(|path| format!("numa file spread --by-use {} {observed}", quoted(&[path])));
            let expect =
                "observes the program again, then moves each page of the file to the node whose threads use it";
            e.draft(says, change, Gain::Distance).trying(command, expect)
        })
    },
);

/// Its threads left its node.
pub(crate) const THREAD_MOVED: Rule =
    rule("thread-moved", "threads used it locally first, then from another node", |e| {
        (is_remote(e) && e.used.wandered >= CAUSE).then(|| {
            let says = "its threads used it on its node first, and were moved to another one";
            let change = "Bind the threads to CPUs before they touch their data";
            e.draft(says, change, Gain::Distance).trying(run(e), BOUND)
        })
    });

/// Its pages were moved again and again.
pub(crate) const PAGES_MOVED: Rule = rule(
    "pages-moved",
    "a quarter of its pages, or more, were on several nodes in turn",
    |e| {
        let is_moved = e.used.moved.is_some_and(|moved| moved >= SOME);
        (is_moved && is_remote(e)).then(|| match e.used.roams {
            true => {
                let says = "its pages were moved between nodes while it was used";
                let change = "Bind the threads, so that pages have no reason to follow them";
                e.draft(says, change, Gain::Distance).trying(run(e), BOUND)
            }
            // Interleaving stops the moving of pages, but makes more of the object remote.
            false => {
                let says =
                    format!("its pages were moved between nodes, after threads of {} in turn", used_from(e));
                let change = "Give each node an array of its own, or let one node work on it; else switch automatic NUMA balancing \
                              off (sysctl kernel.numa_balancing=0): moving it back and forth costs more than it saves";
                e.draft(says, change, Gain::Distance)
            }
        })
    },
);

/// The allocator gave it memory of another node.
pub(crate) const REUSED_ACROSS_NODES: Rule = rule(
    "reused-across-nodes",
    "the allocator gave its threads memory that threads of another node had touched and freed",
    |e| {
        let is_allocated = e.object.kind == ObjectKind::Allocated;
        let from = handed_from(e);
        (is_allocated && is_remote(e) && !from.is_empty()).then(|| {
            let says = format!(
                "threads of {} allocated it, in memory that threads of {} had touched before: freeing a block leaves its pages \
                 where they are",
                nodes(&e.object.blocks.allocated_on()),
                nodes(&from)
            );
            e.draft(says, remedy::own_memory(e), Gain::Distance)
        })
    },
);

/// Memory on one node, threads on another.
pub(crate) const OTHER_NODE: Rule =
    rule("other-node", "one node has it, and threads of one other node use it", |e| {
        let (node, _) = main_node(&e.used.home).zip(main_node(&e.used.used_from()))?;
        is_remote(e).then(|| {
            let says = format!("it is on {}, and its threads run on {}", home(e), used_from(e));
            let change = "Run the threads where the memory is, or touch the memory first where they run";
            let command = format!("numa run --nodes {node} {}", e.program.command);
            e.draft(says, change, Gain::Distance).trying(command, "runs the threads where the memory is")
        })
    });

/// One thread touched what many use in parts.
pub(crate) const FIRST_TOUCH: Rule =
    rule("first-touch", "one node has all of it, and threads of several nodes use parts of their own", |e| {
        (is_remote(e) && main_node(&e.used.home).is_some() && has_parts(e)).then(|| {
            let says = format!(
                "{} touched all of it first; threads of {} use parts of their own",
                home(e),
                used_from(e)
            );
            e.draft(says, remedy::parallel_first_touch(e), Gain::Distance).trying(interleave(e), SPREADS)
        })
    });

/// One node has what all use.
pub(crate) const SHARED_BY_ALL: Rule =
    rule("shared-by-all", "one node has all of it, and threads of several nodes use all of it", |e| {
        (is_remote(e) && main_node(&e.used.home).is_some()).then(|| {
            let says = format!("all of it is on {}; threads of {} share it", home(e), used_from(e));
            e.draft(says, shared(e), Gain::Distance).trying(interleave(e), SPREADS)
        })
    });

/// Several nodes have what one uses.
pub(crate) const SPREAD_AWAY: Rule = rule(
    "spread-away",
    "several nodes have it, and threads of one node alone use it",
    |e| {
        let node = main_node(&e.used.used_from())?;
        let homes = nodes_with(&e.used.home, USER);
        // What a node had no room for is not spread: most of it is on that node.
        (is_remote(e) && is_even(e, &homes)).then(|| {
            let says = format!("it is on {}, and only threads of node {node} use it", home(e));
            let change = "Leave out what spreads it (mbind, set_mempolicy, numactl --interleave, numa run --memory interleave), and \
                          touch it first in a thread of the node that uses it; or give threads of the other nodes their part of the \
                          work";
            let command = format!("numa run --nodes {node} {}", e.program.command);
            let expect = "runs the threads on the CPUs of this node, which its new memory comes from";
            e.draft(says, change, Gain::Distance).trying(command, expect)
        })
    },
);

/// Huge pages are larger than the parts of threads.
pub(crate) const HUGE_PAGES_ACROSS_PARTS: Rule = rule(
    "huge-pages-across-parts",
    "several nodes have it, and the parts of the threads are smaller than huge pages",
    |e| {
        let parts = e.used.threads.max(1) as u64;
        let is_huge = e.facts.huge_pages.is_some_and(|huge| huge >= CAUSE);
        (is_remote(e) && has_parts(e) && is_huge && e.object.size / parts < 2 * HUGE_PAGE).then(|| {
            let says = "the parts of the threads are smaller than huge pages, which several of them share";
            let change =
                "Align the part of each thread to 2 MiB, or give this memory small pages (MADV_NOHUGEPAGE)";
            let command = format!("numa run --thp off {}", e.program.command);
            e.draft(says, change, Gain::Distance).trying(command, "gives all its memory small pages")
        })
    },
);

/// The object is remote, and none of the rules before explains why.
pub(crate) const SPREAD: Rule = rule(
    "spread",
    "several nodes have it, and threads use what is on other nodes",
    |e| {
        is_remote(e).then(|| match has_parts(e) {
            true => {
                let says = "threads use other parts of it than they touched first";
                e.draft(says, remedy::parallel_first_touch(e), Gain::Distance)
            }
            false => {
                let says = format!("it is on {}, and threads of {} use all of it", home(e), used_from(e));
                // Threads touched parts of it first, as those of a static loop do.
                let is_parted = is_even(e, &nodes_with(&e.used.home, USER));
                let open = e.program.open_loops.filter(|_| is_parted);
                let loops = open.map(|open| adaptive_loops(e.program.command, open));
                let change = match loops {
                    Some(_) => format!(
                        "If loops with schedule(dynamic), guided or runtime use it, begin them with static parts. Otherwise: {}",
                        shared(e)
                    ),
                    None => shared(e),
                };
                e.draft(says, change, Gain::Distance).trying(loops, ADAPTS)
            }
        })
    },
);

fn run(e: &ObjectCase<'_>) -> String {
    format!("numa run {}", e.program.command)
}

fn interleave(e: &ObjectCase<'_>) -> String {
    format!("numa run --memory interleave {}", e.program.command)
}

/// Even the low end of the interval of the remote part counts as a problem.
fn is_remote(e: &ObjectCase<'_>) -> bool {
    e.used.remote.is_some_and(|remote| remote.low > REMOTE)
}

/// The nodes whose memory the allocator handed to threads of other nodes, which use it there. For small blocks it is not
/// known which thread had their addresses before. But a thread that allocates a small block writes it at once: its page
/// would be on that thread's node if no other thread had touched it before.
fn handed_from(e: &ObjectCase<'_>) -> Vec<NodeShare> {
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

/// Whether the nodes that the object is bound to have nearly all of it while threads of other nodes use it.
fn is_bound(e: &ObjectCase<'_>, bound: &MemoryBinding) -> bool {
    let on = |parts: &[NodeShare]| -> f64 {
        parts.iter().filter(|part| bound.nodes.contains(part.node)).map(|part| part.share).sum()
    };
    on(&e.used.home) >= ALL && on(&e.used.used_from()) <= 1.0 - REMOTE
}

/// The nodes that have this part, or more.
fn nodes_with(parts: &[NodeShare], least: f64) -> Vec<u32> {
    parts.iter().filter(|part| part.share >= least).map(|part| part.node).collect()
}

/// Whether these are several nodes, and each has half of an equal part of it, or more.
fn is_even(e: &ObjectCase<'_>, nodes: &[u32]) -> bool {
    let homes = nodes_with(&e.used.home, EVEN / nodes.len().max(1) as f64);
    nodes.len() > 1 && nodes.iter().all(|node| homes.contains(node))
}

fn has_parts(e: &ObjectCase<'_>) -> bool {
    e.used.partition.is_some_and(|parts| parts >= PARTS)
}

/// The node that has nearly all of the parts.
fn main_node(parts: &[NodeShare]) -> Option<u32> {
    parts.iter().find(|part| part.share >= ALL).map(|part| part.node)
}

fn home(e: &ObjectCase<'_>) -> String {
    nodes(&e.used.home)
}

fn used_from(e: &ObjectCase<'_>) -> String {
    nodes(&e.used.used_from())
}

fn shared(e: &ObjectCase<'_>) -> String {
    match e.used.writes.is_some_and(|writes| writes < READ) {
        true => "Give each node a copy of it: it is only read. Interleaving it spreads the load over the memory of all nodes, \
                 but makes nothing local"
            .to_owned(),
        false => "Give each node a part of it and the work on that part. Interleaving it spreads the load over the memory of \
                  all nodes, but makes nothing local"
            .to_owned(),
    }
}
