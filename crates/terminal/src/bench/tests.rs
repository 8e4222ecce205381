use super::*;
use numakit_bench::{Axis, Curve, CurveMark, NamedTable, PairMatrix, Quantiles, VERSION};

fn around(median: f64) -> Quantiles {
    Quantiles { median, low: median * 0.9, high: median * 1.2, samples: 10 }
}

pub(super) fn results() -> BenchResults {
    let mut matrix = PairMatrix::new("load latency, idle", "ns", true, vec![0, 1], vec![0, 2]);
    matrix.set(0, 0, Some(around(80.0)));
    matrix.set(0, 1, Some(around(143.4)));
    matrix.set(1, 0, Some(around(260.0)));
    let mut curve = Curve::new("load latency", "ns", true, Axis::size());
    [(4096.0, 1.0), (65536.0, 10.0), (1048576.0, 100.0)]
        .into_iter()
        .for_each(|(size, ns)| curve.add(size, Some(around(ns))));
    curve.marks = vec![
        CurveMark { x: 32768.0, name: "L1".into() },
        CurveMark { x: f64::from(1 << 24), name: "L3".into() },
    ];
    let mut result = BenchResult { name: "latency".into(), ..Default::default() };
    result.matrices.push(matrix);
    result.curves.push(curve);
    let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
    let (rows, columns) = (names(["C library", "libnumalloc"]), names(["small", "large"]));
    let mut table = NamedTable::new("time", "ns", true, ("allocator", rows), ("work", columns));
    [(0, 0, 20.0), (0, 1, 9000.0), (1, 1, 3000.0)]
        .into_iter()
        .for_each(|(row, column, ns)| table.set(row, column, Some(around(ns))));
    result.tables.push(table);
    result.values.push(NamedValue {
        name: "a pass".into(),
        unit: "ms".into(),
        value: around(5.0),
        best: Some(9.0),
    });
    result.remarks.push("memory of node 0: small pages".into());
    result.leave_out("memory of node 1", "it has no memory");
    result.warnings.push("the machine was busy".into());
    let conditions = BenchConditions {
        processor: "Some CPU".into(),
        kernel: "6.18.1".into(),
        machine: "2 packages, 3 nodes, 4 cores, 8 CPUs".into(),
        load: Some(0.5),
        unverified: Some("nodes of single pages: a filter refuses it".into()),
        ..Default::default()
    };
    BenchResults {
        version: VERSION,
        machine_key: String::new(),
        conditions,
        topology: None,
        benchmarks: vec![result],
        runs: 1,
        complete: false,
    }
}

#[test]
fn a_page_shows_all_values_and_all_doubts() {
    let page = page(&results(), BenchStyle { color: false, width: 100, all: false });
    for line in [
        "  CPUs of node \\ memory of node    0    2",
        &format!("{:>31} 80.0  143", 0),
        &format!("{:>31}  260    -", 1),
        "  medians; the 10 % and 90 % quantiles are at most -10 % and +20 % away",
        "  allocator \\ work small large",
        "  C library         20.0  9000",
        "  libnumalloc          -  3000",
        "     4.00 KiB     1.00 #",
        "  ----------- L1 is 32.0 KiB",
        "          median  10 %  90 %  best  unit",
        "  a pass    5.00  4.50  6.00  9.00  ms",
        "  memory of node 0: small pages",
        "  left out: memory of node 1: it has no memory",
        "  warning: the machine was busy",
        "Interrupted: what was measured until then is above.",
    ] {
        assert!(page.lines().any(|found| found == line), "no '{line}' in\n{page}");
    }
    assert!(page.contains("a filter refuses it: it was not verified"), "{page}");
    assert!(!page.contains("L3") && !page.contains('\x1b'), "{page}");
    let bars: Vec<usize> = page.lines().map(|line| line.matches('#').count()).filter(|n| *n > 0).collect();
    assert_eq!(bars, [1, 31, 60]);
}

#[test]
fn heat_goes_from_the_best_to_the_worst() {
    let colored = page(&results(), BenchStyle { color: true, width: 100, all: false });
    assert!(
        colored.contains("\x1b[30;48;5;114m80.0\x1b[0m") && colored.contains("\x1b[30;48;5;203m 260\x1b[0m"),
        "{colored}"
    );
    // The columns of a table are of different things: each has its own colours.
    assert!(
        colored.contains("\x1b[30;48;5;114m 20.0\x1b[0m \x1b[30;48;5;203m 9000\x1b[0m")
            && colored.contains("\x1b[30;48;5;114m 3000\x1b[0m"),
        "{colored}"
    );
    let mut rates = results();
    rates.benchmarks[0].matrices[0].less_is_better = false;
    let colored = page(&rates, BenchStyle { color: true, width: 100, all: false });
    assert!(
        colored.contains("\x1b[30;48;5;203m80.0\x1b[0m") && colored.contains("\x1b[30;48;5;114m 260\x1b[0m"),
        "{colored}"
    );
}

#[test]
fn a_wide_matrix_is_broken_into_parts() {
    let nodes: Vec<u32> = (0..32).collect();
    let mut matrix = PairMatrix::new("read", "GB/s", false, nodes.clone(), nodes);
    (0..32).for_each(|at| matrix.set(at, at, Some(around(100.0 + at as f64))));
    let text = matrix::text(&matrix, BenchStyle { color: false, width: 80, all: false });
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    assert_eq!(text.matches("131").count(), 1);
}

#[test]
fn numbers_have_three_digits_after_rounding_too() {
    assert_eq!(
        [0.5, 9.994, 9.996, 99.94, 99.96, 1234.0].map(number),
        ["0.50", "9.99", "10.0", "99.9", "100", "1234"]
    );
}

#[test]
fn json_is_read_back() {
    let text = json(&results()).unwrap();
    assert_eq!(serde_json::from_str::<BenchResults>(&text).unwrap(), results());
    assert!(text.starts_with(r#"{"version":1,"#), "{text}");
}

/// The fields of a line of comma-separated values.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut is_quoted) = (vec![String::new()], false);
    for letter in line.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            _ => fields.last_mut().unwrap().push(letter),
        }
    }
    fields
}

#[test]
fn comma_separated_values_have_a_line_for_each_value() {
    let text = csv(&results());
    let lines: Vec<Vec<String>> = text.split_terminator("\r\n").map(fields).collect();
    assert_eq!(lines.len(), 1 + results().benchmarks[0].all().count());
    assert!(lines.iter().all(|line| line.len() == 13), "{text}");
    let [matrix, table, curve, value] = ["matrix", "table", "curve", "value"].map(|kind| {
        lines.iter().find(|line| line[1] == kind).unwrap_or_else(|| panic!("no {kind} in {text}")).join(";")
    });
    assert_eq!(matrix, "latency;matrix;load latency, idle;0;0;;;ns;80;72;96;10;");
    assert_eq!(table, "latency;table;time;C library;small;;;ns;20;18;24;10;");
    assert_eq!(curve, "latency;curve;load latency;;;4096;bytes;ns;1;0.9;1.2;10;");
    assert_eq!(value, "latency;value;a pass;;;;;ms;5;4.5;6;10;9");
    let mut odd = results();
    odd.benchmarks[0].name = "a \"b\"\nc".into();
    assert!(csv(&odd).contains("\r\n\"a \"\"b\"\"\nc\",matrix,"));
}
