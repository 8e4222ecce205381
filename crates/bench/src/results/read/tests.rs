use super::*;
use crate::results::conditions::BenchConditions;
use crate::results::{Axis, NamedValue};

fn results() -> BenchResults {
    let value = Quantiles { median: 2.0, low: 1.0, high: 3.0, samples: 5 };
    let mut matrix = PairMatrix::new("load latency", "ns", true, vec![0, 1], vec![0]);
    matrix.set(0, 0, Some(value));
    let mut curve = Curve::new("by size", "ns", true, Axis::size());
    curve.add(4096.0, Some(value));
    let mut table = NamedTable::new(
        "time",
        "ns",
        true,
        ("allocator", vec!["ours".into()]),
        ("work", vec!["small".into()]),
    );
    table.set(0, 0, Some(value));
    let named = NamedValue { name: "a pass".into(), unit: "ms".into(), value, best: Some(3.0) };
    let one = BenchResult {
        name: "latency".into(),
        matrices: vec![matrix],
        tables: vec![table],
        curves: vec![curve],
        values: vec![named],
        ..BenchResult::default()
    };
    BenchResults {
        version: VERSION,
        machine_key: "0123".into(),
        conditions: BenchConditions::default(),
        topology: numakit_topology::synthetic::parse("package:2 node:1 core:2").ok(),
        benchmarks: vec![one],
        runs: 1,
        complete: true,
    }
}

fn refused(change: impl Fn(&mut BenchResults)) -> String {
    let mut changed = results();
    change(&mut changed);
    refused_text(&serde_json::to_string(&changed).unwrap())
}

fn refused_text(text: &str) -> String {
    BenchResults::parse(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn results_are_read_as_they_were_written() {
    let text = serde_json::to_string(&results()).unwrap();
    let read = BenchResults::parse(text.as_bytes()).unwrap();
    assert_eq!(read.benchmarks, results().benchmarks);
    assert_eq!(read.topology.map(|topology| topology.nodes.len()), Some(2));
    assert_eq!((text.matches("\"runs\":1").count(), read.runs), (1, 1));
    let earlier = BenchResults::parse(text.replace("\"runs\":1,", "").as_bytes()).unwrap();
    assert_eq!(earlier.runs, 1);
    let without = BenchResults { topology: None, ..results() };
    let text = serde_json::to_string(&without).unwrap();
    assert_eq!(BenchResults::parse(text.as_bytes()).unwrap(), without);
}

#[test]
fn results_from_before_there_were_tables_are_read() {
    let mut without = results();
    without.benchmarks[0].tables.clear();
    let text = serde_json::to_string(&without).unwrap();
    assert!(!text.contains("tables"), "{text}");
    assert_eq!(BenchResults::parse(text.as_bytes()).unwrap().benchmarks, without.benchmarks);
}

#[test]
fn other_files_are_refused_with_the_reason() {
    for (text, part) in [
        ("", "no results of numa bench"),
        ("[1, 2]", "write them with 'numa bench all --json > FILE'"),
        ("{}", "missing field `version`"),
        (r#"{"version": 2}"#, "version 2, and this numa reads version 1"),
        (r#"{"version": -1}"#, "no results of numa bench"),
        (r#"{"version": 1}"#, "missing field `machine_key`"),
        (&format!(r#"{{"version": 1, "more": {}"#, "[".repeat(1000)), "EOF while parsing a list"),
    ] {
        let error = refused_text(text);
        assert!(error.contains(part), "{text:.30}: {error}");
    }
    let missing = BenchResults::read(Path::new("/nowhere/a.json")).unwrap_err().to_string();
    assert!(missing.starts_with("/nowhere/a.json: No such file"), "{missing}");
    let folder = BenchResults::read(Path::new("/")).unwrap_err().to_string();
    assert!(folder.contains("directory") && folder.contains("numa bench --json"), "{folder}");
}

#[test]
fn values_that_nothing_measures_are_refused() {
    let value = |change: fn(&mut Quantiles)| {
        refused(move |results| change(&mut results.benchmarks[0].curves[0].points[0].value))
    };
    assert!(
        value(|v| v.high = 1.5).contains("'by size' has a value that is no measurement: median 2, low 1")
    );
    assert!(value(|v| v.samples = 0).contains("of 0 samples"));
    assert!(value(|v| v.high = 1e300).contains("no measurement"));
    let shape = refused(|results| results.benchmarks[0].matrices[0].columns.push(1));
    assert!(shape.contains("'load latency': its cells do not have 2 rows and 2 columns"), "{shape}");
    let number = refused(|results| results.benchmarks[0].matrices[0].columns[0] = u32::MAX);
    assert!(number.contains("row or column: 4294967295 are more than 65536"), "{number}");
    let shape = refused(|results| results.benchmarks[0].tables[0].rows.clear());
    assert!(shape.contains("'time': its cells do not have 0 rows and 1 columns"), "{shape}");
    let name = refused(|results| results.benchmarks[0].tables[0].columns[0] = "a\nb".into());
    assert!(name.contains("control characters: 'a\\nb'"), "{name}");
    let median =
        refused(|results| results.benchmarks[0].tables[0].cells[0][0].as_mut().unwrap().median = 9.0);
    assert!(median.contains("'time' has a value that is no measurement"), "{median}");
    let many = refused(|results| results.benchmarks[0].tables[0].columns = vec![String::new(); 1 << 17]);
    assert!(many.contains("rows and columns of a table: 131073 are more than 65536"), "{many}");
    let text = refused(|results| results.benchmarks[0].remarks.push("x".repeat(5000)));
    assert!(text.contains("bytes of a text: 5000 are more than 4096"), "{text}");
    let runs = refused(|results| results.runs = 0);
    assert!(runs.contains("it is of 0 runs, and there are 1 to 99"), "{runs}");
    let node = refused(|results| results.benchmarks[0].curves[0].memory = Some(u32::MAX));
    assert!(node.contains("number of a node: 4294967295 are more than 65536"), "{node}");
    let reads = refused(|results| results.benchmarks[0].curves[0].read_percent = Some(101));
    assert!(reads.contains("share of reads in percent: 101 are more than 100"), "{reads}");
    let control = refused(|results| results.conditions.governor = Some("\u{1b}[2J".into()));
    assert!(control.contains("control characters: '\\u{1b}[2J'"), "{control}");
    let many = refused(|results| results.benchmarks = vec![BenchResult::default(); 257]);
    assert!(many.contains("benchmarks: 257 are more than 256"), "{many}");
    let wide = refused(|results| {
        results.benchmarks[0].matrices[0].rows = vec![0; 1 << 10];
        results.benchmarks[0].matrices[0].columns = vec![0; 1 << 10];
    });
    assert!(wide.contains("values: 1048579 are more than 524288"), "{wide}");
    let machine = refused(|results| {
        let topology = results.topology.as_mut().unwrap();
        (topology.nodes, topology.distances) = (Vec::new(), None);
    });
    assert!(machine.contains("its topology: there are no nodes"), "{machine}");
}
