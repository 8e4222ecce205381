//! Under a limit of the address space the regions of all nodes share what there is.

use numakit_guest::runtimes::allocators;
use numakit_guest::{Failure, Guest, Part, Shape, programs};

/// `ulimit -v`, in KiB, and sizes of blocks.
const LIMIT: usize = 400_000;
const SIZES: [usize; 6] = [1_033, 4_000, 33_000, 100_000, 200_000, 1 << 20];

fn name(size: usize, whose: &str) -> String {
    format!("{size} {whose}")
}

pub fn guest() -> Result<Guest, Failure> {
    let all = allocators()?;
    let ours = &all[0];
    let mut guest = ours.files.put_into(Guest::new(Shape::named("four")?));
    guest = guest.program(&programs::compiled("limited")?.unwrap());
    for size in SIZES {
        for (whose, preload) in [("ours", ours.preload.as_str()), ("glibc", "")] {
            let command = format!("ulimit -v {LIMIT}; LD_PRELOAD={preload} exec limited {size}");
            guest = guest.step(&name(size, whose), &["sh", "-c", &command]);
        }
    }
    Ok(guest)
}

fn part() -> Option<Part> {
    super::LATER.part("limits")
}

#[test]
fn a_limit_leaves_nine_tenths_of_what_the_c_library_gives() {
    let Some(boot) = part() else { return };
    for size in SIZES {
        let mib = |whose: &str| boot[name(size, whose).as_str()].succeeded().trim().parse::<f64>().unwrap();
        let (ours, glibc) = (mib("ours"), mib("glibc"));
        println!("blocks of {size} bytes: {ours} MiB, glibc {glibc} MiB");
        assert!(
            glibc > 100.0 && ours >= 0.9 * glibc,
            "blocks of {size} bytes: {ours} MiB, glibc {glibc} MiB"
        );
    }
}
