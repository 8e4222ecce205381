//! Memory policies that the program chose come before the placing of libnumalloc.

use numakit_guest::runtimes::allocators;
use numakit_guest::{Failure, Guest, Part, Shape, programs};

/// Steps, what they run, and the nodes on which their pages are to lie, evenly.
const CASES: [(&str, &str, &[usize]); 8] = [
    ("none", "numa run -c 4 --busy off --alloc numa -- policies", &[0]),
    ("bind", "numa run -c 4 --busy off --memory bind:1 --alloc numa -- policies", &[1]),
    (
        "interleave",
        "numa run -c 4 --busy off --memory interleave:0-3 --alloc numa -- policies",
        &[0, 1, 2, 3],
    ),
    ("inherited", "policies under bind 2 env LD_PRELOAD=LIBRARY policies", &[1]),
    ("preferred", "policies under prefer 4 env LD_PRELOAD=LIBRARY taskset 1 policies", &[2]),
    ("spread", "policies under interleave 12 env LD_PRELOAD=LIBRARY policies", &[2, 3]),
    ("later", "LD_PRELOAD=LIBRARY taskset 1 policies later 3", &[3]),
    // Without this library, for comparison.
    ("other", "policies under bind 2 policies", &[1]),
];

pub fn guest() -> Result<Guest, Failure> {
    let all = allocators()?;
    let ours = &all[0];
    let mut guest = ours.files.put_into(Guest::new(Shape::named("four")?));
    guest = guest.program(&programs::numa()?).program(&programs::compiled("policies")?.unwrap());
    // Huge pages would be spread in pieces of 2 MiB.
    guest = guest.step("small", &["sh", "-c", "echo never > /sys/kernel/mm/transparent_hugepage/enabled"]);
    for (name, command, _) in CASES {
        guest = guest.step(name, &["sh", "-c", &command.replace("LIBRARY", &ours.preload)]);
    }
    Ok(guest)
}

fn part() -> Option<Part> {
    super::PARTS.part("policies")
}

#[test]
fn the_policy_of_the_program_decides_where_blocks_lie() {
    let Some(boot) = part() else { return };
    for (name, _, wanted) in CASES {
        let text = boot[name].succeeded();
        println!("{name}:\n{text}{}", boot[name].errors());
        for (kind, line) in ["large ", "small "].iter().zip(text.lines()) {
            let pages = line.strip_prefix(kind).unwrap().split(' ').map(|word| word.parse::<f64>().unwrap());
            let pages: Vec<f64> = pages.collect();
            let all: f64 = pages.iter().sum();
            assert!(all > 4000.0, "{name}: {text}");
            let each = 100.0 / wanted.len() as f64;
            for (node, on) in pages.iter().enumerate() {
                let share = 100.0 * on / all;
                let expected = if wanted.contains(&node) { each } else { 0.0 };
                assert!((share - expected).abs() < 4.0, "{name}: node {node}: {text}");
            }
        }
    }
}
