//! `numa bench mpi`, and `numa run --collectives auto` with what it keeps.

use crate::mpi::{Mpi, mpis, program};
use crate::runner::{Done, Folder};
use serde_json::{Value, json};
use std::path::PathBuf;

fn numa(folder: &Folder, arguments: &str) -> Done {
    let mut numa = folder.numa(arguments);
    numa.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    numa.env_remove("NUMAMPI_TABLE");
    Done::of(numa.output().unwrap())
}

/// The table of this machine that was kept in the folder.
fn table(folder: &Folder) -> Option<PathBuf> {
    let kept = std::fs::read_dir(folder.path("state/numakit/bench")).ok()?;
    kept.map(|entry| entry.unwrap().path()).find(|path| path.extension().is_some_and(|end| end == "mpi"))
}

#[test]
fn commands_that_measure_no_collectives_are_refused() {
    let folder = Folder::new("bench-mpi-refused");
    for (line, code, says) in [
        ("", 2, "<CMD>"),
        ("--share -- true", 2, "'true' measured nothing: no process called MPI_Init"),
        ("--share -- true", 2, "numa bench mpi -- mpirun -n 8 ./app"),
        ("--share -- false", 2, "'false' measured nothing: it ended with status 1"),
        ("--share -- /no/program", 127, "cannot run '/no/program'"),
        ("--share -- /etc/passwd", 126, "cannot run '/etc/passwd'"),
        ("--html /nowhere/page.html -- true", 2, "/nowhere/page.html"),
        ("--csv --json -- true", 2, "--csv"),
    ] {
        folder.run(&format!("bench mpi {line}")).says(code, says);
    }
    assert_eq!(table(&folder), None);
}

#[test]
fn ranks_that_cannot_measure_say_why() {
    let folder = Folder::new("bench-mpi-ranks");
    let Some(mpi) = mpis().into_iter().next() else { return };
    let (program, launcher) = (program(&folder, &mpi), &mpi.launcher);
    let app = program.display();
    for (command, why) in [
        (format!("{launcher} -n 1 {app} 5"), "there is one rank"),
        (format!("env RANKS_THREADS=1 {launcher} -n 2 {app} 5"), "the program has MPI_THREAD_MULTIPLE"),
        // As one on another machine does.
        (
            format!("{launcher} -n 1 {app} 5 : -n 1 env -u LD_PRELOAD {app} 5"),
            "rank 1 is on another machine, or lacks libnumampi.so",
        ),
    ] {
        let done = numa(&folder, &format!("bench mpi --share -- {command}"));
        done.says(2, &format!("measured nothing: {why}"));
        assert!(!done.err.contains("all results are right"), "{}", done.err);
    }
    assert_eq!(table(&folder), None);
}

/// A run with `auto`: what it says, and the calls that were the library's, of all calls.
fn auto(folder: &Folder, mpi: &Mpi, ranks: u32) -> (String, Vec<(String, u64, u64)>) {
    let app = folder.path(&format!("ranks-{}", mpi.name));
    let line = format!(
        "run --share --collectives auto --mpi-report=r.json {} -n {ranks} {} 30",
        mpi.launcher,
        app.display()
    );
    let done = numa(folder, &line);
    assert_eq!(
        (done.code, done.out.contains("all results are right")),
        (0, true),
        "{} {}",
        done.out,
        done.err
    );
    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path("r.json")).unwrap()).unwrap();
    let collectives = &report["jobs"][0]["collectives"];
    assert_eq!(collectives["which"], "auto", "{report}");
    let operations = collectives["operations"].as_array().unwrap().iter();
    let of = |one: &Value| {
        let number = |key: &str| one[key].as_u64().unwrap();
        (one["operation"].as_str().unwrap().to_owned(), number("served"), number("calls"))
    };
    (done.err, operations.map(of).collect())
}

#[test]
fn what_was_measured_is_kept_and_auto_has_exactly_its_rows() {
    let folder = Folder::new("bench-mpi");
    let Some(mpi) = mpis().into_iter().last() else { return };
    let app = program(&folder, &mpi);
    let (said, _) = auto(&folder, &mpi, 2);
    assert!(said.contains("those of this machine were not measured"), "{said}");
    assert!(said.contains("numa bench mpi -- mpirun -n 2"), "{said}");

    let command = format!("{} -n 2 {} 5", mpi.launcher, app.display());
    // Two ranks on one CPU of several are not how they run on two.
    let squeezed = numa(&folder, &format!("bench mpi --share -c 1 -- {command}"));
    squeezed.says(0, "not kept: 2 ranks had 1 of ");
    assert_eq!(table(&folder), None);
    let done = numa(&folder, &format!("bench mpi --share -c 2 -- {command}"));
    assert_eq!(done.code, 0, "{} {}", done.out, done.err);
    assert!(
        !done.out.contains("all results are right") && !done.err.contains("all results are right"),
        "{}",
        done.out
    );
    assert!(done.out.contains("2 ranks\n\nOPERATION") && done.out.contains("\nBarrier "), "{}", done.out);
    let table = table(&folder).unwrap();
    assert!(
        done.err.contains(&format!("kept for 'numa run --collectives auto' in {}", table.display())),
        "{}",
        done.err
    );
    let text = std::fs::read_to_string(&table).unwrap();
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("measured Barrier 2 0 "), "{text}");

    // What pays differs from machine to machine: rows are written here.
    let library = first.splitn(15, ' ').last().unwrap();
    std::fs::write(&table, format!("Barrier 2 2 0 {library}\nAllreduce 2 2 8 {library}\n")).unwrap();
    let (said, calls) = auto(&folder, &mpi, 2);
    let is = |name: &str, served: u64, of: u64| (name.to_owned(), served, of);
    assert_eq!(calls[1..], [is("Bcast", 0, 60), is("Reduce", 0, 60), is("Allreduce", 120, 120)], "{said}");
    // The first barrier comes before the first sum; those of 200 communicators are used once.
    assert_eq!((calls[0].1, calls[0].2 >= 60 + 400), (58, true), "{calls:?}");
    assert!(
        said.contains("Collectives of the library (--collectives auto): 58 of ")
            && said.contains("120 of 120 Allreduce"),
        "{said}"
    );
    let (said, calls) = auto(&folder, &mpi, 3);
    assert!(said.contains("this number of ranks was not measured with this MPI"), "{said}");
    // The rows are those of communicators of two ranks, which has one of the halves.
    let served: Vec<u64> = calls.iter().map(|(_, served, _)| *served).collect();
    assert_eq!(served, [56, 0, 0, 0], "{calls:?}");

    let done = numa(&folder, &format!("bench mpi --share -c 2 --json -- {command}"));
    let results: Value = serde_json::from_str(&done.out).unwrap();
    let result = &results["benchmarks"][0];
    assert_eq!(
        (&result["name"], &result["tables"][0]["rows"][0]),
        (&json!("mpi"), &json!("Barrier")),
        "{results}"
    );
    // The rows of before are gone.
    assert!(std::fs::read_to_string(&table).unwrap().starts_with("measured Barrier 2 0 "));
}
