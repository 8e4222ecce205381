use crate::runner::{Done, Folder};
use serde_json::Value;

#[test]
fn raw_values_and_rates_are_exported() {
    let folder = Folder::new("csv");
    folder.run("record -i 5ms -e pgfault,nr_free_pages -o a.arrows -- sleep 0.05").says(0, "");
    let raw = folder.run("export a.arrows --to csv");
    let lines: Vec<&str> = raw.out.lines().collect();
    assert!(lines[0].starts_with("time,took,label,vmstat."), "{}", lines[0]);
    let rows = folder.read("a.arrows");
    assert_eq!(lines.len(), 1 + rows.total());
    let first = rows.values("vmstat.nr_free_pages")[0].to_string();
    assert!(lines[1].split(',').any(|f| f == first));
    let rates = folder.run("export a.arrows --to csv --rates");
    assert_eq!(rates.out.lines().count(), lines.len());
    assert_ne!(rates.out, raw.out);
}

#[test]
fn numascope_files_are_written_and_read() {
    let folder = Folder::new("json");
    folder.run("record -i 5ms -e pgfault,pgfree -o a.arrows -- sleep 0.05").says(0, "");
    folder.run("export a.arrows --to numascope -o a.json").says(0, "");
    folder.run("export a.arrows --to numascope -o a.json").says(2, "a.json exists; give another name");
    let (rows, again) = (folder.read("a.arrows"), folder.read("a.json"));
    assert_eq!(again.samples(), rows.samples() - 1, "the first row has no rate");
    assert_eq!(again.labels(), rows.labels());
    let json = folder.run("export a.json --to csv");
    assert_eq!((json.code, json.out.lines().count()), (0, 1 + again.total()));
}

/// A recording exported to NUMAscope's format has the same names and report, with several sensors or
/// with one.
#[test]
fn names_and_kinds_survive_the_numascope_format() {
    let folder = Folder::new("names-numascope");
    for events in ["pgfault,numa_local,numa_other,nr_free_pages", "pgfault,node.MemFree,cpu.user,numa_local"]
    {
        folder.run(&format!("record -i 5ms -e {events} -o a.arrows --force -- sleep 0.1")).says(0, "");
        let json = folder.run("export a.arrows --to numascope");
        std::fs::write(folder.path("a.json"), &json.out).unwrap();
        let (ours, again) = (folder.read("a.arrows"), folder.read("a.json"));
        let names = |rows: &crate::runner::Rows| -> Vec<String> {
            rows.header.series.iter().map(|s| s.name()).collect()
        };
        assert_eq!(names(&again), names(&ours));
        for (a, b) in ours.header.series.iter().zip(&again.header.series) {
            assert_eq!(a.metric.kind.name() == "gauge", b.metric.kind.name() == "gauge", "{}", a.name());
        }
        let report = folder.run("show a.json").out;
        assert!(!report.contains("record with -e vmstat.numa_local"), "{report}");
        // A second conversion changes nothing.
        assert_eq!(folder.run("export a.json --to numascope").out, json.out);
    }
}

/// The findings are those of the report, and name what is lost.
#[test]
fn findings_are_exported_as_the_report_has_them() {
    let folder = Folder::new("findings-json");
    folder.run("record -i 5ms -o a.arrows -- sleep 0.3").says(0, "");
    folder.run("export a.arrows -o a.findings.json").says(0, "");
    let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let exported = parsed(&std::fs::read_to_string(folder.path("a.findings.json")).unwrap());
    let report = parsed(&folder.run("show --json a.arrows").out);
    for key in ["findings", "recording", "losses"] {
        assert!(exported[key].is_object(), "{key}");
        assert_eq!(exported[key], report[key], "{key}");
    }
    std::fs::write(folder.path("f.txt"), "no formula\n").unwrap();
    folder.run("export a.arrows --to findings --formulas f.txt").says(2, "f.txt, line 1");
    folder.run("export a.arrows --to csv --formulas f.txt").says(2, "not supported by the format csv");
    let bytes = std::fs::read(folder.path("a.arrows")).unwrap();
    std::fs::write(folder.path("b.arrows"), &bytes[..bytes.len() - 20]).unwrap();
    let damaged = folder.run("export b.arrows --to findings");
    assert_eq!(damaged.code, 1, "{}", damaged.err);
    assert!(parsed(&damaged.out)["losses"]["damage"].is_string(), "{}", damaged.out);
}

#[test]
fn the_intact_part_of_a_damaged_recording_is_exported() {
    let folder = Folder::new("damaged");
    folder.run("record -i 1ms -e pgfault -o a.arrows -- sleep 0.05").says(0, "");
    let bytes = std::fs::read(folder.path("a.arrows")).unwrap();
    std::fs::write(folder.path("b.arrows"), &bytes[..bytes.len() - 20]).unwrap();
    folder.run("export b.arrows --to csv").says(1, "could not be read");
    std::fs::write(folder.path("c.arrows"), b"nonsense").unwrap();
    folder.run("export c.arrows --to csv").says(2, "is not a recording");
    folder.run("export none.arrows --to csv").says(2, "cannot read none.arrows");
}

/// Runs a script with the Python that has the packages; `None` if there is none.
pub fn python(folder: &Folder, words: &[&str]) -> Option<Done> {
    let Some(python) = std::env::var_os("NUMAKIT_PYTHON") else {
        numakit_skips::PYTHON
            .skip("NUMAKIT_PYTHON names no python with the packages; 'cargo xtask test' sets it");
        return None;
    };
    let output = std::process::Command::new(python).args(words).current_dir(&folder.0).output();
    Some(Done::of(output.unwrap()))
}

/// Each format is read by its usual tools: the official definition of Perfetto's traces, pyarrow and
/// DuckDB, a parser of the line protocol, the strict parser of Prometheus.
#[test]
fn other_programs_read_the_exports() {
    let folder = Folder::new("others");
    folder.run("record -i 1ms -o a.arrows -- sleep 0.4").says(0, "");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/check_export.py");
    for format in ["csv", "parquet", "perfetto", "influx", "prometheus", "openmetrics", "openmetrics --all"] {
        for values in ["raw", "rates"] {
            let file = format!("{format}.{values}").replace(' ', "");
            folder.run(&format!("export a.arrows --to {format} --{values} -o {file}")).says(0, "");
            let name = format.split(' ').next().unwrap();
            let Some(done) = python(&folder, &[script, name, values, "a.arrows", &file]) else { return };
            assert!(done.code == 0, "{format} {values}: {}{}", done.out, done.err);
            println!("{}", done.out.trim_end());
        }
    }
}

/// The fenced blocks of a page, each with its language.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    page.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n')).collect()
}

#[test]
fn the_examples_of_the_guide_work() {
    let folder = Folder::new("guide");
    folder.run("record -i 5ms -o run.arrows -- sleep 0.3").says(0, "");
    let page = include_str!("../../../../docs/guide/export.md");
    let mut commands = 0;
    for (language, block) in blocks(page) {
        if language == "python" {
            let Some(done) = python(&folder, &["-c", block]) else { continue };
            assert!(done.code == 0 && done.out.contains("faults"), "{}{}", done.out, done.err);
        }
        for line in block.lines().filter_map(|line| line.strip_prefix("numa ")) {
            let words = line.split('#').next().unwrap();
            folder.run(words).says(0, "");
            commands += 1;
        }
    }
    assert!(commands >= numakit_export::FORMATS.len(), "{commands}");
}

/// The guide's calls that open a recording.
#[test]
fn the_python_of_the_guide_to_recordings_works() {
    let folder = Folder::new("guide-python");
    folder.run("record -i 5ms -o run.arrows -- sleep 0.3").says(0, "");
    let page = include_str!("../../../../docs/guide/recording.md");
    let mut seen = 0;
    for (_, block) in blocks(page).into_iter().filter(|(language, _)| *language == "python") {
        let Some(done) = python(&folder, &["-c", block]) else { return };
        assert!(done.code == 0 && done.out.contains("b'kind': b'gauge'"), "{}{}", done.out, done.err);
        seen += 1;
    }
    assert_eq!(seen, 1);
}

#[test]
fn invalid_requests_are_refused() {
    let folder = Folder::new("requests");
    folder.run("record -i 5ms -e pgfault -o a.arrows -- true").says(0, "");
    folder.run("export a.arrows --to excel").says(2, "perfetto");
    folder.run("export a.arrows").says(2, "parquet (.parquet)");
    folder.run("export a.arrows -o a.xlsx").says(2, "no format given");
    folder
        .run("export a.arrows --to numascope --raw")
        .says(2, "--raw is not supported by the format numascope");
    folder.run("export a.arrows --to csv --raw --rates").says(2, "cannot be used with");
    folder.run("export none.arrows -o none.parquet").says(2, "cannot read none.arrows");
    assert!(!folder.path("none.parquet").exists());
}

#[test]
fn a_full_disk_leaves_no_partial_export() {
    let folder = Folder::new("full");
    folder.run("record -i 1ms -o a.arrows -- sleep 0.1").says(0, "");
    for format in numakit_export::FORMATS {
        let file = format!("a.{}", format.extension);
        let export = format!("{} export a.arrows -o {file}", env!("CARGO_BIN_EXE_numa"));
        let limited = format!("trap '' XFSZ; ulimit -f 2; exec {export}");
        let shell = |script: &str| {
            let mut shell = std::process::Command::new("sh");
            Done::of(folder.isolate(&mut shell).args(["-c", script]).output().unwrap())
        };
        shell(&limited).says(2, &format!("{file} was not written: File too large"));
        assert!(!folder.path(&file).exists());
        let onto_full =
            format!("{} export a.arrows --to {} > /dev/full", env!("CARGO_BIN_EXE_numa"), format.name);
        shell(&onto_full).says(1, "cannot write to standard output: No space left");
    }
}
