//! What a page fault costs that allocates memory: by page size, by where the page comes from, by threads and by processes.

mod page_sizes;

use crate::faults::page_sizes::{KINDS, Kind, fresh, lacks};
use crate::ground::Ground;
use crate::ground::placed::{Misplaced, on_cpu};
use crate::ground::team::{self, Rounds, Seat};
use crate::results::quantiles::Quantiles;
use crate::results::{BenchResult, NamedValue};
use crate::sampled;
use numakit_sys::clock;
use numakit_sys::loops::{Advice, Region, Vectors, touch_in_processes, write};

/// Where a page comes from when it is touched: what is done before, which is not timed, and what is timed.
struct Origin {
    name: &'static str,
    before: fn(&mut Region, Kind) -> std::io::Result<()>,
    timed: Timed,
    /// Whether the memory of the measurement before is used again.
    again: bool,
}

/// What is timed.
#[derive(Clone, Copy)]
enum Timed {
    /// A first touch of each page.
    Touch,
    /// `MADV_POPULATE_WRITE` of all.
    Populate,
    /// Writing zeros to all, with the widest registers.
    Zero,
}

const ORIGINS: [Origin; 6] = [
    Origin { name: "fresh", before: |_, _| Ok(()), timed: Timed::Touch, again: false },
    Origin {
        name: "populated (MADV_POPULATE_WRITE)",
        before: |_, _| Ok(()),
        timed: Timed::Populate,
        again: false,
    },
    Origin {
        name: "after MADV_DONTNEED",
        before: |memory, _| memory.advise(Advice::Drop),
        timed: Timed::Touch,
        again: true,
    },
    Origin {
        name: "after MADV_FREE",
        before: |memory, _| memory.advise(Advice::Offer),
        timed: Timed::Touch,
        again: true,
    },
    Origin { name: "recycled", before: |_, _| Ok(()), timed: Timed::Touch, again: true },
    // This touches as much memory as fresh pages do; less would be in the caches. Its time is no part of a first touch:
    // there the kernel zeroes pages that were in no cache, and that a hypervisor may have to find first.
    Origin { name: "zeroed again", before: |_, _| Ok(()), timed: Timed::Zero, again: true },
];

/// Measures page faults of all kinds of pages.
pub(crate) fn measure(ground: &Ground<'_>, result: &mut BenchResult) {
    let cpus: Vec<u32> = ground.places.iter().flat_map(|place| place.cpus.iter().copied()).collect();
    let Some(&first) = cpus.first() else { return result.leave_out("page faults", "no CPU can be used") };
    let kinds = KINDS.map(Kind::of);
    let sizes: Vec<String> =
        kinds.iter().map(|kind| format!("{}s have {} KiB", kind.name, kind.page >> 10)).collect();
    result.remarks.push(sizes.join(", "));
    result
        .remarks
        .push("with several threads or processes: time until all are done, for a page of each".to_owned());
    for kind in kinds {
        let kind = Kind { bytes: sized(ground, kind, cpus.len()), ..kind };
        let node = ground.topology.node_of_cpu(first).map_or(0, |node| node.os_index);
        let lack = ground.lacks(node, (kind.bytes * cpus.len()) as u64).or_else(|| lacks(ground, kind));
        if let Some(why) = lack {
            result.leave_out(format!("{}s", kind.name), why);
            continue;
        }
        one_thread(ground, first, kind, result);
        for count in counts(cpus.len()) {
            several(ground, &cpus[..count], kind, result);
        }
    }
}

/// The bytes that a thread touches: those that the user asked for, in whole pages, or the default.
fn sized(ground: &Ground<'_>, kind: Kind, threads: usize) -> usize {
    let asked = ground.settings.size.map(|size| usize::try_from(size).unwrap_or(usize::MAX) / threads);
    asked.map_or(kind.bytes, |bytes| (bytes.min(kind.most) / kind.page).max(1) * kind.page)
}

/// 2, 4, 8, and all.
fn counts(all: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(2), |count| Some(count * 2)).take_while(|count| *count < all);
    powers.chain((all > 1).then_some(all)).collect()
}

/// Measures all origins of pages with a single thread.
fn one_thread(ground: &Ground<'_>, cpu: u32, kind: Kind, result: &mut BenchResult) {
    for origin in &ORIGINS {
        if ground.is_stopped() {
            return;
        }
        ground.now(format!("faults: {}, {}", kind.name, origin.name));
        let name = format!("{}, {}", kind.name, origin.name);
        match on_cpu(cpu, || from_origin(ground, kind, origin)) {
            Ok(Ok(times)) => push(result, name, Quantiles::of(times)),
            Ok(Err(error)) => result.leave_out(name, format!("the kernel refuses it: {error}")),
            Err(Misplaced(why)) => result.leave_out(name, why),
        }
    }
}

/// Times of a page in ns.
fn from_origin(ground: &Ground<'_>, kind: Kind, origin: &Origin) -> std::io::Result<Vec<f64>> {
    let mut memory = fresh(kind)?;
    if origin.again {
        memory.touch(kind.page);
    }
    let (mut refused, vectors) = (None, Vectors::widest());
    let times = sampled::repeat(ground.time(), || {
        if ground.is_stopped() {
            return None;
        }
        let mut once = || -> std::io::Result<f64> {
            if !origin.again {
                memory = fresh(kind)?;
            }
            (origin.before)(&mut memory, kind)?;
            let begin = clock::monotonic();
            match origin.timed {
                Timed::Touch => memory.touch(kind.page),
                Timed::Populate => memory.advise(Advice::Populate)?,
                Timed::Zero => _ = write(&mut memory, 0, vectors),
            }
            Ok((clock::monotonic() - begin) as f64 / (kind.bytes / kind.page) as f64)
        };
        once().map_err(|error| refused = Some(error)).ok()
    });
    refused.map_or(Ok(times), Err)
}

/// Measures fresh pages with several threads of one process, and with as many processes.
fn several(ground: &Ground<'_>, cpus: &[u32], kind: Kind, result: &mut BenchResult) {
    if ground.is_stopped() {
        return;
    }
    let (count, pages) = (cpus.len(), kind.bytes / kind.page);
    ground.now(format!("faults: {}, {count} threads", kind.name));
    let mut seats: Vec<Seat<Option<Region>>> = cpus.iter().map(|&cpu| Seat { cpu, work: None }).collect();
    let touched = |memory: &mut Option<Region>| {
        memory.as_mut().map_or(0, |memory| {
            memory.touch(kind.page);
            pages
        })
    };
    let name = format!("{}, fresh, {count} threads", kind.name);
    match team::rates(ground, &mut seats, Rounds::of(ground), |memory| *memory = fresh(kind).ok(), touched) {
        // Pages of all threads for each ns, to ns for a page of each.
        Ok(rates) => {
            push(result, name, Quantiles::of(rates.into_iter().map(|rate| count as f64 / rate).collect()))
        }
        Err(Misplaced(why)) => result.leave_out(name, why),
    }
    ground.now(format!("faults: {}, {count} processes", kind.name));
    let name = format!("{}, fresh, {count} processes", kind.name);
    let mut refused = None;
    let times = sampled::repeat(ground.time(), || {
        let times =
            (!ground.is_stopped()).then(|| touch_in_processes(cpus, kind.bytes, kind.advice, kind.page))?;
        let longest = times.map(|times| times.into_iter().max().unwrap_or(0) as f64 / pages as f64);
        longest.map_err(|error| refused = Some(error)).ok()
    });
    match refused {
        None => push(result, name, Quantiles::of(times)),
        Some(error) => result.leave_out(name, format!("the kernel refuses it: {error}")),
    }
}

fn push(result: &mut BenchResult, name: String, value: Option<Quantiles>) {
    result.values.extend(value.map(|value| NamedValue {
        name,
        unit: "ns a page".to_owned(),
        value,
        best: None,
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::on_this_machine;

    #[test]
    fn numbers_of_threads_double_up_to_all() {
        assert_eq!(
            [counts(1), counts(2), counts(6), counts(8)],
            [vec![], vec![2], vec![2, 4, 6], vec![2, 4, 8]]
        );
    }

    #[test]
    fn every_origin_is_measured_or_has_a_reason() {
        on_this_machine(|ground| {
            let mut result = BenchResult::default();
            measure(ground, &mut result);
            let cpus: usize = ground.places.iter().map(|place| place.cpus.len()).sum();
            let each = ORIGINS.len() + 2 * counts(cpus).len();
            let lacks = |name: &str| result.left_out.iter().any(|left| left.what == name);
            let kinds =
                KINDS.map(Kind::of).into_iter().filter(|kind| !lacks(&format!("{}s", kind.name))).count();
            let refused = result.left_out.iter().filter(|left| left.why.contains("refuses")).count();
            assert!(!lacks("small pages"));
            assert_eq!(result.values.len() + refused, kinds * each, "{result:?}");
            assert!(result.values.iter().all(|value| value.value.median > 0.0), "{result:?}");
            // What would be a share of zeroing is not told by these times, and none is given.
            assert!(result.values.iter().all(|value| value.unit == "ns a page"), "{result:?}");
        });
    }
}
