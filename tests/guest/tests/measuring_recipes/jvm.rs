//! A JVM: counters that share a cache line, and rows that the main thread creates, which are remote to all others.
//! Threads of a JVM are not bound: what a row's own thread creates stays near only as long as the kernel does not move it.

use super::followed::Place;
use super::{Counted, counted};
use numakit_guest::{Boot, Failure, or_skipped, place, runtimes};
use std::process::Command;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(1800);

#[test]
#[ignore = "thorough: a page followed from its first command to its last, 3 minutes"]
fn the_recipe_for_a_jvm_is_followed() {
    if !Command::new("javac").arg("-version").status().is_ok_and(|status| status.success()) {
        return numakit_skips::COMPILERS.skip("there is no javac: apt-get install openjdk-17-jdk-headless");
    }
    let mut place = Place::new("jvm").unwrap();
    place.example("Counters.java");
    place.example("Rows.java");
    let blocks = place.follow("jvm");
    let printed = |command: &str| {
        let block = blocks.iter().find(|block| block.commands.contains(command));
        block.unwrap_or_else(|| panic!("no {command}")).printed.as_str()
    };
    let neighbours = printed("numa explain java Counters 2 100000000 1\n");
    assert!(neighbours.contains("several threads change the same lines"), "{neighbours}");
    let apart = printed("numa explain --compare java Counters 2 100000000 16\n");
    assert!(apart.contains("BEFORE"), "{apart}");
    let (_, apart) = apart.split_once("Findings of BEFORE that are gone in AFTER").unwrap();
    assert!(apart.contains("several threads change the same lines"), "{apart}");
    let rows = printed("--as 'EPYC 9755 x2'");
    assert!(rows.contains("would be at memory of other nodes") && rows.contains("Java heap"), "{rows}");
    let raced = printed("numa tune");
    assert!(raced.contains("numa run -c 1 java"), "{raced}");
}

fn boot(recipe: &Counted) -> Result<Boot, Failure> {
    let java = runtimes::java(&place::root().join("docs/examples/Rows.java"))?;
    let guest = java.put_into(recipe.guest(TIMEOUT)?);
    guest
        .env("PATH", "/opt/java/runtime/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .env("CLASSPATH", "/opt/java")
        .boot()
}

#[test]
#[ignore = "thorough: a JVM five times in the simulator, 4 minutes"]
fn rows_of_a_jvm_are_local_on_one_node_and_only_there() {
    let recipe = counted("jvm");
    let result = boot(&recipe);
    let Some(boot) = or_skipped(&result) else { return };
    let results = recipe.results(boot);
    let [main, numa, spread, _, one] = &results[..] else { panic!("{results:?}") };
    for (command, text, _) in &results {
        let sum = |text: &str| text.lines().last().map(str::to_owned);
        assert_eq!(sum(text), sum(&main.1), "{command}: the sum is the same");
    }
    // The main thread creates the rows, wherever the heap may grow: UseNUMA makes nothing near, nor does interleaving.
    assert!(numa.2 > 0.5 * main.2 && spread.2 > 0.5 * main.2, "{results:?}");
    assert!(one.2 < 0.2 * main.2, "{results:?}");
}
