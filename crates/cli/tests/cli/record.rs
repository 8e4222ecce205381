use crate::runner::{Done, Folder, Started};
use numakit_sys::poll;
use numakit_sys::pty::Pty;
use numakit_testing::until;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn a_command_is_observed_from_start_to_end() {
    let folder = Folder::new("observe");
    let done = folder.run("record -i 2ms -o a.arrows -- sleep 0.1");
    assert_eq!(done.code, 0, "{}", done.err);
    let rows = folder.read("a.arrows");
    assert!(rows.damage.is_none() && rows.samples() >= 2);
    assert_eq!(rows.header.command.as_deref(), Some("sleep 0.1"));
    let labels = rows.labels();
    assert!(
        labels.contains(&"numakit:command sleep 0.1") && labels.contains(&"numakit:exit 0"),
        "{labels:?}"
    );
    assert!(rows.header.topology.is_some() && !rows.header.kernel.is_empty());
    assert!(rows.values("vmstat.pgfault").windows(2).all(|w| w[0] <= w[1]));
    assert!(!folder.path("a.arrows.tail").exists());
}

#[test]
fn a_short_command_at_a_long_interval_has_a_row_at_both_ends() {
    let folder = Folder::new("ends");
    folder.run("record -i 1h -e pgfault -o a.arrows -- true").says(0, "2 samples");
    assert_eq!(folder.read("a.arrows").values("vmstat.pgfault").len(), 2);
}

#[test]
fn a_recording_has_the_zone_of_its_machine() {
    let folder = Folder::new("zone");
    for (zone, minutes) in [("XYZ-5:30", 330), ("ABC+3:30", -210), ("UTC0", 0)] {
        let mut command = folder.numa("record -i 1h -e pgfault -o a.arrows --force -- true");
        Done::of(command.env("TZ", zone).output().unwrap()).says(0, "2 samples");
        assert_eq!(folder.read("a.arrows").header.utc_offset, Some(minutes), "{zone}");
    }
}

#[test]
fn the_status_is_that_of_the_command() {
    let folder = Folder::new("status");
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137), ("kill -TERM $$", 143)] {
        let done = folder.numa("record -e pgfault --").args(["sh", "-c", script]).output().unwrap();
        assert_eq!(done.status.code(), Some(code), "{script}");
    }
    folder
        .run("record -e pgfault -o none.arrows -- /no/such/program")
        .says(127, "cannot run '/no/such/program'");
    folder.run("record -e pgfault -o none.arrows -- /").says(126, "cannot run '/'");
    assert!(!folder.path("none.arrows").exists());
}

#[test]
fn signals_end_a_recording_cleanly() {
    let folder = Folder::new("signals");
    for signal in ["INT", "TERM", "HUP"] {
        let started = folder.start(&format!("record -e pgfault -o {signal}.arrows"));
        started.signal(signal);
        assert_eq!(started.end().code, 0);
        let rows = folder.read(&format!("{signal}.arrows"));
        assert!(rows.damage.is_none() && rows.samples() >= 2);
    }
    assert_eq!(std::fs::read_dir(folder.path("run/numakit")).unwrap().count(), 0);
}

#[test]
fn nohup_keeps_a_recording_alive() {
    let folder = Folder::new("nohup");
    let mut command = std::process::Command::new("nohup");
    command.arg(env!("CARGO_BIN_EXE_numa")).args(["record", "-e", "pgfault", "-o", "a.arrows"]);
    let output = std::process::Stdio::null;
    let mut started = Started::of(folder.isolate(&mut command).stderr(output()).stdout(output()));
    until!(folder.run("ctl status").code == 0);
    started.signal("HUP");
    folder.run("ctl label still there").says(0, "");
    folder.run("ctl stop").says(0, "");
    assert_eq!(started.wait().code(), Some(0));
    assert_eq!(folder.read("a.arrows").labels_without_losses(), ["still there"]);
}

#[test]
fn a_signal_reaches_the_command_and_its_status_is_returned() {
    let folder = Folder::new("forward");
    let mut command = folder.numa("record -e pgfault -o a.arrows --");
    command.args(["sh", "-c", "trap 'exit 5' TERM; touch ready; while :; do sleep 0.01; done"]);
    let started = Started::of(command.stderr(std::process::Stdio::piped()));
    until!(folder.path("ready").exists());
    started.signal("TERM");
    assert_eq!(started.end().code, 5);
    assert!(folder.read("a.arrows").labels().contains(&"numakit:exit 5"));
}

#[test]
fn names_are_generated_and_kept() {
    let folder = Folder::new("names");
    folder.run("record -e pgfault -- true").says(0, "recording to numa-1.arrows");
    folder.run("record -e pgfault -- true").says(0, "recording to numa-2.arrows");
    let first = std::fs::read(folder.path("numa-1.arrows")).unwrap();
    folder
        .run("record -e pgfault -o numa-1.arrows -- true")
        .says(2, "exists; choose another name, or use --force");
    assert_eq!(std::fs::read(folder.path("numa-1.arrows")).unwrap(), first);
    folder.run("record -e pgfault -o numa-1.arrows --force -- true").says(0, "samples");
    assert_ne!(std::fs::read(folder.path("numa-1.arrows")).unwrap(), first);
}

#[test]
fn two_recorders_work_at_the_same_time() {
    let folder = Folder::new("two");
    let one = folder.start("record -i 1ms -o one.arrows");
    let two = folder.start("record -i 1ms -o two.arrows");
    folder.run("ctl stop").says(2, "several numa processes run");
    for started in [one, two] {
        folder.run(&format!("ctl --pid {} stop", started.id())).says(0, "");
        assert_eq!(started.end().code, 0);
    }
    for name in ["one.arrows", "two.arrows"] {
        let rows = folder.read(name);
        assert!(rows.damage.is_none() && rows.samples() >= 2);
    }
}

#[test]
fn several_running_processes_are_recorded_together() {
    let folder = Folder::new("several");
    let sleep = || Started::of(Command::new("sleep").arg("1000").stdin(Stdio::null()));
    let (one, two) = (sleep(), sleep());
    let options = format!("-i 5ms -e task.processes -o a.arrows --pid {},{}", one.id(), two.id());
    let started = folder.start(&format!("record {options}"));
    until!(folder.run("ctl status").out.split(' ').nth(2).is_some_and(|n| n.parse::<u64>().unwrap() > 100));
    folder.run("ctl stop").says(0, "");
    assert_eq!(started.end().code, 0);
    assert_eq!(folder.read("a.arrows").values("task.processes").last(), Some(&2));
    folder.run("record --pid 4194304 -o b.arrows").says(2, "--pid 4194304: there is no such process; ");
    folder.run("stat --name no-such-program-here").says(2, "no program that runs has a matching name; ");
}

#[test]
fn a_killed_recorder_loses_at_most_the_row_being_written() {
    let folder = Folder::new("kill");
    let started = folder.start("record -i 1ms -e vmstat,self -o a.arrows");
    folder.run("ctl label before").says(0, "");
    until!({
        folder.run("ctl status").out.split(' ').nth(2).is_some_and(|n| n.parse::<u64>().unwrap() > 1300)
    });
    started.signal("KILL");
    started.end();
    let rows = folder.read("a.arrows");
    assert!(rows.damage.is_none() && rows.samples() > 1300, "{:?}", rows.damage);
    assert!(rows.labels().contains(&"before"));
    let samples = rows.samples();
    let done = folder.run("recover a.arrows");
    assert!(done.code == 0 && done.out.contains("added"), "{}{}", done.out, done.err);
    let again = folder.read("a.arrows");
    assert_eq!((again.samples(), again.damage), (samples, None));
    assert!(!folder.path("a.arrows.tail").exists());
    // The next numa removes the files of the killed one in the run directory.
    folder.run("ctl stop").says(2, "no numa is running");
    assert_eq!(std::fs::read_dir(folder.path("run/numakit")).unwrap().count(), 0);
}

#[test]
fn a_recording_that_still_grows_is_read_without_a_gap() {
    let folder = Folder::new("growing");
    let started = folder.start("record -i 1ms -e self.lost -o a.arrows");
    let mut last = 0;
    until!({
        let rows = folder.read("a.arrows");
        assert_eq!(rows.damage, None);
        assert!(rows.samples() >= last, "{} after {last}", rows.samples());
        last = rows.samples();
        last >= 1100
    });
    folder.run("ctl stop").says(0, "");
    assert_eq!(started.end().code, 0);
}

#[test]
fn pyarrow_and_polars_load_a_recording() {
    let Some(python) = std::env::var_os("NUMAKIT_PYTHON") else {
        return numakit_skips::PYTHON.skip("NUMAKIT_PYTHON names no Python; 'cargo xtask test' sets it");
    };
    let folder = Folder::new("python");
    folder.run("record -i 1ms -o a.arrows -- sleep 1.2").says(0, "samples");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/load_recording.py");
    let output = std::process::Command::new(python)
        .arg(script)
        .arg(folder.path("a.arrows"))
        .arg("vmstat.pgfault")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let rows = folder.read("a.arrows");
    let total = rows.total();
    assert!(text.contains(&format!("rows {total}")), "{total}: {text}");
    let values = rows.values("vmstat.pgfault");
    let (first, last) = (values[0], values[values.len() - 1]);
    let line = format!("vmstat.pgfault: {first} .. {last}, {} values", values.len());
    assert!(text.contains(&line), "{line}: {text}");
}

#[test]
fn measuring_a_recording_says_where_the_threads_of_its_command_waited() {
    let folder = Folder::new("waited");
    let Some(program) = crate::explain::program(&folder, "g++", "kernels.cpp") else { return };
    let command = format!("record -o a.arrows -- {} chain 64 1", program.display());
    assert_eq!(folder.run(&command).code, 0);
    let rows = folder.read("a.arrows");
    let last = |name: &str| rows.values(name).last().copied();
    let Some(samples) = last("access.samples@node0") else {
        let why = rows.header.absent.iter().find(|absent| absent.name.starts_with("access")).unwrap();
        return numakit_skips::SAMPLES.skip(&why.why);
    };
    let times = ["near", "unknown", "contended", "cached", "computing"];
    let parts = times.map(|name| last(&format!("access.{name}@node0")).unwrap_or(0));
    println!("{samples} samples: {parts:?}");
    assert!(samples >= 20, "{samples}");
    // As little as a slow observer leaves, and as much as samples of 199 Hz can exceed what they represent.
    let (sum, cpu) = (parts.iter().sum::<u64>() as f64, last("task.cpu").unwrap() as f64 * 1e7);
    assert!(sum > 0.5 * cpu && sum < 1.3 * cpu, "{sum} of {cpu} ns");
    assert!(parts[0] > parts[4], "a chain waits for memory: {parts:?}");
    assert!(
        folder.run(&format!("record --sample-rate 0 -o b.arrows -- {} chain 1 0.1", program.display())).code
            == 0
    );
    let without = folder.read("b.arrows");
    let absent = without.header.absent.iter().find(|absent| absent.name == "access").unwrap();
    assert_eq!(absent.why.seen, "no samples are taken");
}

#[test]
fn measuring_the_whole_machine_is_sampled_if_it_is_asked_for() {
    let folder = Folder::new("machine");
    let Some(program) = crate::explain::program(&folder, "g++", "kernels.cpp") else { return };
    // Nothing is sampled unasked.
    assert!(!folder.run("stat -n 1 -i 50ms --json").out.contains("access."));
    let other = Started::of(std::process::Command::new(program).args(["chain", "64", "30"]));
    let watched = folder.run("stat -e access -i 100ms -n 10 --json");
    drop(other);
    if watched.code == 2 && watched.err.contains("counts of whole CPUs") {
        return numakit_skips::MACHINE.skip(&watched.err);
    }
    assert_eq!(watched.code, 0, "{}", watched.err);
    // Nanoseconds in a second, and samples in a second.
    let most = |name: &str| {
        let rows = watched.out.lines().map(|row| serde_json::from_str::<serde_json::Value>(row).unwrap());
        rows.filter_map(|row| row[format!("access.{name}@node0")].as_f64()).fold(0.0, f64::max)
    };
    assert!(most("samples") >= 100.0 && most("near") > 1e8, "{}", watched.out);
}

#[test]
fn a_terminal_obeys_nothing_of_the_name_of_a_program() {
    let folder = Folder::new("record-escapes");
    let name = "x\u{1b}]0;PWNED\u{7}\u{1b}[31m";
    std::fs::copy("/bin/true", folder.path(name)).unwrap();
    let mut record = folder.numa("record -i 20ms -o r.arrows --");
    let recorded = Done::of(record.arg(format!("./{name}")).output().unwrap());
    recorded.says(0, "");
    for text in [recorded.err, folder.run("show r.arrows").out, folder.run("show missing\u{1b}[2J").err] {
        assert!(!text.contains(|letter: char| letter.is_control() && !"\n\t".contains(letter)), "{text:?}");
    }
    assert!(folder.run("show r.arrows").out.contains("PWNED"));
    // A file has the name as it is; a terminal does not.
    let export = "export --to csv r.arrows -o -";
    assert!(folder.run(export).out.contains(name));
    let shown = at_terminal(&mut folder.numa(export));
    assert!(shown.contains("]0;PWNED") && !shown.contains(['\u{1b}', '\u{7}']), "{shown:?}");
}

/// What a command prints to a terminal.
fn at_terminal(command: &mut std::process::Command) -> String {
    let pty = Pty::open(80, 25).unwrap();
    let mut started = Started::keeps(pty.spawn(command).unwrap());
    let mut shown = Vec::new();
    let mut buffer = [0; 4096];
    // The terminal keeps what was written before the program ended.
    until!({
        let has_ended = started.child().try_wait().unwrap().is_some();
        while poll::readable(&[pty.as_fd()], Some(Duration::ZERO)).unwrap() == [true] {
            let count = pty.read(&mut buffer).unwrap();
            shown.extend_from_slice(&buffer[..count]);
        }
        has_ended
    });
    String::from_utf8(shown).unwrap()
}
