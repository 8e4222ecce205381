use super::*;
use crate::columns::COLUMNS;
use numakit_model::topology::Node;
use numakit_model::{Metric, Unit};
use std::sync::Arc;
use std::time::Duration;

const MS: u64 = 1_000_000;

fn metric(name: &str, unit: Unit, kind: Kind, instance: Instance) -> Arc<Metric> {
    let resolution = if unit == Unit::Ticks { Duration::from_millis(10) } else { Duration::ZERO };
    Arc::new(Metric {
        name: name.into(),
        unit,
        kind,
        scope: instance.scope(),
        help: String::new(),
        source: String::new(),
        resolution,
        confidence: None,
        maximum: None,
    })
}

fn series(name: &str, unit: Unit, kind: Kind, instance: Instance) -> Series {
    Series::new(&metric(name, unit, kind, instance), instance)
}

fn counter(name: &str) -> Series {
    series(name, Unit::Count, Kind::COUNTER, Instance::Machine)
}

fn header(series: Vec<Series>) -> Header {
    let node = |os_index: u32| Node {
        os_index,
        cpus: CpuSet::range(2 * os_index, 2 * os_index + 1),
        ..Node::default()
    };
    let topology = Topology { nodes: vec![node(0), node(1)], ..Topology::default() };
    Header { series, topology: Some(topology), page_size: 4096, ..Header::default() }
}

/// A machine with two nodes of two CPUs that has every series of every column.
fn everything() -> Header {
    let sensors = numakit_sensors::SENSORS.iter().flat_map(|s| (s.known)());
    let wanted: Vec<&str> = COLUMNS
        .iter()
        .flat_map(|c| Catalog::built_in().names(c.formula(Catalog::built_in()).unwrap()))
        .collect();
    let mut all = Vec::new();
    for known in sensors.filter(|m| wanted.contains(&m.name.as_str())) {
        let known = Arc::new(known);
        let places: Vec<Instance> = match known.scope {
            numakit_model::Scope::Node => (0..2).map(Instance::Node).collect(),
            numakit_model::Scope::Cpu => (0..4).map(Instance::Cpu).collect(),
            _ => vec![Instance::Machine],
        };
        all.extend(places.into_iter().map(|place| Series::new(&known, place)));
    }
    header(all)
}

/// Lines of two samples 100 ms apart; every counter grows by its place times `step`.
fn two_samples(header: &Header, options: StatOptions<'_>, step: u64) -> String {
    let mut table = StatTable::new(header, Catalog::built_in(), options).unwrap();
    let mut out = String::new();
    let row = |factor: u64| -> Vec<Option<u64>> {
        (0..header.series.len() as u64).map(|at| Some(1000 + factor * step * (at % 7))).collect()
    };
    assert!(!table.sample(0, &row(0), &mut out));
    assert!(table.sample(100 * MS, &row(1), &mut out));
    out
}

#[test]
fn no_value_moves_a_column() {
    let header = everything();
    for per in [Per::Machine, Per::Node, Per::Cpu] {
        let options = StatOptions { per: Some(per), ..StatOptions::default() };
        let widths: Vec<usize> = [0, 1, 1000, 1 << 20, 1 << 40, 1 << 50]
            .into_iter()
            .flat_map(|step| {
                two_samples(&header, options, step).lines().skip(1).map(str::len).collect::<Vec<_>>()
            })
            .collect();
        assert!(widths.iter().all(|w| *w == widths[0]), "per {}: {widths:?}", per.name());
        assert!(widths[0] <= 100, "per {}: {}", per.name(), widths[0]);
    }
}

#[test]
fn a_machine_line_reads_like_this() {
    let columns = [
        series("vmstat.nr_free_pages", Unit::Pages, Kind::Gauge, Instance::Machine),
        counter("vmstat.numa_local"),
        counter("vmstat.numa_other"),
        counter("vmstat.numa_miss"),
        counter("vmstat.pgfault"),
        counter("vmstat.pgmajfault"),
    ];
    let header = header(columns.to_vec());
    let mut table = StatTable::new(&header, Catalog::built_in(), StatOptions::default()).unwrap();
    let mut out = String::new();
    assert!(!table.sample(5_000 * MS, &[262_144, 0, 0, 0, 0, 0].map(Some), &mut out));
    assert_eq!(out, "", "a rate needs two samples");
    assert!(table.sample(5_100 * MS, &[262_144, 900, 100, 5, 20_000, 0].map(Some), &mut out));
    table.label(5_150 * MS, "a\nlabel", &mut out);
    assert!(table.sample(5_200 * MS, &[Some(131_072), None, None, Some(5), Some(20_000), Some(2)], &mut out));
    let expected = "         memory -alloc/s- -faults/s--\n \
                    seconds   free loc% miss minor major\n   \
                    0.100 1.00Gi 90.0   50  200k     0\n\
                    -- a label --\n   \
                    0.200  512Mi    -    0     0    20\n";
    let squeezed = |text: &str| text.lines().map(|l| l.trim().to_owned()).collect::<Vec<_>>();
    assert_eq!(squeezed(&out), squeezed(expected));
}

#[test]
fn stolen_time_is_the_last_share() {
    let names = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
    let of =
        |n| names.map(|name| series(&format!("cpu.{name}"), Unit::Ticks, Kind::COUNTER, Instance::Cpu(n)));
    let header = header([0, 1].map(of).concat());
    for (per, ends) in [(Per::Machine, &[" 25"][..]), (Per::Node, &[" 25"]), (Per::Cpu, &["  0", " 50"])] {
        let options = StatOptions { per: Some(per), ..StatOptions::default() };
        let mut table = StatTable::new(&header, Catalog::built_in(), options).unwrap();
        let mut out = String::new();
        let (busy, stolen) = ([50, 0, 0, 50, 0, 0, 0, 0], [25, 0, 0, 25, 0, 0, 0, 50]);
        table.sample(0, &[Some(0); 16], &mut out);
        table.sample(1000 * MS, &[busy, stolen].concat().into_iter().map(Some).collect::<Vec<_>>(), &mut out);
        let lines: Vec<&str> = out.lines().collect();
        assert!(lines[1].ends_with(" st"), "{out}");
        assert!(lines[2..].iter().zip(ends).all(|(line, end)| line.ends_with(end)), "{out}");
    }
}

#[test]
fn the_originals_table_has_names_and_whole_numbers_only() {
    let card = |n| series("numaconnect2.n2CachelinesSent", Unit::Count, Kind::COUNTER, Instance::Device(n));
    let header = header(vec![counter("vmstat.pgfault"), card(0), card(1)]);
    let options = StatOptions {
        show: StatColumns::Series,
        format: TableFormat::Original,
        width: Some(20),
        ..StatOptions::default()
    };
    let mut table = StatTable::new(&header, Catalog::built_in(), options).unwrap();
    let mut out = String::new();
    assert!(!table.sample(0, &[Some(0); 3], &mut out));
    assert!(table.sample(1000 * MS, &[Some(527), Some(1_234_567), None], &mut out));
    table.label(1100 * MS, "phase 2", &mut out);
    let headings = "pgfault n2CachelinesSent:0 n2CachelinesSent:1\n";
    assert_eq!(out, format!("{headings}    527            1234567                  - \n- phase 2 -\n"));
    for second in 2..40 {
        assert!(table.sample(second * 1000 * MS, &[Some(527), Some(1_234_567), None], &mut out));
    }
    assert_eq!(out.matches(headings).count(), 2, "39 lines");
    assert_eq!(out.lines().skip(27).take(1).collect::<Vec<_>>(), [headings.trim_end()]);
}

#[test]
fn headings_are_repeated_and_never_separate_a_sample() {
    let node = |n| series("node.numa_miss", Unit::Count, Kind::COUNTER, Instance::Node(n));
    let header = header(vec![node(0), node(1)]);
    let options = StatOptions { per: Some(Per::Node), repeat: 7, ..StatOptions::default() };
    let mut table = StatTable::new(&header, Catalog::built_in(), options).unwrap();
    let mut out = String::new();
    for tick in 0..6 {
        table.sample(tick * 100 * MS, &[Some(tick), Some(2 * tick)], &mut out);
    }
    let headings: Vec<usize> =
        out.lines().enumerate().filter(|(_, l)| l.contains("seconds")).map(|(at, _)| at).collect();
    assert_eq!(headings, [1, 7, 13], "{out}");
    let nodes: Vec<&str> =
        out.lines().filter_map(|l| l.split_whitespace().nth(1)).filter(|w| w.len() == 1).collect();
    assert_eq!(nodes, ["0", "1", "0", "1", "0", "1", "0", "1", "0", "1"]);
}

#[test]
fn a_pause_is_no_rate() {
    let header = header(vec![counter("vmstat.pgfault"), counter("vmstat.pgmajfault")]);
    let mut table = StatTable::new(&header, Catalog::built_in(), StatOptions::default()).unwrap();
    let mut out = String::new();
    let mut at = |ms: u64, value| table.sample(ms * MS, &[Some(value), Some(0)], &mut out);
    assert!(!at(0, 0));
    assert!(at(100, 10));
    table.label(110 * MS, &RecorderEvent::Paused.text(), &mut out);
    table.label(9_000 * MS, &RecorderEvent::Resumed.text(), &mut out);
    let mut at = |ms: u64, value| table.sample(ms * MS, &[Some(value), Some(0)], &mut out);
    assert!(!at(9_000, 1_000_000));
    assert!(at(9_100, 1_000_020));
    let last: Vec<&str> = out.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(last, ["9.100", "200", "0"]);
    assert!(out.contains("-- paused --\n-- resumed --\n"), "{out}");
}

#[test]
fn shares_are_never_finer_than_a_tick() {
    let tick = |name| series(name, Unit::Ticks, Kind::COUNTER, Instance::Cpu(0));
    let header = header(vec![tick("cpu.user"), tick("cpu.idle")]);
    let mut table = StatTable::new(&header, Catalog::built_in(), StatOptions::default()).unwrap();
    let mut out = String::new();
    for ms in 0..=10u64 {
        table.sample(ms * MS, &[Some(ms / 10), Some(0)], &mut out);
    }
    let shares: Vec<&str> = out.lines().skip(2).filter_map(|l| l.split_whitespace().nth(1)).collect();
    assert_eq!(shares[..9], ["-"; 9]);
    assert_eq!(shares[9], "100");
}

#[test]
fn csv_has_every_column_and_absence_is_empty() {
    let header = header(vec![counter("vmstat.pgfault"), counter("vmstat.pgmajfault")]);
    let options = StatOptions { format: TableFormat::Csv, ..StatOptions::default() };
    let mut table = StatTable::new(&header, Catalog::built_in(), options).unwrap();
    let mut out = String::new();
    table.label(1_000_000_000, "say \"hi\"", &mut out);
    table.sample(1_000_000_000, &[Some(0), Some(0)], &mut out);
    table.sample(1_100_000_000, &[Some(10), None], &mut out);
    table.sample(1_200_000_000, &[Some(25), Some(4)], &mut out);
    let lines: Vec<&str> = out.lines().collect();
    let names: Vec<&str> = columns(Per::Machine).map(|c| c.name).collect();
    assert_eq!(lines[0], format!("time,label,{}", names.join(",")));
    assert!(lines[1].starts_with("1.000000,\"say \"\"hi\"\"\",,"));
    let commas = |line: &str| line.matches(',').count();
    assert!(lines[1..].iter().all(|l| commas(l) == commas(lines[0])), "{out}");
    let fields: Vec<&str> = lines[3].split(',').collect();
    let minor = names.iter().position(|n| *n == "minor").unwrap() + 2;
    assert_eq!((fields[0], fields[minor], fields[minor + 1], fields[2]), ("1.200000", "130", "20", ""));
    assert_eq!(lines[2].split(',').nth(minor), Some(""), "no part without the whole");
}

#[test]
fn json_is_one_object_a_line_in_the_order_of_columns() {
    let node = |n| series("node.numa_miss", Unit::Count, Kind::COUNTER, Instance::Node(n));
    let header = header(vec![node(0), node(1)]);
    let options = StatOptions { format: TableFormat::Json, per: Some(Per::Node), ..StatOptions::default() };
    let mut table = StatTable::new(&header, Catalog::built_in(), options).unwrap();
    let mut out = String::new();
    table.sample(0, &[Some(0), Some(0)], &mut out);
    table.sample(100 * MS, &[Some(10), None], &mut out);
    table.label(150 * MS, "x", &mut out);
    table.label(150 * MS, &RecorderEvent::Lost(2).text(), &mut out);
    let lines: Vec<Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!((&lines[0]["time"], &lines[0]["miss@node0"]), (&json!(0.1), &json!(100)));
    assert_eq!(lines[0].get("miss@node1"), Some(&Value::Null));
    assert_eq!((&lines[1]["label"], &lines[2]["event"]), (&json!("x"), &json!("lost 2")));
    assert!(out.starts_with("{\"time\":0.1,\"free@node0\":null,"));
}

#[test]
fn selected_series_are_columns_below_their_instance() {
    let header = header(vec![
        series("node.MemFree", Unit::Kibibytes, Kind::Gauge, Instance::Node(0)),
        series("node.numa_hit", Unit::Count, Kind::COUNTER, Instance::Node(0)),
        series("node.MemFree", Unit::Kibibytes, Kind::Gauge, Instance::Node(1)),
        series("cpu.user", Unit::Ticks, Kind::COUNTER, Instance::Cpu(3)),
        series("vmstat.compact_daemon_wake", Unit::Count, Kind::COUNTER, Instance::Machine),
    ]);
    let values = |n: u64| [Some(1 << 20), Some(100 * n), Some(2 << 20), Some(5 * n), Some(n)];
    let lines = |format, per| {
        let mut table = StatTable::new(
            &header,
            Catalog::built_in(),
            StatOptions { show: StatColumns::Series, format, per, ..StatOptions::default() },
        )
        .unwrap();
        let mut out = String::new();
        table.sample(0, &values(0), &mut out);
        table.sample(100 * MS, &values(1), &mut out);
        out.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    let text = lines(TableFormat::Text, None);
    assert_eq!(text[0], "-----node0------ -node1- cpu3- --vmstat---");
    assert_eq!(text[1], "seconds MemFree numa_hit MemFree user com_dae_wak");
    assert_eq!(text[2], "0.100 1.00Gi 1.00k 2.00Gi 50.0 10");
    let csv = lines(TableFormat::Csv, None);
    assert_eq!(
        csv[0],
        "time,label,node.MemFree@node0,node.numa_hit@node0,node.MemFree@node1,cpu.user@cpu3,vmstat.compact_daemon_wake"
    );
    assert_eq!(csv[1], "0.100000,,1048576,1000,2097152,50,10", "the metric's own units");
    let machine = lines(TableFormat::Text, Some(Per::Machine));
    assert_eq!(machine[2], "0.100 3.00Gi 1.00k 50.0 10");
    let node = lines(TableFormat::Text, Some(Per::Node));
    assert_eq!(
        node[2..],
        ["0.100 0 1.00Gi 1.00k -", "0.100 1 2.00Gi - 50.0"],
        "series of the machine belong to no node"
    );
}

#[test]
fn gauges_need_no_second_sample() {
    let header = header(vec![series("node.MemFree", Unit::Kibibytes, Kind::Gauge, Instance::Node(0))]);
    let mut table = StatTable::new(
        &header,
        Catalog::built_in(),
        StatOptions { show: StatColumns::Series, ..StatOptions::default() },
    )
    .unwrap();
    let mut out = String::new();
    assert!(table.sample(0, &[Some(1024)], &mut out));
    assert!(out.ends_with("   0.000  1.00Mi\n"), "{out}");
}

#[test]
fn errors_name_the_fix() {
    let error = |header: &Header, options| {
        StatTable::new(header, Catalog::built_in(), options).unwrap_err().to_string()
    };
    let machine_only = header(vec![counter("vmstat.pgfault")]);
    let per = |per| StatOptions { per: Some(per), ..StatOptions::default() };
    assert!(error(&machine_only, per(Per::Node)).contains("per node; use --per machine"));
    assert!(error(&header(Vec::new()), StatOptions::default()).contains("numa doctor"));
    let cpu = Instance::Cpu(9);
    let mixed = header(vec![series("cpu.user", Unit::Ticks, Kind::COUNTER, cpu), counter("vmstat.x")]);
    assert_eq!(
        error(&header(vec![counter("vmstat.unknown")]), StatOptions::default()),
        StatError::NoColumns.to_string()
    );
    assert!(
        StatTable::new(
            &mixed,
            Catalog::built_in(),
            StatOptions { show: StatColumns::Series, per: Some(Per::Cpu), ..StatOptions::default() }
        )
        .is_ok()
    );
}

#[test]
fn a_narrow_terminal_shows_what_fits_and_says_how_much_does_not() {
    let header = everything();
    let mut table = StatTable::new(
        &header,
        Catalog::built_in(),
        StatOptions { width: Some(60), ..StatOptions::default() },
    )
    .unwrap();
    assert!(table.left_out() > 0);
    let mut out = String::new();
    let zeros = vec![Some(0); header.series.len()];
    table.sample(0, &zeros, &mut out);
    table.sample(MS, &zeros, &mut out);
    assert!(out.lines().all(|l| l.len() <= 60), "{out}");
    let wide = StatTable::new(
        &header,
        Catalog::built_in(),
        StatOptions { width: Some(100), ..StatOptions::default() },
    )
    .unwrap();
    assert_eq!(wide.left_out(), 0);
}

#[test]
fn only_needed_series_are_sampled() {
    let header = everything();
    let wanted = |per| {
        let flags = needed(&header, Catalog::built_in(), per);
        let names: Vec<String> =
            header.series.iter().zip(flags).filter(|(_, w)| *w).map(|(s, _)| s.name()).collect();
        names
    };
    let machine = wanted(Per::Machine);
    assert!(machine.contains(&"vmstat.nr_free_pages".to_owned()));
    assert!(!machine.iter().any(|n| n.starts_with("node.")), "vmstat has the same");
    assert!(wanted(Per::Node).contains(&"node.numa_foreign@node1".to_owned()));
    assert!(wanted(Per::Cpu).iter().all(|n| n.starts_with("cpu.")));
}

#[test]
fn selected_formulas_are_columns_and_need_only_their_series() {
    let header = everything();
    let names = ["locality", "fault_rate", "free"].map(str::to_owned);
    let per = |per| needed_by(&header, Catalog::built_in(), per, &names);
    let wanted = per(Per::Machine).unwrap();
    let taken: Vec<String> =
        header.series.iter().zip(wanted).filter(|(_, w)| *w).map(|(s, _)| s.name()).collect();
    let expected = ["vmstat.nr_free_pages", "vmstat.numa_local", "vmstat.numa_other", "vmstat.pgfault"];
    assert!(taken.len() == 4 && expected.iter().all(|name| taken.contains(&(*name).to_owned())), "{taken:?}");
    let options = StatOptions {
        show: StatColumns::Formulas(&names),
        format: TableFormat::Csv,
        ..StatOptions::default()
    };
    let csv = two_samples(&header, options, 5);
    assert!(csv.starts_with("time,label,locality,fault_rate,free\n"), "{csv}");
    let text = two_samples(&header, StatOptions { format: TableFormat::Text, ..options }, 5);
    assert!(text.lines().nth(1).unwrap().ends_with("seconds locality fault_rate   free"), "{text}");
    let why = per(Per::Cpu).unwrap_err().to_string();
    assert!(
        why.starts_with("'locality' cannot be computed per cpu here: it needs vmstat.numa_local: "),
        "{why}"
    );
}

#[test]
fn unknown_and_unavailable_formulas_are_errors() {
    let mut header = header(vec![counter("vmstat.pgfault")]);
    let fix =
        numakit_model::Unavailable::new("a PMU", "no PMU uncore_imc", numakit_model::Fix::command("get one"));
    header.absent.push(numakit_recording::AbsentMetric { name: "uncore".into(), why: fix });
    let error = |name: &str| {
        let names = [name.to_owned()];
        let options = StatOptions { show: StatColumns::Formulas(&names), ..StatOptions::default() };
        StatTable::new(&header, Catalog::built_in(), options).unwrap_err().to_string()
    };
    assert!(error("fault_rat").starts_with("unknown formula 'fault_rat'; nearest: fault_rate"));
    assert_eq!(
        error("link_out"),
        "'link_out' cannot be computed per machine here: it needs uncore.link_data_out: no PMU uncore_imc; get one \
         (alternative: numaconnect2.n2CachelinesSent)"
    );
    assert!(
        error("major").contains("it needs vmstat.pgmajfault: the kernel does not show it; "),
        "{}",
        error("major")
    );
}

#[test]
fn packages_have_lines_of_their_own() {
    let mut header = everything();
    let package = |os_index, first, last| numakit_model::topology::Package {
        os_index: Some(os_index),
        cpus: CpuSet::range(first, last),
    };
    if let Some(topology) = &mut header.topology {
        topology.packages = vec![package(0, 0, 1), package(1, 2, 3)];
    }
    let options = StatOptions { per: Some(Per::Package), ..StatOptions::default() };
    let text = two_samples(&header, options, 5);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(
        lines[1].trim_start().starts_with("seconds package   free loc% miss   rem%    dram user"),
        "{text}"
    );
    assert!(lines.iter().all(|l| l.len() == lines[1].len()), "{text}");
}

#[test]
fn a_ring_is_followed_until_it_is_closed_or_enough_was_shown() {
    let header = header(vec![counter("vmstat.pgfault")]);
    let options =
        StatOptions { show: StatColumns::Series, format: TableFormat::Csv, ..StatOptions::default() };
    let lines = |count: Option<u64>| {
        let ring = numakit_recording::Ring::in_memory(1, 8).unwrap();
        ring.push(0, 0, &[Some(5)]);
        assert!(ring.push_label(50 * MS, "phase"));
        (1..4).for_each(|n| ring.push(n * 100 * MS, 0, &[Some(5 + n)]));
        ring.close();
        let table = StatTable::new(&header, Catalog::built_in(), options).unwrap();
        let mut text = String::new();
        let written = follow(table, &ring, count, |more| {
            text += more;
            Ok::<(), ()>(())
        });
        assert_eq!(written, Ok(()));
        text.lines().skip(1).map(|line| line.split(',').nth(1).unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(lines(None), ["\"phase\"", "", "", ""]);
    assert_eq!(lines(Some(2)), ["\"phase\"", "", ""], "one line comes after two samples");
    // A failed write ends it.
    let ring = numakit_recording::Ring::in_memory(1, 8).unwrap();
    ring.push(0, 0, &[Some(5)]);
    let table = StatTable::new(&header, Catalog::built_in(), options).unwrap();
    assert_eq!(follow(table, &ring, None, |_| Err("closed")), Err("closed"));
}
