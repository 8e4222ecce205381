//! Whether the blocks that libnumalloc gives a thread are on the node where it runs, after it moved too.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::{Boot, Failure, Guest, Shape, or_skipped, programs};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

const LIBRARY: &str = "/usr/lib/libnumalloc.so";
const SETTINGS: [(&str, &str); 2] = [("small", "never"), ("huge", "always")];
/// Tests of the library that run on several nodes here: blocks go between the regions of all.
const ELSEWHERE: [(&str, &str); 3] =
    [("fuzz", "four_threads"), ("threads", "threads_move"), ("threads", "blocks_outlive_their_thread")];

/// A program of the library's tests.
fn test_program(name: &str) -> Result<PathBuf, Failure> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native/test/alloc");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-fno-builtin", "-pthread", "-DSANITIZED=1", "-o"]);
    cc.arg(&program).args([sources.join(name).with_extension("c"), sources.join("cases.c")]);
    match cc.status() {
        Ok(status) if status.success() => Ok(program),
        failed => Err(Failure::Request(format!("{name} cannot be built: {failed:?}"))),
    }
}

static BOOT: LazyLock<Result<Boot, Failure>> = LazyLock::new(|| {
    let mut guest = Guest::new(Shape::named("four")?)
        .memory_mib(512)
        .timeout(Duration::from_secs(900))
        .program(&programs::compiled("ownblocks")?.unwrap())
        .file(&programs::libnumalloc()?, LIBRARY)
        .step("quiet", &["sh", "-c", "echo 0 > /proc/sys/kernel/numa_balancing"]);
    for name in ["fuzz", "threads"] {
        guest = guest.program(&test_program(name)?);
    }
    for (name, pages) in SETTINGS {
        let set = format!("echo {pages} > /sys/kernel/mm/transparent_hugepage/enabled;");
        for (with, preload) in [("numalloc", LIBRARY), ("alone", "")] {
            let command = format!("{set} LD_PRELOAD={preload} ownblocks");
            guest = guest.step(&format!("{name} {with}"), &["sh", "-c", &command]);
        }
    }
    for (program, case) in ELSEWHERE {
        let command = format!("LD_PRELOAD={LIBRARY} {program} {case}");
        guest = guest.step(&format!("{program} {case}"), &["sh", "-c", &command]);
    }
    guest.boot()
});

/// Pages and local pages of a line such as `small pages 7 local 5`; `kind` ends with a blank or is empty.
fn local(text: &str, kind: &str) -> (f64, f64) {
    let start = format!("{kind}pages ");
    let rest = text.lines().find_map(|line| line.strip_prefix(&start)).unwrap();
    let (pages, local) = rest.split_once(" local ").unwrap();
    (pages.parse().unwrap(), local.parse().unwrap())
}

#[test]
fn blocks_are_on_the_node_of_the_thread_that_asked_for_them() {
    let Some(boot) = or_skipped(&BOOT) else { return };
    for (name, _) in SETTINGS {
        let (numalloc, alone) = (format!("{name} numalloc"), format!("{name} alone"));
        let (with, without) = (boot[numalloc.as_str()].succeeded(), boot[alone.as_str()].succeeded());
        assert_eq!(boot[numalloc.as_str()].errors(), "");
        for kind in ["small ", "large ", ""] {
            let ((pages, own), (others, others_own)) = (local(&with, kind), local(&without, kind));
            println!(
                "{name} pages, {kind}blocks: libnumalloc {own} of {pages} local, glibc {others_own} of {others}"
            );
            assert!(pages > 1000.0 && own >= 0.999 * pages, "{name} {kind}: {with}");
        }
        // Else the program would show nothing.
        let (pages, own) = local(&without, "");
        assert!(own < 0.95 * pages, "{name}: {without}");
    }
}

#[test]
fn blocks_go_between_the_regions_of_nodes() {
    let Some(boot) = or_skipped(&BOOT) else { return };
    for (program, case) in ELSEWHERE {
        let step = &boot[format!("{program} {case}").as_str()];
        step.succeeded();
        assert_eq!(step.errors(), "", "{program} {case}");
    }
}
