//! What allocators cost: this machine's allocators do the same works, in turns.

mod child;
mod crew;
mod libraries;
pub(crate) mod work;

use crate::alloc::work::{AllocWork, WorkDone, WorkRequest, WorkSeat};
use crate::ground::Ground;
use crate::results::quantiles::Quantiles;
use crate::results::{BenchResult, NamedTable};
use child::{Lack, PATIENCE};
use libraries::{Allocator, C_LIBRARY};
use numakit_model::numbers::counted;
use std::ffi::OsString;

/// The hidden verb of `numa` that does a work.
pub const ALLOC_WORK_VERB: &str = "alloc-work";
/// How often each allocator has its turn in a run, and in a quick run.
const ROUNDS: u32 = 5;
const QUICK_ROUNDS: u32 = 3;

/// The name of the quantity that machines with one node do not have.
const NEAR: &str = "blocks on the node of the thread that got them";

/// A quantity that is computed of each turn: the name of its table, its unit, and whether less is better.
struct Quantity {
    name: &'static str,
    unit: &'static str,
    less_is_better: bool,
    of: fn(&WorkDone, usize) -> Option<f64>,
}

const QUANTITIES: [Quantity; 4] = [
    Quantity {
        name: "time of an operation of a thread",
        unit: "ns",
        less_is_better: true,
        of: |done, threads| Some(done.wall as f64 * threads as f64 / done.operations.max(1) as f64),
    },
    Quantity {
        name: "CPU time of an operation",
        unit: "ns",
        less_is_better: true,
        of: |done, _| Some(done.cpu as f64 / done.operations.max(1) as f64),
    },
    Quantity {
        name: "resident memory at the peak, of the live bytes",
        unit: "%",
        less_is_better: true,
        of: |done, _| {
            Some(100.0 * done.resident? as f64 / done.live.max(1) as f64).filter(|share| *share > 0.0)
        },
    },
    Quantity {
        name: NEAR,
        unit: "%",
        less_is_better: false,
        of: |done, _| {
            let (near, looked) = done.near.filter(|(_, looked)| *looked > 0)?;
            Some(100.0 * near as f64 / looked as f64)
        },
    },
];

/// The results of an allocator's turns.
type Turns = Vec<WorkDone>;

/// Measures all works with all allocators.
pub(crate) fn measure(ground: &Ground<'_>, result: &mut BenchResult) {
    match std::env::current_exe() {
        Ok(program) => measure_with(ground, &[program.into(), ALLOC_WORK_VERB.into()], result),
        Err(error) => result.leave_out("allocators", format!("the program of numa is not found: {error}")),
    }
}

/// Measures all works with all allocators. `starter` is the command that does a work.
fn measure_with(ground: &Ground<'_>, starter: &[OsString], result: &mut BenchResult) {
    let seats = seats(ground);
    if seats.is_empty() {
        return result.leave_out("allocators", "no CPU can be used");
    }
    let mut allocators = libraries::allocators(result);
    let mut columns = Vec::new();
    for work in AllocWork::ALL {
        let lack = work.lacks(seats.len()).map(str::to_owned).or_else(|| lacks(ground, work, &seats));
        if let Some(why) = lack {
            result.leave_out(work.word(), why);
            continue;
        }
        let request = request(ground, work, &seats);
        let turns = rounds(ground, starter, &mut allocators, &request, result);
        if turns.iter().any(|(_, turns)| !turns.is_empty()) {
            columns.push((work, turns));
        }
        if ground.is_stopped() {
            break;
        }
    }
    explain(ground, &columns, &allocators, seats.len(), result);
    let threads = seats.len();
    let tables = QUANTITIES.iter().map(|quantity| table(quantity, &columns, threads));
    result.tables.extend(tables.filter(|table| table.values().next().is_some()));
    result.remarks.extend(ratios(&columns, threads));
}

fn seats(ground: &Ground<'_>) -> Vec<WorkSeat> {
    let of = |place: &crate::ground::NodeCpus| {
        let node = place.node;
        place.cpus.iter().map(move |&cpu| WorkSeat { cpu, node }).collect::<Vec<_>>()
    };
    ground.places.iter().flat_map(of).collect()
}

/// Live bytes of a thread.
fn bytes(ground: &Ground<'_>, work: AllocWork, threads: usize) -> u64 {
    ground.settings.size.map_or(work.bytes(), |size| (size / threads as u64).max(work.sizes().1 as u64))
}

/// Why a node has too little memory for its threads; `None` if it has enough. An allocator may take twice the live bytes.
fn lacks(ground: &Ground<'_>, work: AllocWork, seats: &[WorkSeat]) -> Option<String> {
    let bytes = 2 * bytes(ground, work, seats.len());
    ground.places.iter().find_map(|place| ground.lacks(place.node, bytes * place.cpus.len() as u64))
}

fn request(ground: &Ground<'_>, work: AllocWork, seats: &[WorkSeat]) -> WorkRequest {
    WorkRequest {
        work,
        seats: seats.to_vec(),
        time: ground.time() / rounds_of(ground),
        bytes: bytes(ground, work, seats.len()),
        asks_nodes: ground.topology.nodes.len() > 1,
    }
}

fn rounds_of(ground: &Ground<'_>) -> u32 {
    if ground.settings.quick { QUICK_ROUNDS } else { ROUNDS }
}

/// Measures one work with all allocators. Their turns are interleaved, so that whatever else the machine does meets all of
/// them. An allocator that does not load is removed from `allocators`.
fn rounds(
    ground: &Ground<'_>,
    starter: &[OsString],
    allocators: &mut Vec<Allocator>,
    request: &WorkRequest,
    result: &mut BenchResult,
) -> Vec<(&'static str, Turns)> {
    let work = request.work.word();
    let mut all: Vec<(&'static str, Turns)> =
        allocators.iter().map(|allocator| (allocator.name, Vec::new())).collect();
    let mut failed: Vec<&str> = Vec::new();
    for round in 0..rounds_of(ground) as usize {
        // Each round begins with a different allocator.
        let order = (0..all.len()).map(|at| (at + round) % all.len()).collect::<Vec<_>>();
        for at in order {
            let Some(allocator) = allocators.iter().find(|one| one.name == all[at].0) else { continue };
            if failed.contains(&allocator.name) {
                continue;
            }
            ground.now(format!("alloc: {work}, {}", allocator.name));
            match child::run(ground, starter, allocator, request, PATIENCE) {
                Ok(done) => all[at].1.push(done),
                Err(Lack::Stopped) => return all,
                Err(Lack::Work(why)) => {
                    failed.push(allocator.name);
                    all[at].1.clear();
                    result.leave_out(format!("{}, {work}", allocator.name), why);
                }
                Err(Lack::Allocator(why)) => {
                    result.leave_out(allocator.name, why);
                    let name = allocator.name;
                    allocators.retain(|one| one.name != name);
                }
            }
        }
    }
    all
}

/// A row for each allocator and a column for each work.
fn table(
    quantity: &Quantity,
    columns: &[(AllocWork, Vec<(&'static str, Turns)>)],
    threads: usize,
) -> NamedTable {
    let mut names: Vec<&str> = Vec::new();
    for (name, turns) in columns.iter().flat_map(|(_, turns)| turns) {
        if !turns.is_empty() && !names.contains(name) {
            names.push(name);
        }
    }
    let words = columns.iter().map(|(work, _)| work.word().to_owned()).collect();
    let rows = names.iter().map(|name| (*name).to_owned()).collect();
    let mut table = NamedTable::new(
        quantity.name,
        quantity.unit,
        quantity.less_is_better,
        ("allocator", rows),
        ("work", words),
    );
    for (column, (_, all)) in columns.iter().enumerate() {
        for (name, turns) in all {
            let values = turns.iter().filter_map(|done| (quantity.of)(done, threads)).collect();
            if let Some(row) = names.iter().position(|row| row == name) {
                table.set(row, column, Quantiles::of(values));
            }
        }
    }
    table
}

/// What the words mean, which libraries were measured, and why there are no nodes.
fn explain(
    ground: &Ground<'_>,
    columns: &[(AllocWork, Vec<(&'static str, Turns)>)],
    allocators: &[Allocator],
    threads: usize,
    result: &mut BenchResult,
) {
    if columns.is_empty() {
        return;
    }
    result.remarks.push(format!(
        "{}, one on each core; an operation is a block that is got and freed",
        counted(threads, "thread")
    ));
    result.remarks.extend(columns.iter().map(|(work, _)| format!("{}: {}", work.word(), work.about())));
    let files = allocators.iter().map(|one| {
        let file = std::fs::canonicalize(&one.file).unwrap_or_else(|_| one.file.clone());
        format!("{} is {}", one.name, numakit_sys::proc::printable(file.as_os_str().as_encoded_bytes()))
    });
    result.remarks.push(files.collect::<Vec<_>>().join("; "));
    let all = || columns.iter().flat_map(|(_, turns)| turns).flat_map(|(_, turns)| turns);
    if ground.topology.nodes.len() < 2 {
        result.leave_out(NEAR, "this machine has one node");
    } else if let Some(why) = all().find_map(|done| done.near_refused.clone()) {
        result.leave_out(NEAR, why);
    }
}

/// The time of each allocator as a multiple of the C library's: the geometric mean over the works that both did.
fn ratios(columns: &[(AllocWork, Vec<(&'static str, Turns)>)], threads: usize) -> Option<String> {
    let times = table(&QUANTITIES[0], columns, threads);
    let base = times.rows.iter().position(|name| name == C_LIBRARY)?;
    let of = |row: usize| {
        let pairs = times.cells[row].iter().zip(&times.cells[base]);
        let both: Vec<f64> = pairs
            .filter_map(|(one, base)| Some((one.as_ref()?.median / base.as_ref()?.median).ln()))
            .collect();
        let mean = (both.iter().sum::<f64>() / both.len().max(1) as f64).exp();
        (!both.is_empty()).then(|| format!("{} {mean:.2}", times.rows[row]))
    };
    let all: Vec<String> = (0..times.rows.len()).filter(|row| *row != base).filter_map(of).collect();
    (!all.is_empty()).then(|| {
        format!(
            "time as a multiple of that of the C library, geometric mean of the works: {}",
            all.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::on_this_machine;

    /// What a child says that had the C library's allocator, as another program.
    fn script(text: &str) -> Vec<OsString> {
        let library = numakit_sys::executable::c_library().unwrap();
        let done = format!(
            r#"{{"allocator":"{}","operations":100,"wall":4000,"cpu":3000,"resident":150,"live":100,"near":[1,4],"near_refused":null}}"#,
            library.display()
        );
        ["sh", "-c", text, &done].map(OsString::from).to_vec()
    }

    #[test]
    fn only_an_allocator_that_was_loaded_has_values() {
        on_this_machine(|ground| {
            let mut result = BenchResult::default();
            measure_with(ground, &script("echo \"$0\""), &mut result);
            let threads = seats(ground).len();
            let works = AllocWork::ALL.iter().filter(|work| work.lacks(threads).is_none()).count();
            assert_eq!(result.tables.len(), 4, "{result:?}");
            for table in &result.tables {
                assert_eq!(
                    (table.rows.as_slice(), table.columns.len()),
                    (&[C_LIBRARY.to_owned()][..], works)
                );
                assert!(table.values().all(|(.., value)| value.samples == ROUNDS as usize), "{table:?}");
            }
            let first = |at: usize| result.tables[at].cells[0][0].map(|value| value.median);
            let expected = [40.0 * threads as f64, 30.0, 150.0, 25.0].map(Some);
            assert_eq!([first(0), first(1), first(2), first(3)], expected);
            let ours = result.left_out.iter().find(|left| left.what == libraries::OURS).unwrap();
            assert!(ours.why.contains("libnumalloc.so was not loaded: malloc is that of"), "{ours:?}");
        });
    }

    #[test]
    fn a_work_that_fails_in_one_turn_has_a_reason_and_no_value() {
        on_this_machine(|ground| {
            let mut result = BenchResult::default();
            // It fails in the second turn of the first work.
            let flag = std::env::temp_dir().join(format!("numakit-turns-{}", std::process::id()));
            let _ = std::fs::remove_file(&flag);
            let text = format!(
                "case \"$1\" in *small*) if [ -e {0} ]; then kill -SEGV $$; else [ -n \"$LD_PRELOAD\" ] || touch {0}; fi; esac; echo \"$0\"",
                flag.display()
            );
            measure_with(ground, &script(&text), &mut result);
            std::fs::remove_file(&flag).unwrap();
            let failed = result.left_out.iter().find(|left| left.what == "C library, small").unwrap();
            assert!(failed.why.contains("ended by signal 11"), "{failed:?}");
            assert!(!result.tables[0].columns.contains(&"small".to_owned()), "{result:?}");
            assert!(result.tables[0].columns.contains(&"large".to_owned()), "{result:?}");
        });
    }

    #[test]
    fn times_are_multiples_of_those_of_the_c_library() {
        let done = |wall| WorkDone {
            allocator: None,
            operations: 1,
            wall,
            cpu: 1,
            resident: None,
            live: 1,
            near: None,
            near_refused: None,
        };
        let columns = [
            (AllocWork::Small, vec![(C_LIBRARY, vec![done(100)]), ("fast", vec![done(50)])]),
            (AllocWork::Large, vec![(C_LIBRARY, vec![done(100)]), ("fast", vec![done(200)])]),
            (
                AllocWork::Waves,
                vec![(C_LIBRARY, vec![done(100)]), ("fast", vec![]), ("slow", vec![done(300)])],
            ),
        ];
        let said = ratios(&columns, 2).unwrap();
        assert!(said.ends_with("geometric mean of the works: fast 1.00, slow 3.00"), "{said}");
        assert_eq!(ratios(&columns[..0], 2), None);
        assert_eq!(table(&QUANTITIES[2], &columns, 2).values().count(), 0);
    }
}
