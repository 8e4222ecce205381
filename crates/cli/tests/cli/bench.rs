use crate::export;
use crate::runner::{Done, Folder, Started};
use numakit_bench::{BENCHMARKS, BenchResult, BenchResults};
use numakit_sys::pty::Pty;
use numakit_sys::{SysRoot, poll};
use numakit_testing::until;
use std::num::NonZero;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// Settings with which a benchmark takes a moment.
const SHORT: &str = "--size 1M --time 1ms";

fn results(done: &Done) -> BenchResults {
    serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {} {}", done.out, done.err))
}

/// The pairs of a matrix of these nodes that were not measured, although nothing says that they are left out.
fn missing(result: &BenchResult, nodes: &[u32]) -> Vec<String> {
    let mut missing = Vec::new();
    for matrix in result.matrices.iter().filter(|matrix| matrix.column == "memory of node") {
        let pairs = nodes.iter().flat_map(|from| nodes.iter().map(move |memory| (from, memory)));
        for (from, memory) in pairs {
            let row = matrix.rows.iter().position(|node| node == from);
            let column = matrix.columns.iter().position(|node| node == memory);
            let has = row.zip(column).is_some_and(|(row, column)| matrix.cells[row][column].is_some());
            let [cpus, memory] = [format!("CPUs of node {from}"), format!("memory of node {memory}")];
            let is_named = |what: &String| {
                [&cpus, &memory].iter().any(|part| what.contains(*part)) || *what == matrix.name
            };
            if !has && !result.left_out.iter().any(|left| is_named(&left.what)) {
                missing.push(format!("{}, {cpus}, {memory}", matrix.name));
            }
        }
    }
    missing
}

#[test]
fn every_benchmark_has_complete_matrices() {
    let folder = Folder::new("bench");
    let topology = numakit_topology::read(&SysRoot::host()).unwrap();
    let nodes: Vec<u32> = topology.nodes.iter().map(|node| node.os_index).collect();
    let done = folder.run(&format!("bench all --json {SHORT}"));
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(!done.err.contains("kept") && !folder.path("state").exists(), "with --size it is of no machine");
    let results = results(&done);
    assert!(results.complete && results.version == 1);
    assert!(!results.conditions.processor.is_empty() && !results.conditions.kernel.is_empty());
    let names: Vec<&str> = results.benchmarks.iter().map(|result| result.name.as_str()).collect();
    assert_eq!(names, BENCHMARKS.iter().map(|benchmark| benchmark.name).collect::<Vec<_>>());
    for result in &results.benchmarks {
        assert!(result.all().count() > 0 || !result.left_out.is_empty(), "{result:?}");
        for (name, value) in result.all() {
            assert!(
                value.median > 0.0 && value.low <= value.median && value.median <= value.high,
                "{name} {value:?}"
            );
        }
        assert_eq!(missing(result, &nodes), Vec::<String>::new(), "{:?}", result.left_out);
    }
}

#[test]
#[ignore = "thorough: all benchmarks with memory beyond the caches, a minute"]
fn results_of_a_whole_machine_are_kept() {
    let folder = Folder::new("benchkept");
    let done = folder.run("bench all --quick --time 1ms --json");
    done.says(0, "results of this machine are kept in");
    let results = results(&done);
    let kept = folder.path(&format!("state/numakit/bench/{}.json", results.machine_key));
    assert_eq!(std::fs::read_to_string(kept).unwrap().trim(), done.out.trim());
}

#[test]
fn a_page_says_what_was_measured_where() {
    let folder = Folder::new("benchpage");
    let done = folder.run(&format!("bench latency {SHORT}"));
    assert_eq!(done.code, 0, "{}", done.err);
    for part in [
        "load latency, idle in ns\n",
        "CPUs of node \\ memory of node",
        "  medians; ",
        "     4.00 KiB ",
        "; Linux ",
    ] {
        assert!(done.out.contains(part), "no '{part}' in\n{}", done.out);
    }
    assert!(!done.out.contains('\x1b'), "{}", done.out);
    assert!(folder.run(&format!("bench latency --color always {SHORT}")).out.contains("\x1b[30;48;5;114m"));
}

#[test]
fn a_command_runs_alone_and_beside_recordings() {
    let folder = Folder::new("benchoverhead");
    let done = folder.run("bench overhead --rounds 2 --rates 10Hz,200Hz --json -- sleep 0.1");
    let results = results(&done);
    let curves = &results.benchmarks[0].curves;
    let rates =
        |at: usize| curves[at].points.iter().map(|point| (point.x, point.value.samples)).collect::<Vec<_>>();
    assert_eq!((done.code, curves.len()), (0, 3), "{}", done.err);
    (0..3).for_each(|at| assert_eq!(rates(at), [(10.0, 2), (200.0, 2)]));
    for (line, code, says) in [
        ("-- false", 2, "'false': the command ended with status 1"),
        ("-- /no/program", 127, "cannot run '/no/program'"),
        ("-- /etc/passwd", 126, "cannot run '/etc/passwd'"),
        ("--rounds 0 -- true", 2, "--rounds"),
        ("", 2, "<CMD>"),
    ] {
        let done = folder.run(&format!("bench overhead {line}"));
        assert!(done.code == code && done.err.contains(says), "{line}: {} {}", done.code, done.err);
    }
}

#[test]
fn what_is_left_out_has_a_reason() {
    let folder = Folder::new("benchleft");
    let done = folder.run("bench latency --quick --json --time 1ms --size 16T");
    let results = results(&done);
    let why = &results.benchmarks[0].left_out[0].why;
    assert!(why.contains("needs 16.0 TiB") && why.contains("give a smaller --size"), "{why}");
    assert_eq!((done.code, results.benchmarks[0].matrices[0].values().count()), (0, 0));
}

#[test]
fn nonsense_is_refused_with_its_bounds() {
    let folder = Folder::new("benchbad");
    for (words, parts) in [
        ("latency --size 1K", ["1.00 KiB is outside of 64.0 KiB to 16.0 TiB", "--size"]),
        ("latency --size 100T", ["outside of 64.0 KiB to 16.0 TiB", "--size"]),
        ("latency --size fast", ["'fast' is not a size", "256M"]),
        ("latency --time 0s", ["'0s' is out of range", "from 100us to 1h"]),
        ("latency --time 200us", ["200µs is outside of 1ms to 3600s", "--time"]),
        ("latency --runs 0", ["invalid value '0' for '--runs <N>'", "1..=99"]),
        ("latency --runs 100", ["invalid value '100' for '--runs <N>'", "1..=99"]),
        ("latency --cpus 9999", ["--cpus", "those that may be used are"]),
        ("latency --nodes 900", ["--nodes", "those that may be used are"]),
        ("speed", ["invalid value 'speed'", "latency"]),
        ("latency --sysroot /nowhere", ["measures the memory of this machine", "omit --sysroot"]),
    ] {
        let done = folder.run(&format!("bench {words}"));
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{words}: {}", done.err);
        parts
            .iter()
            .for_each(|part| assert!(done.err.contains(part), "{words}: no '{part}' in {}", done.err));
    }
}

/// What a benchmark prints that is interrupted when this is true of its line of progress, which is for terminals only.
fn interrupted(folder: &Folder, line: &str, when: impl Fn(&str) -> bool) -> BenchResults {
    let [rows, columns] = [5, 200];
    let pty = Pty::open(columns, rows).unwrap();
    let [rows, columns] = [rows, columns].map(|count| NonZero::new(count).unwrap());
    let mut screen = vt100::Parser::new(rows, columns, 0);
    let script = format!("exec {} {line} > out.json", env!("CARGO_BIN_EXE_numa"));
    let mut shell = Command::new("sh");
    let mut started = Started::keeps(pty.spawn(folder.isolate(&mut shell).args(["-c", &script])).unwrap());
    let mut buffer = [0; 4096];
    until!({
        if poll::readable(&[pty.as_fd()], Some(Duration::ZERO)).unwrap() == [true] {
            let count = pty.read(&mut buffer).unwrap();
            screen.process(&buffer[..count]);
        }
        when(screen.screen().contents().trim())
    });
    started.signal("INT");
    assert_eq!(started.wait().code(), Some(130), "{}", screen.screen().contents());
    BenchResults::read(&folder.path("out.json")).unwrap()
}

#[test]
fn an_interrupt_keeps_what_was_measured() {
    let folder = Folder::new("benchint");
    // The first benchmark is over, and the others take minutes.
    let is_behind_latency = |now: &str| !now.is_empty() && !now.contains("latency");
    let kept = interrupted(&folder, "bench all --json --size 1M --time 50ms", is_behind_latency);
    assert!(!kept.complete && kept.benchmarks.len() < BENCHMARKS.len(), "{kept:?}");
    let latency = &kept.benchmarks[0];
    assert!(latency.name == "latency" && latency.matrices[0].values().count() > 0, "{latency:?}");
    // Each run takes a moment, and all of them minutes.
    let is_third =
        |now: &str| now.starts_with("run ") && !now.starts_with("run 1 ") && !now.starts_with("run 2 ");
    let line = "bench latency --json --size 256K --time 20ms --runs 99";
    let kept = interrupted(&folder, line, is_third);
    assert!(!kept.complete && (2..99).contains(&kept.runs), "{kept:?}");
}

#[test]
fn several_runs_are_one_result() {
    let folder = Folder::new("benchruns");
    let [once, twice] = [1, 3].map(|runs| {
        let done = folder.run(&format!("bench alias --json --runs {runs} {SHORT}"));
        assert_eq!(done.code, 0, "{}", done.err);
        std::fs::write(folder.path(&format!("{runs}.json")), &done.out).unwrap();
        results(&done)
    });
    assert_eq!((once.runs, twice.runs, twice.complete), (1, 3, true));
    let count = |results: &BenchResults| results.benchmarks[0].all().count();
    assert_eq!((count(&once), twice.benchmarks.len()), (count(&twice), 1));
    assert!(twice.benchmarks[0].all().all(|(_, value)| value.samples >= 15));
    for (line, part) in [
        ("compare 3.json 3.json", "no change beyond the noise of 3 runs each"),
        ("compare 3.json 1.json", "after is one run: how much runs differ"),
        ("show 3.json", "3 runs: values are the medians of their medians"),
    ] {
        let done = folder.run(&format!("bench {line}"));
        assert!(done.code == 0 && done.out.contains(part), "{line}: {} {}", done.out, done.err);
    }
}

/// Results of this machine in a file, the same for all tests.
fn measured(folder: &Folder, name: &str) {
    static RESULTS: OnceLock<String> = OnceLock::new();
    let results = RESULTS.get_or_init(|| {
        let done = folder.run(&format!("bench latency --json {SHORT}"));
        assert_eq!(done.code, 0, "{}", done.err);
        done.out
    });
    std::fs::write(folder.path(name), results).unwrap();
}

#[test]
fn results_are_shown_from_a_file_in_every_form() {
    let folder = Folder::new("benchshow");
    measured(&folder, "a.json");
    let text = folder.run("bench show a.json --html a.html");
    assert!(text.code == 0 && text.out.contains("load latency, idle in ns\n"), "{} {}", text.out, text.err);
    let page = std::fs::read_to_string(folder.path("a.html")).unwrap();
    for part in
        ["<!doctype html>", "<svg class=\"machine\"", "<svg class=\"plot\"", "class=\"heat\"", "</html>\n"]
    {
        assert!(page.contains(part), "no '{part}' in\n{page}");
    }
    let printed = folder.run("bench show a.json --html -");
    assert_eq!((printed.code, printed.out == page), (0, true));
    let json = folder.run("bench show a.json --json");
    assert_eq!(json.out.trim(), std::fs::read_to_string(folder.path("a.json")).unwrap().trim());
    folder.run("bench show a.json --csv --json").says(2, "cannot be used with");
    let direct = folder.run(&format!("bench latency --html - {SHORT}"));
    assert!(direct.code == 0 && direct.out.starts_with("<!doctype html>"), "{} {}", direct.out, direct.err);
    folder
        .run(&format!("bench latency --html nowhere/a.html {SHORT}"))
        .says(2, "cannot write nowhere/a.html");
}

#[test]
fn comma_separated_values_are_read_by_python() {
    let folder = Folder::new("benchcsv");
    measured(&folder, "a.json");
    let done = folder.run("bench show a.json --csv");
    std::fs::write(folder.path("a.csv"), &done.out).unwrap();
    let read = "import csv\nrows = list(csv.DictReader(open('a.csv', newline='')))\n\
                assert all(None not in row and None not in row.values() for row in rows)\n\
                print(len(rows), all(float(row['low']) <= float(row['median']) for row in rows), rows[0]['name'],\n\
                all((row['x'] == '') == (row['x_unit'] == '') == (row['kind'] != 'curve') for row in rows))";
    let python = std::process::Command::new("python3").args(["-c", read]).current_dir(&folder.0).output();
    let Ok(python) = python else {
        return numakit_skips::PYTHON.skip("there is no python3, which reads such values");
    };
    let python = Done::of(python);
    let values = results(&folder.run("bench show a.json --json")).benchmarks[0].all().count();
    assert_eq!(python.out, format!("{values} True load latency, idle True\n"), "{}", python.err);
}

/// As the guide to `numa bench` loads them.
#[test]
fn pandas_reads_the_values() {
    let folder = Folder::new("benchpandas");
    measured(&folder, "a.json");
    std::fs::write(folder.path("a.csv"), folder.run("bench show a.json --csv").out).unwrap();
    let read = "import pandas\ndata = pandas.read_csv('a.csv')\n\
                numbers = data[['median', 'low', 'high', 'samples']]\n\
                assert all(kind.kind in 'if' for kind in numbers.dtypes), numbers.dtypes\n\
                assert not numbers.isna().any().any() and data['x'][data['kind'] == 'curve'].dtype.kind in 'if'\n\
                first = data[(data['kind'] == 'matrix') & (data['name'] == data['name'][0])]\n\
                matrix = first.pivot(index='row', columns='column', values='median')\n\
                print(len(data), matrix.shape)";
    let Some(done) = export::python(&folder, &["-c", read]) else { return };
    let results = results(&folder.run("bench show a.json --json"));
    let (values, matrix) = (results.benchmarks[0].all().count(), &results.benchmarks[0].matrices[0]);
    let shape = (matrix.rows.len(), matrix.columns.len());
    assert_eq!(done.out, format!("{values} {shape:?}\n"), "{}", done.err);
}

#[test]
fn two_results_are_compared() {
    let folder = Folder::new("benchcompare");
    measured(&folder, "a.json");
    let same = folder.run("bench compare a.json a.json");
    assert!(
        same.code == 0 && same.out.contains("no change beyond the noise within a run: the intervals of all"),
        "{}",
        same.out
    );
    let mut other = BenchResults::read(&folder.path("a.json")).unwrap();
    other.machine_key = "other".into();
    other.conditions.kernel = "2.6".into();
    let value = other.benchmarks[0].curves[0].points.last_mut().unwrap();
    for part in [&mut value.value.low, &mut value.value.median, &mut value.value.high] {
        *part *= 1e6;
    }
    other.benchmarks[0].matrices.clear();
    std::fs::write(folder.path("b.json"), serde_json::to_string(&other).unwrap()).unwrap();
    let text = folder.run("bench compare a.json b.json").out;
    for part in [
        "the results are of two machines\n",
        "kernel differs: ",
        ", 2.6 after",
        "  worse\n",
        "1 of ",
        "before and after are one run each: how much runs differ from each other is not known",
        "only before: latency: load latency, idle\n",
    ] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
    let json = folder.run("bench compare a.json b.json --json");
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!((&json["version"], &json["same_machine"]), (&1.into(), &false.into()));
    assert_eq!(
        (json["changes"].as_array().map(Vec::len), &json["changes"][0]["is_better"]),
        (Some(1), &false.into())
    );
}

#[test]
fn files_without_results_are_refused() {
    let folder = Folder::new("benchother");
    measured(&folder, "a.json");
    std::fs::write(folder.path("new.json"), r#"{"version": 2}"#).unwrap();
    std::fs::write(folder.path("other.json"), r#"{"schema": 1}"#).unwrap();
    std::fs::write(folder.path("text.json"), "latency: 80 ns").unwrap();
    for (file, part) in [
        ("new.json", "version 2, and this numa reads version 1"),
        ("other.json", "no results of numa bench"),
        ("text.json", "no results of numa bench"),
        ("none.json", "No such file"),
        (".", "directory"),
    ] {
        for line in
            [format!("show {file}"), format!("compare a.json {file}"), format!("compare {file} a.json")]
        {
            let done = folder.run(&format!("bench {line}"));
            assert!(done.code == 2 && done.out.is_empty(), "{line}: {} {}", done.code, done.out);
            assert!(done.err.contains(part) && done.err.contains(file), "{line}: {}", done.err);
        }
        folder.run(&format!("topo --measured {file}")).says(2, part);
    }
    folder.run("bench show a.json --sysroot /").says(2, "omit --sysroot");
    folder.run("bench compare a.json a.json --sysroot /").says(2, "omit --sysroot");
    folder.run("bench latency show a.json").says(2, "cannot be used with");
}

#[test]
fn measured_distances_are_shown_beside_those_of_the_firmware() {
    let folder = Folder::new("benchtopo");
    measured(&folder, "a.json");
    let done = folder.run("topo --measured a.json");
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert!(done.out.starts_with("distances that the firmware states\n"), "{}", done.out);
    assert!(done.out.contains("CPUs of node, memory of node  firmware  measured"), "{}", done.out);
    let mut other = BenchResults::read(&folder.path("a.json")).unwrap();
    other.machine_key = "other".into();
    std::fs::write(folder.path("b.json"), serde_json::to_string(&other).unwrap()).unwrap();
    folder.run("topo --measured b.json").says(0, "the results are of another machine: ");
    let matrix = &mut other.benchmarks[0].matrices[0];
    matrix.columns[0] = 900;
    std::fs::write(folder.path("c.json"), serde_json::to_string(&other).unwrap()).unwrap();
    folder.run("topo --measured c.json").says(2, "give results of a machine with these nodes");
    folder.run("topo --measured a.json --svg -").says(2, "cannot be used with");
    let [own, others] = ["a.json", "b.json"].map(|file| {
        let done = folder.run(&format!("topo --measured {file} --json"));
        assert_eq!((done.code, done.err.as_str()), (0, ""));
        serde_json::from_str::<serde_json::Value>(&done.out).unwrap()
    });
    assert_eq!((&own["same_machine"], &others["same_machine"]), (&true.into(), &false.into()));
    let nodes = own["latency"]["rows"].as_array().map(Vec::len).unwrap();
    assert_eq!(own["pairs"].as_array().map(Vec::len), Some(nodes * nodes), "{own}");
    assert_eq!((&own["pairs"][0]["measured"], &own["pairs"][0]["from"]), (&10.0.into(), &0.into()));
}
