use crate::runner::{Folder, Started};
use numakit_testing::until;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn lines_are_printed_in_every_format() {
    let folder = Folder::new("stat");
    let text = folder.run("stat -i 5ms -n 30");
    assert_eq!(text.code, 0, "{}", text.err);
    let samples =
        text.out.lines().filter(|l| l.trim_start().starts_with(|c: char| c.is_ascii_digit())).count();
    assert_eq!(samples, 30);
    assert!(text.out.lines().filter(|l| l.contains("seconds")).count() >= 2, "headings repeat: {}", text.out);
    assert!(text.out.lines().all(|l| l.chars().count() <= 100), "{}", text.out);
    let csv = folder.run("stat -i 5ms -n 3 --csv").out;
    let fields: Vec<usize> = csv.lines().map(|l| l.split(',').count()).collect();
    assert!(fields.len() >= 4 && fields.windows(2).all(|w| w[0] == w[1]), "{csv}");
    let json = folder.run("stat -i 5ms -n 3 --json").out;
    let objects: Vec<serde_json::Value> = json.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(objects.iter().filter(|o| o.get("minor").is_some()).count(), 3);
    for per in ["node", "cpu", "machine"] {
        assert_eq!(folder.run(&format!("stat -i 10ms -n 1 --per {per}")).code, 0, "{per}");
    }
}

#[test]
fn selected_series_are_columns_with_labels_between_lines() {
    let folder = Folder::new("chosen");
    let started = folder.start("stat -i 5ms -e pgfault,MemFree@node0,nr_free_pages");
    started.echo("label here it is\n");
    folder.run("ctl stop").says(0, "");
    let done = started.end();
    assert!(done.out.contains("pgfault") && done.out.contains("-- here it is --"), "{}", done.out);
}

#[test]
fn the_status_of_the_command_is_passed_on() {
    let folder = Folder::new("statcmd");
    let output = folder.numa("stat -i 5ms --").args(["sh", "-c", "exit 9"]).output().unwrap();
    assert_eq!(output.status.code(), Some(9));
    folder.run("stat -- /no/such/program").says(127, "cannot run");
}

#[test]
fn a_closed_pipe_ends_it_and_closes_a_recording_properly() {
    let folder = Folder::new("pipe");
    let mut started = Started::of(folder.numa("stat -i 5ms -e self").stdout(Stdio::piped()));
    let mut lines = BufReader::new(started.child().stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    folder.run("ctl record a.arrows").says(0, "");
    until!(folder.run("ctl status").out.contains("a.arrows"));
    drop(lines);
    assert_eq!(started.wait().code(), Some(0));
    let rows = folder.read("a.arrows");
    assert!(rows.damage.is_none() && !folder.path("a.arrows.tail").exists());
    assert_eq!(std::fs::read_dir(folder.path("run/numakit")).unwrap().count(), 0);
}
