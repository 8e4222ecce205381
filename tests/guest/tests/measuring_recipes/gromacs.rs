//! GROMACS: a box of water with one and two threads and ranks, and what it waits for; and lines from other nodes, by division.

use super::followed::{Place, printed, samples_tell};
use super::{Counted, counted, unpacked};
use numakit_guest::{Boot, Failure, or_skipped, runtimes};
use std::path::Path;
use std::time::Duration;

/// Where its libraries are in a guest.
const LIBRARIES: &str =
    "/usr/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu/blas:/usr/lib/x86_64-linux-gnu/lapack";

/// A place where the page finds its `gmx`.
fn place_with(set: &Path) -> Place {
    let libraries = set.join(unpacked::LIBRARIES);
    let mut place = Place::new("gromacs").unwrap();
    let path = ["", "blas", "lapack"].map(|folder| libraries.join(folder).display().to_string()).join(":");
    let program = set.join("usr/bin/gmx");
    let script = format!("#!/bin/sh\nexport LD_LIBRARY_PATH={path}\nexec {} \"$@\"\n", program.display());
    place.script("gmx", &script);
    place.set("GMXDATA", set.join("usr/share/gromacs"));
    place.set("GMXLIB", set.join("usr/share/gromacs/top"));
    place
}

#[test]
#[ignore = "thorough: a page followed from its first command to its last, 5 minutes"]
fn the_recipe_for_gromacs_is_followed() {
    let Some(set) = unpacked::sciences("gromacs") else { return };
    let mut place = place_with(&set);
    let blocks = place.follow("gromacs");
    let made = printed(&blocks, "solvate");
    assert!(made.contains("SOL"), "{made}");
    let divisions = printed(&blocks, "for division in");
    assert_eq!(divisions.matches("Performance:").count(), 4, "{divisions}");
    let observed = printed(&blocks, "numa explain gmx");
    assert!(!samples_tell(observed) || observed.contains("libgromacs.so"), "{observed}");
    let placed = printed(&blocks, "numa run -c 2 gmx");
    assert_eq!(placed.matches("Performance:").count(), 3, "{placed}");
    let raced = printed(&blocks, "numa tune");
    assert!(raced.contains("numa run -c 2 gmx"), "{raced}");
}

fn boot(recipe: &Counted, set: &Path, water: &Path) -> Result<Boot, Failure> {
    let gmx = runtimes::of_packages(set, "usr/bin/gmx")?;
    let guest = gmx.put_into(recipe.guest(Duration::from_secs(1800))?);
    guest.file(water, "/out/water.tpr").env("LD_LIBRARY_PATH", LIBRARIES).boot()
}

#[test]
#[ignore = "thorough: a small GROMACS six times in the simulator, 8 minutes"]
fn ranks_of_gromacs_have_fewer_remote_lines_than_threads() {
    let Some(set) = unpacked::sciences("gromacs") else { return };
    let mut place = place_with(&set);
    let water = place.begin("gromacs").join("water.tpr");
    let recipe = counted("gromacs");
    let result = boot(&recipe, &set, &water);
    let Some(boot) = or_skipped(&result) else { return };
    let results = recipe.results(boot);
    let lines = [0, 1, 2, 3, 4, 5].map(|at| results[at].2);
    let [threads, nodes, cpus, threads_placed, _, cpus_placed] = lines;
    assert!(nodes < 0.6 * threads && cpus < 0.6 * threads, "{results:?}");
    assert!(cpus_placed < 0.6 * threads_placed && cpus_placed < 1.3 * cpus, "{results:?}");
}
