//! Linear algebra: which BLAS a program loads, its threads, ranks that each make threads, and HPL; and lines from other nodes of
//! a product.

use super::followed::{Place, printed, samples_tell};
use super::ranks::Mpi;
use super::{Counted, counted, unpacked};
use numakit_guest::{Boot, Failure, or_skipped, place, runtimes};
use std::time::Duration;

/// The rate that a line of an example begins with.
fn rate(line: &str) -> f64 {
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
#[ignore = "thorough: a page followed from its first command to its last, 5 minutes"]
fn the_recipe_for_linear_algebra_is_followed() {
    let Some(set) = unpacked::sciences("linear") else { return };
    let mpi = Mpi::new("openmpi4");
    if !mpi.is_here() {
        return;
    }
    let mut place = Place::new("linear").unwrap();
    place.example("product.py");
    place.example("solve.c");
    mpi.put_into(&mut place);
    place.script("hpcc", &format!("#!/bin/sh\nexec {} \"$@\"\n", set.join("usr/bin/hpcc").display()));
    // Where the page names folders of Debian, which may be elsewhere.
    place.set("LIB", set.join(unpacked::LIBRARIES));
    place.set("DOC", set.join("usr/share/doc"));
    place.set("PYTHONPATH", set.join("usr/lib/python3/dist-packages"));
    let blocks = place.follow("linear");
    let rates: Vec<f64> = printed(&blocks, "product.py 1000 2").lines().map(rate).collect();
    let [reference, openblas, blis] = rates[..] else { panic!("{rates:?}") };
    assert!(openblas > 2.0 * reference && blis > 2.0 * reference, "GFLOP/s: {rates:?}");
    let observed = printed(&blocks, "numa explain python3");
    assert!(!samples_tell(observed) || observed.contains("dgemm_ [libblas.so.3"), "{observed}");
    let solved = printed(&blocks, "mpirun -n 2 ./solve");
    assert_eq!(solved.lines().filter(|line| line.starts_with("solved: ")).count(), 2, "{solved}");
    let linpack = printed(&blocks, "HPL_Tflops");
    assert!(linpack.contains("HPL_Tflops=") && linpack.contains("PASSED"), "{linpack}");
    let raced = printed(&blocks, "numa tune");
    assert!(raced.contains("OPENBLAS_NUM_THREADS=1 numa run -c 1 python3"), "{raced}");
}

fn boot(recipe: &Counted) -> Result<Boot, Failure> {
    let guest = runtimes::numpy()?.put_into(recipe.guest(Duration::from_secs(1800))?);
    guest.file(&place::root().join("docs/examples/product.py"), "/out/product.py").boot()
}

#[test]
#[ignore = "thorough: numpy five times in the simulator, 10 minutes"]
fn a_product_has_fewer_remote_lines_where_threads_stay() {
    let recipe = counted("linear");
    let result = boot(&recipe);
    let Some(boot) = or_skipped(&result) else { return };
    let results = recipe.results(boot);
    let [alone, placed, spread, near, one] = &results[..] else { panic!("{results:?}") };
    assert!(placed.2 < 0.8 * alone.2 && spread.2 > placed.2, "{results:?}");
    assert!(near.2 < 0.5 * alone.2 && one.2 < 0.5 * alone.2, "{results:?}");
}
