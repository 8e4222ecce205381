use crate::runner::{Done, Folder, Started, numascopes_fifo};
use numakit_testing::until;
use std::process::Command;

fn numascope(folder: &Folder, arguments: &str) -> Done {
    Done::of(numascope_command(folder, arguments).output().unwrap())
}

fn numascope_command(folder: &Folder, arguments: &str) -> Command {
    let link = folder.path("numascope");
    if !link.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_numa"), &link).unwrap();
    }
    let mut command = Command::new(link);
    folder.isolate(&mut command).args(arguments.split_whitespace());
    command
}

#[test]
fn numascope_lines_work() {
    let (folder, _fifo) = (Folder::new("numascope"), numascopes_fifo());
    assert!(numascope(&folder, "-list").out.contains("pgfault"));
    let done = numascope(&folder, "-events pgfault,pgfree -interval 5 -filename f.json record sleep 0.1");
    assert_eq!(done.code, 0, "{}", done.err);
    let rows = folder.read("f.json");
    assert!(rows.samples() >= 1 && rows.header.series.len() == 2);
    names_are_those_of_numascope(&folder);
    let done = numascope(&folder, "-interval 10 -events pgfault stat sleep 0.1");
    assert!(done.code == 0 && done.out.contains("pgfault"), "{}{}", done.out, done.err);
    let help = numascope(&folder, "-help");
    assert!(help.code == 0 && help.out.contains("-debug"), "{}{}", help.out, help.err);
    numascope(&folder, "-interval 0 stat").says(2, "1 to 3600000");
    numascope(&folder, "-events pgfalt record true").says(2, "pgfault");
    numascope(&folder, "dance").says(2, "stat, record, live");
    numascope(&folder, "-debug").says(2, "stat, record or live");
    commands_arrive_through_the_fifo_of_numascope(&folder);
}

/// An existing name gets a number, also by `numa ctl`.
fn names_are_those_of_numascope(folder: &Folder) {
    let first = std::fs::read(folder.path("f.json")).unwrap();
    for name in ["f_1.json", "f_2.json"] {
        let done = numascope(folder, "-events pgfault -filename f.json record true");
        done.says(0, &format!("recording to {name},"));
        done.says(0, &format!(" in {name}; 'numa show {name}'"));
        assert!(folder.read(name).damage.is_none());
    }
    assert_eq!(std::fs::read(folder.path("f.json")).unwrap(), first);
    let done = numascope(folder, "-overwrite -events pgfault -filename f.json record true");
    done.says(0, "recording to f.json,");
    assert_ne!(std::fs::read(folder.path("f.json")).unwrap(), first);
    numascope(folder, "-events pgfault -filename f.arrows record true").says(0, "f.arrows");
    numascope(folder, "-events pgfault -filename f.arrows record true").says(0, "f_1.arrows");
    let mut command = numascope_command(folder, "-interval 5 -events pgfault record");
    let piped = std::process::Stdio::piped;
    let started = Started::of(command.stderr(piped()).stdout(piped()));
    until!(folder.run("ctl status").out.contains("recording to output.json"));
    for _ in 0..2 {
        folder.run("ctl record y.json").says(0, "");
    }
    folder.run("ctl stop").says(0, "");
    started.end().says(0, "y_1.json");
    for name in ["output.json", "y.json", "y_1.json"] {
        let rows = folder.read(name);
        assert!(rows.damage.is_none() && rows.header.program == "numascope", "{name}");
    }
    let names = std::fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(
        !names.into_iter().any(|name| name.to_string_lossy().contains(".json.")),
        "no other file is left"
    );
}

#[test]
fn unavailable_events_are_dropped_with_a_message() {
    let (folder, _fifo) = (Folder::new("dropped"), numascopes_fifo());
    let done = numascope(&folder, "-interval 5 -events pgfault,pgfalt,pgfree -filename f.json record true");
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.err.contains("numa: dropped: unknown event 'pgfalt'; nearest: pgfault"), "{}", done.err);
    assert_eq!(folder.read("f.json").header.series.len(), 2);
    // It is an error if no event is left.
    numascope(&folder, "-events pgfalt,nothing stat true").says(2, "unknown event 'pgfalt'");
}

#[test]
fn numa_drops_events_and_prints_sensors_when_asked() {
    let folder = Folder::new("skip");
    let record = |options: &str| folder.run(&format!("record --force -o f.arrows -i 5ms {options} -- true"));
    record("-e pgfault,pgfalt").says(2, "unknown event 'pgfalt'");
    let done = record("-e pgfault,pgfalt --skip-unavailable");
    done.says(0, "numa: dropped: unknown event 'pgfalt'; nearest: pgfault");
    assert!(!done.err.contains("detected"), "{}", done.err);
    assert_eq!(folder.read("f.arrows").header.series.len(), 1);
    record("-e pgfalt --skip-unavailable").says(2, "unknown event 'pgfalt'");
    let done = record("-e pgfault -v");
    for line in ["numa: detected vmstat: ", "numa: not detected ", "numa: samples pgfault\n"] {
        assert!(done.code == 0 && done.err.contains(line), "{line}: {}", done.err);
    }
    record("-e pgfault,pgfalt -v").says(2, "unknown event 'pgfalt'");
}

#[test]
fn its_default_selection_works_without_cards_and_has_its_table() {
    let (folder, _fifo) = (Folder::new("selection"), numascopes_fifo());
    let done = numascope(&folder, "-debug -interval 20 stat sleep 0.3");
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.err.contains("numa: detected vmstat: "), "{}", done.err);
    assert!(done.err.contains("numa: samples pgfault,"), "{}", done.err);
    let mut lines = done.out.lines().filter(|line| !line.starts_with("- "));
    let headings: Vec<&str> = lines.next().unwrap().split(' ').collect();
    for name in ["pgfault", "pgfree"] {
        assert!(headings.contains(&name), "{headings:?}");
    }
    if !headings.contains(&"n2RdBlkXSent") {
        assert!(done.err.contains("dropped: event 'n2RdBlkXSent' is unavailable here: "), "{}", done.err);
    }
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split_whitespace().collect()).collect();
    assert!(rows.len() >= 2, "{}", done.out);
    for row in &rows {
        assert!(row.len() == headings.len() && row.iter().all(|word| word.parse::<i64>().is_ok()), "{row:?}");
    }
}

/// Part of the first test: there is only one such FIFO, and numascope opens it too.
fn commands_arrive_through_the_fifo_of_numascope(folder: &Folder) {
    if numakit_sys::user::id() != 0 {
        numakit_skips::ROOT.skip_part("the original's FIFO is root's");
        return;
    }
    let started = folder.start("record -i 5ms -e pgfault --ctl-compat -o compat.arrows");
    folder.run("record --ctl-compat -- true").says(2, "another recorder uses it");
    let fifo = std::path::Path::new("/run/numascope-ctl");
    let order = |text: &str| std::fs::write(fifo, text).unwrap();
    order("label hello\n");
    order("record second.arrows\n");
    until!(folder.path("second.arrows").exists());
    started.signal("KILL");
    started.end();
    assert!(folder.read("compat.arrows").labels().contains(&"hello"));
    // The FIFO of a killed recorder does not matter.
    folder.run("record -e pgfault --ctl-compat -o third.arrows -- true").says(0, "samples");
    assert!(!fifo.exists());
}
