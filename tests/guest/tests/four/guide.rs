//! The pages of the guide are followed command by command: every block marked `sh` is run, and every
//! block marked `sh` and the name of an MPI library with that one.

use numakit_guest::runtimes::{Files, Mpi};
use numakit_guest::{Failure, Guest, Part, Shape, place, programs};
use std::collections::BTreeSet;
use std::time::Duration;

const PAGES: [&str; 1] = ["run"];

/// A block of a page that is marked as shell commands.
struct Block {
    commands: String,
    mpi: Option<Mpi>,
}

fn blocks(page: &str) -> Vec<Block> {
    let path = place::root().join("docs/guide").join(page).with_extension("md");
    let text = std::fs::read_to_string(path).unwrap();
    let marked = text.split("```sh").skip(1).map(|rest| rest.split_once('\n').unwrap());
    marked
        .map(|(mark, rest)| Block { commands: rest.split("```").next().unwrap().to_owned(), mpi: mpi(mark) })
        .collect()
}

/// The MPI library that a block needs.
fn mpi(mark: &str) -> Option<Mpi> {
    let name = mark.trim();
    let known = Mpi::ALL.into_iter().find(|mpi| mpi.name() == name);
    assert!(name.is_empty() || known.is_some(), "a block is marked 'sh {name}', which is no MPI library");
    known
}

/// The files of those MPI libraries that can be had; for each other one a line says why not.
fn mpis() -> Result<Vec<(Mpi, Files)>, Failure> {
    let mut found = Vec::new();
    let needed: BTreeSet<Mpi> =
        PAGES.iter().flat_map(|page| blocks(page)).filter_map(|block| block.mpi).collect();
    for mpi in needed {
        match mpi.files() {
            Ok(files) => found.push((mpi, files)),
            Err(failure) if failure.is_missing() => {
                numakit_skips::RUNTIMES.skip_part(format_args!("blocks for {}: {failure}", mpi.name()))
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(found)
}

pub fn guest() -> Result<Guest, Failure> {
    let mut guest = Guest::new(Shape::named("four")?)
        .memory_mib(1024)
        .timeout(Duration::from_secs(420))
        .program(&programs::numa()?)
        .program(&programs::compiled("affinity")?.unwrap())
        .env("GOMP_SPINCOUNT", "0")
        // The program of the pages: tells where it runs, and stays so long.
        .step(
            "app",
            &["sh", "-c", "printf '#!/bin/sh\\naffinity openmp; exec sleep ${1:-0}\\n' >app; chmod +x app"],
        );
    let mpis = mpis()?;
    guest = mpis.iter().fold(guest, |guest, (_, files)| files.put_into(guest));
    for page in PAGES {
        for (number, block) in blocks(page).into_iter().enumerate() {
            if block.mpi.is_some_and(|mpi| mpis.iter().all(|(here, _)| *here != mpi)) {
                continue;
            }
            let setup = block.mpi.map(Mpi::setup).unwrap_or_default();
            guest = guest.step(&format!("{page} {number}"), &["sh", "-exc", &(setup + &block.commands)]);
        }
    }
    Ok(guest)
}

fn part() -> Option<Part> {
    super::PARTS.part("guide")
}

#[test]
fn every_command_of_the_guide_works() {
    let Some(boot) = part() else { return };
    for page in PAGES {
        let blocks = blocks(page);
        assert!(blocks.len() >= 5, "{page}: {} blocks marked sh", blocks.len());
        for (number, block) in blocks.iter().enumerate() {
            let name = format!("{page} {number}");
            if block.mpi.is_some() && !boot.has(&name) {
                continue;
            }
            let (step, block) = (&boot[name.as_str()], &block.commands);
            let (text, errors) = (step.text(), step.errors());
            assert!(step.status.success(), "{page}:\n{block}\n{text}{errors}");
            // What the library complains about is no success either.
            assert!(!errors.contains("cannot"), "{page}:\n{block}\n{errors}");
        }
    }
}
