//! Files that verbs write: completely or not at all, and never in place of one that is not regular.

use crate::runner::{Done, Folder, Mounted, read};
use numakit_export::FORMATS;
use numakit_testing::until;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::Command;

/// Lines that replace a file.
const WRITERS: [&str; 5] = [
    "record -e pgfault --force -o NAME -- true",
    "capture --force -o NAME",
    "topo --svg NAME",
    "plan --svg NAME",
    "show a.arrows --force --html NAME",
];

#[test]
fn a_full_disk_leaves_the_old_file() {
    let folder = Folder::new("outputs-full");
    folder.run("record -e pgfault -o a.arrows -- true").says(0, "");
    let Some(_mounted) = Mounted::at(&folder, "small", "size=64k") else { return };
    let old = std::fs::read(folder.path("a.arrows")).unwrap();
    let place = folder.path("small/old");
    std::fs::write(&place, &old[..1000]).unwrap();
    let mut rest = std::fs::File::create(folder.path("small/rest")).unwrap();
    while std::io::Write::write_all(&mut rest, &[1; 4096]).is_ok() {}
    let mut done: Vec<(&str, Done)> =
        WRITERS.into_iter().map(|line| (line, folder.run(&line.replace("NAME", "small/old")))).collect();
    done.push(("export", folder.run("export a.arrows --to csv -o small/new")));
    let (kept, new) = (std::fs::read(&place).unwrap(), folder.path("small/new").exists());
    let left = std::fs::read_dir(folder.path("small")).unwrap().count();
    drop(rest);
    for (line, done) in done {
        let refused = done.err.contains("No space left") || has_no_page(&done);
        assert!(done.code == 2 && refused, "{line}: {}", done.err);
    }
    assert_eq!((kept, new, left), (old[..1000].to_vec(), false, 2));
}

/// Whether this numa cannot write the page, and has said so.
fn has_no_page(done: &Done) -> bool {
    let has_none = done.err.contains("built without its web page");
    if has_none {
        numakit_skips::PAGE.skip_part("show --html: this numa has no page");
    }
    has_none
}

/// Opening a FIFO would block; a device would be removed.
#[test]
fn files_that_are_not_regular_are_neither_written_nor_read() {
    let folder = Folder::new("outputs-odd");
    folder.run("record -e pgfault -o a.arrows -- true").says(0, "");
    let fifo = folder.path("fifo");
    drop(numakit_sys::command::named_pipe(&fifo, 0o600).unwrap());
    let mut names = vec!["fifo"];
    let device = Command::new("mknod").arg(folder.path("full")).args(["c", "1", "7"]).output().unwrap();
    if device.status.success() {
        names.push("full");
    } else {
        numakit_skips::ROOT.skip_part("making a device needs root");
    }
    for name in names {
        let lines = WRITERS.into_iter().chain(["export a.arrows --to csv -o NAME"]);
        for line in lines {
            let done = folder.run(&line.replace("NAME", name));
            let refused = done.err.contains("not a regular file") || has_no_page(&done);
            assert!(done.code == 2 && refused, "{line}: {} {}", done.code, done.err);
        }
        for line in ["show NAME", "export NAME --to csv", "recover NAME", "show a.arrows --formulas NAME"] {
            folder.run(&line.replace("NAME", name)).says(2, "not a regular file");
        }
    }
    assert!(std::fs::symlink_metadata(&fifo).unwrap().file_type().is_fifo());
    let device = std::fs::symlink_metadata(folder.path("full"));
    assert!(device.is_err() || device.unwrap().file_type().is_char_device());
}

#[test]
fn a_recording_goes_to_standard_output() {
    let folder = Folder::new("outputs-stdout");
    let mut command = folder.numa("record -i 2ms -e pgfault -o - --");
    command.args(["sh", "-c", "echo from the command; sleep 0.1"]);
    let output = command.output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && messages.contains("from the command"), "{messages}");
    assert!(
        messages.contains("recording to standard output") && !messages.contains("numa show"),
        "{messages}"
    );
    let path = folder.path("a.arrows");
    std::fs::write(&path, &output.stdout).unwrap();
    let rows = read(&path);
    assert!(rows.damage.is_none() && rows.samples() >= 2);
    // Truncated like after a killed recorder, it can still be repaired.
    std::fs::write(&path, &output.stdout[..output.stdout.len() - 8]).unwrap();
    assert!(read(&path).damage.unwrap().contains("was not closed"));
    folder.run("recover a.arrows").says(0, "");
    assert_eq!((read(&path).samples(), read(&path).damage), (rows.samples(), None));
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 2, "no other file is left");
    let capture = folder.numa("capture -o -").output().unwrap();
    assert!(capture.status.success() && String::from_utf8_lossy(&capture.stderr).contains("CPUs"));
    std::fs::write(folder.path("c.tar.zst"), capture.stdout).unwrap();
    assert_eq!(folder.run("topo --sysroot c.tar.zst").code, 0);
}

#[test]
fn a_reader_that_stops_ends_the_recording() {
    let folder = Folder::new("outputs-reader");
    let mut started = folder.spawn("record -i 1ms -o -");
    drop(started.child().stdout.take());
    started.end().says(1, "recording to standard output stopped: Broken pipe");
    // A reader that does not read delays neither signals nor the end.
    let mut started = folder.spawn("record -i 1ms -o -");
    let reader = started.child().stdout.take();
    let fifo = folder.path(&format!("run/numakit/{}.fifo", started.id()));
    until!(fifo.exists());
    started.signal("TERM");
    let done = started.end();
    drop(reader);
    done.says(1, "its reader reads nothing");
}

#[test]
fn names_of_other_formats_are_refused_with_the_right_one() {
    let folder = Folder::new("outputs-names");
    for format in FORMATS {
        let name = format!("w.{}", format.extension);
        let instead = Path::new(&name).with_extension("arrows");
        let says = format!("record to {}, and", instead.display());
        folder.run(&format!("record -e pgfault -o {name} -- true")).says(2, &says);
        assert!(!folder.path(&name).exists());
    }
    let started = folder.start("record -i 5ms -e pgfault -o a.arrows");
    folder.run("ctl record y.json").says(2, "y.arrows, and 'numa export");
    folder.run("ctl record -").says(2, "only 'numa record -o -' writes to standard output");
    folder.run("ctl stop").says(0, "");
    assert_eq!(started.end().code, 0);
    assert!(!folder.path("y.json").exists());
}

/// Two whole batches and more, and one damaged byte in the second.
#[test]
fn one_damaged_byte_is_reported_with_its_time_and_recovered() {
    let folder = Folder::new("outputs-byte");
    let started = folder.start("record -i 1ms -e pgfault,pgfree,self -o a.arrows");
    until!({
        folder.run("ctl status").out.split(' ').nth(2).is_some_and(|n| n.parse::<u64>().unwrap() > 2800)
    });
    folder.run("ctl stop").says(0, "");
    assert_eq!(started.end().code, 0);
    let whole = folder.read("a.arrows").samples();
    let mut bytes = std::fs::read(folder.path("a.arrows")).unwrap();
    let middle = bytes.len() * 55 / 100;
    bytes[middle] ^= 1;
    std::fs::write(folder.path("a.arrows"), &bytes).unwrap();
    let rows = folder.read("a.arrows");
    assert!(rows.samples() >= whole - 1000, "{} of {whole}", rows.samples());
    folder.run("export a.arrows --to csv").says(1, "samples between 20");
    assert_eq!(folder.run("show a.arrows").code, 1);
    let done = folder.run("recover a.arrows");
    assert!(done.code == 1 && done.out.contains("1000 samples are lost"), "{}{}", done.out, done.err);
    assert!(done.out.contains("a.arrows.damaged"), "{}", done.out);
    let again = folder.read("a.arrows");
    assert_eq!((again.samples(), again.damage.clone()), (rows.samples(), None));
    assert!(again.labels().contains(&"numakit:damaged 1000"), "{:?}", again.labels());
    let report = folder.run("show a.arrows");
    assert!(report.code == 0 && report.out.contains("1,000 samples damaged"), "{}", report.out);
}

/// What a program prints goes to standard error where the result goes to standard output.
#[test]
fn a_result_on_standard_output_is_not_mixed_with_what_the_program_prints() {
    let folder = Folder::new("outputs-mixed");
    for line in ["explain --json - echo printed", "alloc --profile none --json=- echo printed"] {
        let done = folder.run(line);
        if done.code == 2 {
            numakit_skips::SAMPLES.skip_part(&done.err);
            continue;
        }
        assert!(serde_json::from_str::<serde_json::Value>(&done.out).is_ok(), "{line}: {}", done.out);
        done.says(0, "printed\n");
    }
    let text = folder.run("explain -o - echo printed");
    if text.code != 2 {
        assert!(!text.out.is_empty() && !text.out.contains("printed\n"), "{}", text.out);
        text.says(0, "printed\n");
    }
    folder.run("alloc --profile none echo printed").says(0, "");
}
