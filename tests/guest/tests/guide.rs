//! The pages of the guide are followed command by command: every block marked `sh` is run.
#![allow(clippy::unwrap_used)]

use numakit_guest::{Boot, Failure, Guest, Shape, or_skipped, place, programs};
use std::sync::LazyLock;
use std::time::Duration;

const PAGES: [&str; 1] = ["run"];

/// The blocks of a page that are marked as shell commands.
fn blocks(page: &str) -> Vec<String> {
    let path = place::root().join("docs/guide").join(page).with_extension("md");
    let text = std::fs::read_to_string(path).unwrap();
    let blocks = text.split("```sh\n").skip(1);
    blocks.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

static BOOT: LazyLock<Result<Boot, Failure>> = LazyLock::new(|| {
    let mut guest = Guest::new(Shape::named("four")?)
        .timeout(Duration::from_secs(420))
        .program(&programs::numa()?)
        .program(&programs::compiled("affinity")?.unwrap())
        .env("GOMP_SPINCOUNT", "0")
        // The program of the pages: tells where it runs, and stays so long.
        .step(
            "app",
            &["sh", "-c", "printf '#!/bin/sh\\naffinity openmp; exec sleep ${1:-0}\\n' >app; chmod +x app"],
        );
    for page in PAGES {
        for (number, block) in blocks(page).into_iter().enumerate() {
            guest = guest.step(&format!("{page} {number}"), &["sh", "-exc", &block]);
        }
    }
    guest.boot()
});

#[test]
fn every_command_of_the_guide_works() {
    let Some(boot) = or_skipped(&BOOT) else { return };
    for page in PAGES {
        let blocks = blocks(page);
        assert!(blocks.len() >= 5, "{page}: {} blocks marked sh", blocks.len());
        for (number, block) in blocks.iter().enumerate() {
            let step = &boot[format!("{page} {number}").as_str()];
            let (text, errors) = (step.text(), step.errors());
            assert!(step.status.success(), "{page}:\n{block}\n{text}{errors}");
            // What the library complains about is no success either.
            assert!(!errors.contains("cannot"), "{page}:\n{block}\n{errors}");
        }
    }
}
