use crate::runner::{Done, Folder, numascopes_fifo};
use numakit_sensors::numaconnect2::table::COUNTERS;
use numakit_testing::{cards, machines, sysfs};

/// A folder with a machine of three interconnect cards in `n2`.
fn with_cards(name: &str) -> Folder {
    let folder = Folder::new(name);
    let mut tree = machines::machine("opteron-15h").unwrap().tree;
    cards::put(&mut tree, 3, 0);
    sysfs::write(&tree, &folder.path("n2")).unwrap();
    folder
}

#[test]
fn cards_in_files_are_listed_watched_and_recorded() {
    let folder = with_cards("cards");
    let list = folder.run("--sysroot n2 list n2Cachelines*").out;
    assert!(
        list.contains("numaconnect2.n2CachelinesRecv  count  counter  device 0-2  Whole lines"),
        "{list}"
    );
    let doctor = folder.run("--sysroot n2 doctor --all").out;
    assert!(doctor.contains("360 series"), "{doctor}");
    let csv = |arguments: &str| -> Vec<String> {
        let done = folder.run(&format!("--sysroot n2 stat -i 5ms -n 2 --csv {arguments}"));
        assert_eq!(done.code, 0, "{}", done.err);
        done.out.lines().next().unwrap().split(',').map(str::to_owned).collect()
    };
    assert_eq!(csv("-e n2Cachelines*").len(), 2 + 6);
    assert_eq!(
        csv("-e n2Cachelines* --per machine")[2..],
        ["numaconnect2.n2CachelinesRecv", "numaconnect2.n2CachelinesSent"]
    );
    assert_eq!(csv("-e n2CachelinesRecv --per device")[4], "numaconnect2.n2CachelinesRecv@card2");
    assert_eq!(csv("-m n2CycRmpeHalf --per device")[4], "n2CycRmpeHalf@card2");
    assert_eq!(csv("--per device").len(), 2 + 3 * 4);
    for (option, columns) in [("", 6), ("--per device", 6), ("--per machine", 2)] {
        let line =
            format!("--sysroot n2 record {option} -i 5ms -e n2Cachelines* -o a.arrows --force -- true");
        folder.run(&line).says(0, "samples");
        let rows = folder.read("a.arrows");
        assert!(rows.header.series.len() == columns && rows.samples() >= 1, "{option}");
    }
    let counter = COUNTERS[40];
    let sum =
        (0..3).map(|card| cards::counter_value(card, counter.register, 0)).sum::<u64>() & ((1 << 48) - 1);
    let name = counter.name;
    folder
        .run(&format!("--sysroot n2 record --per machine -e {name} -o b.arrows -- true"))
        .says(0, "samples");
    assert_eq!(folder.read("b.arrows").values(&format!("numaconnect2.{name}"))[0], sum);
}

#[test]
fn without_cards_the_reason_is_printed() {
    let (folder, _fifo) = (Folder::new("nocards"), numascopes_fifo());
    if folder.run("doctor --all").out.contains("ok       numaconnect2: ") {
        numakit_skips::MACHINE.skip("this machine has interconnect cards");
        return;
    }
    let link = folder.path("numascope");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_numa"), &link).unwrap();
    let numascope = |line: &str| {
        let mut command = std::process::Command::new(&link);
        Done::of(folder.isolate(&mut command).args(line.split(' ')).output().unwrap())
    };
    numascope("-events n2CachelinesRecv stat true")
        .says(2, "event 'n2CachelinesRecv' is unavailable here: counters of NumaConnect2 cards");
    numascope("-events n2Cachelines* stat true").says(2, "NumaConnect2 cards");
    let doctor = folder.run("doctor --all").out;
    assert!(doctor.contains("numaconnect2: counters of NumaConnect2 cards"), "{doctor}");
    folder.run("stat --per device").says(2, "no series is measured per device; use --per machine");
}
