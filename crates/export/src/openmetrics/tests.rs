use super::*;
use crate::testing::{batch, one, series, text};
use numakit_model::{Instance, Kind, Series, Unit};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

fn two_nodes() -> Vec<Series> {
    vec![
        one("cpu.user", Kind::COUNTER, Unit::Ticks, Instance::Cpu(0)),
        one("node.Mem Free(x)", Kind::Gauge, Unit::Kibibytes, Instance::Node(0)),
        one("node.Mem Free(x)", Kind::Gauge, Unit::Kibibytes, Instance::Node(1)),
        one("vmstat.nr", Kind::Gauge, Unit::Pages, Instance::Machine),
    ]
}

#[test]
fn the_last_value_of_each_series_is_written() {
    let rows = batch(&[
        (SECOND, &[Some(1204), Some(7), None, None]),
        (2 * SECOND + 1, &[Some(u64::MAX), None, Some(u64::MAX), None]),
    ]);
    let help = "Something \\\"odd\\\"\\nof two lines.";
    let expected = format!(
        "# TYPE numakit_cpu_user_seconds counter\n# UNIT numakit_cpu_user_seconds seconds\n\
         # HELP numakit_cpu_user_seconds {help}\n\
         numakit_cpu_user_seconds_total{{host=\"h 1\",cpu=\"0\"}} 184467440737095516.15 2.000000001\n\
         # TYPE numakit_node_mem_free_x_bytes gauge\n# UNIT numakit_node_mem_free_x_bytes bytes\n\
         # HELP numakit_node_mem_free_x_bytes {help}\n\
         numakit_node_mem_free_x_bytes{{host=\"h 1\",node=\"0\"}} 7168 1.000000000\n\
         numakit_node_mem_free_x_bytes{{host=\"h 1\",node=\"1\"}} 18889465931478580853760 2.000000001\n\
         # EOF\n"
    );
    assert_eq!(text("openmetrics", ExportedValues::Raw, false, &two_nodes(), &[rows]), expected);
}

#[test]
fn all_samples_of_a_series_are_consecutive_with_increasing_milliseconds() {
    let mut rows = batch(&[(SECOND, &[Some(0), Some(1), Some(2), None])]);
    rows.push_label(SECOND, "not a sample");
    rows.push_sample(SECOND + 999_999, 0, &[Some(1), Some(3), Some(4), None]);
    rows.push_sample(SECOND + 1_000_000, 0, &[Some(50), None, Some(6), Some(1)]);
    let text = text("openmetrics", ExportedValues::Raw, true, &two_nodes(), &[rows]);
    let samples: Vec<&str> = text.lines().filter(|l| !l.starts_with('#')).collect();
    let expected = [
        "numakit_cpu_user_seconds_total{host=\"h 1\",cpu=\"0\"} 0 1.000",
        "numakit_cpu_user_seconds_total{host=\"h 1\",cpu=\"0\"} 0.5 1.001",
        "numakit_node_mem_free_x_bytes{host=\"h 1\",node=\"0\"} 1024 1.000",
        "numakit_node_mem_free_x_bytes{host=\"h 1\",node=\"1\"} 2048 1.000",
        "numakit_node_mem_free_x_bytes{host=\"h 1\",node=\"1\"} 6144 1.001",
        "numakit_vmstat_nr_bytes{host=\"h 1\"} 4096 1.001",
    ];
    assert_eq!(samples, expected);
    assert_eq!(text.matches("# TYPE").count(), 3);
}

#[test]
fn the_memory_limit_does_not_change_the_text() {
    let rows: Vec<Vec<Option<u64>>> =
        (0..50).map(|i| vec![Some(i), Some(1), (i % 3 == 0).then_some(i), None]).collect();
    let rows: Vec<(u64, &[Option<u64>])> = rows.iter().zip(0..).map(|(r, i)| (i * 700_000, &r[..])).collect();
    let header = numakit_recording::Header { series: two_nodes(), page_size: 1, ..Default::default() };
    let families = Families::new(&header.series, 1, ExportedValues::Rates, &[]);
    let mut texts = [0, 2000, MAX_MEMORY].map(|memory| {
        let mut out = Vec::new();
        let mut source = ExportSource::in_memory(header.clone(), vec![batch(&rows)]);
        let notes =
            write_all_samples(&mut source, &families, ExportedValues::Rates, memory, &mut out).unwrap();
        assert!(notes[0].starts_with("15 of 50 samples were left out"), "{notes:?}");
        out
    });
    texts[2].push(0);
    assert!(texts[0] == texts[1] && texts[1].len() + 1 == texts[2].len() && texts[2].starts_with(&texts[1]));
}

#[test]
fn names_never_clash() {
    let series = series(&[
        ("a.x_total", Kind::COUNTER),
        ("a.x", Kind::Gauge),
        ("a.x(", Kind::COUNTER),
        ("a.x_2_total", Kind::Gauge),
        ("a.y", Kind::Rate),
    ]);
    let families = Families::new(&series, 0, ExportedValues::Raw, &[]);
    let names: Vec<&str> = families.list().iter().map(Family::name).collect();
    let expected =
        ["numakit_a_x", "numakit_a_x_2", "numakit_a_x_3", "numakit_a_x_2_2", "numakit_a_y_per_second"];
    assert_eq!(names, expected);
    let rates = Families::new(
        &[one("a.b", Kind::COUNTER, Unit::Ticks, Instance::Machine)],
        0,
        ExportedValues::Rates,
        &[],
    );
    assert_eq!(rates.list()[0].name(), "numakit_a_b_seconds_per_second");
    let pages = Families::new(
        &[one("a.b", Kind::Gauge, Unit::Pages, Instance::Machine)],
        0,
        ExportedValues::Raw,
        &[],
    );
    assert_eq!(pages.list()[0].name(), "numakit_a_b_pages");
}

#[test]
fn names_are_lower_case_with_underscores() {
    for (name, expected) in [
        ("node.MemFree", "numakit_node_mem_free"),
        ("node.KReclaimable", "numakit_node_kreclaimable"),
        ("vmstat.nr_sec_page_table_pages", "numakit_vmstat_nr_secondary_page_table_pages"),
        ("node.Active(anon)", "numakit_node_active_anon"),
        ("node.HugePages_Total", "numakit_node_huge_pages"),
        ("numaconnect2.n2WaitCycReqSiuRmpe", "numakit_numaconnect2_n2_wait_cyc_req_siu_rmpe"),
        ("numaconnect2.n2CycRmpe0freeS", "numakit_numaconnect2_n2_cyc_rmpe0free_s"),
        ("a.HTTP", "numakit_a_http"),
        ("_a._b__c_", "numakit_a_b_c"),
    ] {
        let families = Families::new(
            &[one(name, Kind::Gauge, Unit::Count, Instance::Machine)],
            0,
            ExportedValues::Raw,
            &[],
        );
        assert_eq!(families.list()[0].name(), expected, "{name}");
    }
}

proptest! {
    #[test]
    fn names_are_valid(names in proptest::collection::vec("\\PC{0,12}", 1..6)) {
        let series: Vec<Series> =
            names.iter().map(|n| one(n, Kind::COUNTER, Unit::Bytes, Instance::Machine)).collect();
        let families = Families::new(&series, 0, ExportedValues::Raw, &[("l", "\"\n")]);
        let mut names = std::collections::HashSet::new();
        for family in families.list() {
            let mut chars = family.name().chars();
            prop_assert!(chars.next().is_some_and(|c| c.is_ascii_alphabetic()));
            prop_assert!(chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'));
            prop_assert!(family.name().ends_with("_bytes") && names.insert(family.name().to_owned()));
        }
    }
}
