//! GROMACS: a box of water with one and two threads and ranks, and what it waits for.

use super::followed::{Place, printed, samples_tell};
use super::unpacked;

#[test]
#[ignore = "thorough: a page followed from its first command to its last, 5 minutes"]
fn the_recipe_for_gromacs_is_followed() {
    let Some(set) = unpacked::sciences("gromacs") else { return };
    let libraries = set.join(unpacked::LIBRARIES);
    let mut place = Place::new("gromacs").unwrap();
    let path = ["", "blas", "lapack"].map(|folder| libraries.join(folder).display().to_string()).join(":");
    let program = set.join("usr/bin/gmx");
    let script = format!("#!/bin/sh\nexport LD_LIBRARY_PATH={path}\nexec {} \"$@\"\n", program.display());
    place.script("gmx", &script);
    place.set("GMXDATA", set.join("usr/share/gromacs"));
    place.set("GMXLIB", set.join("usr/share/gromacs/top"));
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
