//! A strict parser of the protocol reads the exported lines.

use super::*;
use crate::testing::{batch, one, text};
use numakit_model::{Instance, Kind, Unit};
use proptest::prelude::*;

#[derive(Debug, PartialEq)]
struct Point {
    measurement: String,
    tags: Vec<(String, String)>,
    fields: Vec<(String, String)>,
    time: u64,
}

/// Splits at a character that is neither escaped nor between quotes.
fn split(text: &str, at: char) -> Vec<&str> {
    let (mut parts, mut begin, mut escaped, mut quoted) = (Vec::new(), 0, false, false);
    for (index, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            c if c == at && !quoted => {
                parts.push(&text[begin..index]);
                begin = index + c.len_utf8();
            }
            _ => {}
        }
    }
    assert!(!escaped && !quoted, "open at its end: {text}");
    parts.push(&text[begin..]);
    parts
}

fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(if c == '\\' { chars.next().unwrap() } else { c });
    }
    assert!(!out.is_empty());
    out
}

fn pair(text: &str) -> (String, String) {
    let [name, value] = split(text, '=')[..] else { panic!("no pair: {text}") };
    (plain(name), if value.starts_with('"') { value.to_owned() } else { plain(value) })
}

fn read(line: &str) -> Point {
    let [head, fields, time] = split(line, ' ')[..] else { panic!("not three parts: {line}") };
    let head = split(head, ',');
    assert!(!head[0].starts_with('#'));
    Point {
        measurement: plain(head[0]),
        tags: head[1..].iter().map(|t| pair(t)).collect(),
        fields: split(fields, ',').into_iter().map(pair).collect(),
        time: time.parse().unwrap(),
    }
}

#[test]
fn a_line_per_sensor_place_and_kind() {
    let series = [
        one("a.x", Kind::COUNTER, Unit::Count, Instance::Node(0)),
        one("a.level", Kind::Gauge, Unit::Count, Instance::Node(0)),
        one("a.y", Kind::COUNTER, Unit::Count, Instance::Node(0)),
        one("a.x", Kind::COUNTER, Unit::Count, Instance::Link(0, 1)),
        one("b.r", Kind::Rate, Unit::Count, Instance::Machine),
    ];
    let mut rows = batch(&[
        (1, &[Some(i64::MAX as u64), Some(3), Some(1), None, Some(-1i64 as u64)]),
        (500_000_001, &[None, Some(4), Some(2), None, None]),
    ]);
    rows.push_label(2, "a \"b\" c\\\n=,");
    let raw = text("influx", ExportedValues::Raw, false, &series, &[rows.clone()]);
    assert_eq!(
        raw,
        "a,host=h\\ 1,node=0,kind=counter x=9223372036854775807i,y=1i 1\n\
         a,host=h\\ 1,node=0,kind=gauge level=3i 1\n\
         b,host=h\\ 1,kind=rate r_per_second=-1 1\n\
         a,host=h\\ 1,node=0,kind=counter y=2i 500000001\n\
         a,host=h\\ 1,node=0,kind=gauge level=4i 500000001\n\
         label,host=h\\ 1 text=\"a \\\"b\\\" c\\\\ =,\" 2\n"
    );
    let rates = text("influx", ExportedValues::Rates, false, &series, &[rows]);
    assert!(
        rates.contains("node=0,kind=rate y_per_second=2 500000001\n") && rates.contains("level=4i"),
        "{rates}"
    );
    raw.lines().for_each(|line| drop(read(line)));
}

#[test]
fn names_are_accepted_by_all_servers_and_unique() {
    let gauge = |name| one(name, Kind::Gauge, Unit::Count, Instance::Machine);
    let series = [gauge("node.Active(anon)"), gauge("node.Active_anon"), gauge("perf.sched:sched_switch")];
    let rows = batch(&[(1, &[Some(1), Some(2), Some(3)])]);
    assert_eq!(
        text("influx", ExportedValues::Raw, false, &series, &[rows]),
        "node,host=h\\ 1,kind=gauge Active_anon=1i,Active_anon_2=2i 1\n\
         perf,host=h\\ 1,kind=gauge sched_sched_switch=3i 1\n"
    );
}

#[test]
fn integers_that_do_not_fit_are_left_out_with_a_note() {
    let series = [
        one("a.x", Kind::COUNTER, Unit::Count, Instance::Machine),
        one("a.time", Kind::Gauge, Unit::Count, Instance::Machine),
        one("a.y_per_second", Kind::Gauge, Unit::Count, Instance::Machine),
    ];
    let header = Header { series: series.to_vec(), ..Header::default() };
    let rows = batch(&[(1, &[Some(u64::MAX), Some(1), Some(2)]), (2, &[Some(1 << 63), None, None])]);
    let mut out = Vec::new();
    let options = ExportOptions { values: ExportedValues::Raw, all: false };
    let notes = write(&mut ExportSource::in_memory(header, vec![rows]), options, &mut out).unwrap();
    assert_eq!(out, b"a,kind=gauge time_=1i,y_per_second_=2i 1\n");
    assert_eq!(
        notes,
        ["2 values were left out: they are above 9223372036854775807, the maximum integer of this format"]
    );
}

/// The type of a field as a server infers it.
fn type_of(value: &str) -> &str {
    match value {
        text if text.starts_with('"') => "string",
        integer if integer.strip_suffix('i').is_some_and(|i| i.parse::<i64>().is_ok()) => "integer",
        float if float.parse::<f64>().is_ok() => "float",
        other => panic!("{other} has no type that all servers have"),
    }
}

proptest! {
    #[test]
    fn exported_lines_are_parsed(
        sensor in "[ !#-~é]{0,8}", metric in "[ !#-~é\t]{0,8}", label in "\\PC{0,20}",
        value in 0..=i64::MAX as u64, time in 0..=i64::MAX as u64,
    ) {
        prop_assume!(!sensor.contains('.'));
        let series = [one(&format!("{sensor}.{metric}"), Kind::Gauge, Unit::Count, Instance::Cpu(12))];
        let mut rows = batch(&[(time, &[Some(value)])]);
        rows.push_label(time, label.clone());
        let lines = text("influx", ExportedValues::Raw, false, &series, &[rows]);
        let points: Vec<Point> = lines.split_terminator('\n').map(read).collect();
        let expected_word = |name: &str| {
            let parts: Vec<&str> = name.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
            let word = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("_");
            if word.is_empty() { "_".to_owned() } else { word }
        };
        let expected = expected_word(&metric);
        let expected = match expected.as_str() {
            "time" => "time_".to_owned(),
            other if other.ends_with("_per_second") => format!("{other}_"),
            other => other.to_owned(),
        };
        prop_assert_eq!(&points[0].fields, &[(expected, format!("{value}i"))]);
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        prop_assert_eq!(&points[0].tags, &[pair("host", "h 1"), pair("cpu", "12"), pair("kind", "gauge")]);
        prop_assert_eq!(&points[0].measurement, &expected_word(&sensor));
        let quoted = format!("\"{}\"", label.replace('\\', "\\\\").replace('"', "\\\""));
        prop_assert_eq!(&points[1].fields, &[pair("text", &quoted)]);
        prop_assert!(points.iter().all(|p| p.time == time));
    }

    /// A server with the raw values accepts the rates too, and vice versa.
    #[test]
    fn a_field_has_one_type_whatever_is_exported(
        kinds in proptest::collection::vec((0..4usize, prop_oneof![Just(Kind::COUNTER), Just(Kind::Gauge), Just(Kind::Rate)]), 1..6),
        rows in proptest::collection::vec(any::<[Option<u64>; 6]>(), 1..5),
    ) {
        let names = ["a.x", "a.x_per_second", "a.time", "b.x"];
        let series: Vec<_> = kinds.iter().enumerate().map(|(at, (name, kind))| {
            one(names[*name], *kind, Unit::Count, Instance::Cpu(at as u32))
        }).collect();
        let rows: Vec<_> =
            rows.iter().enumerate().map(|(at, row)| (at as u64 * 1_000_000, &row[..series.len()])).collect();
        let mut types = std::collections::HashMap::new();
        for values in [ExportedValues::Raw, ExportedValues::Rates] {
            for point in text("influx", values, false, &series, &[batch(&rows)]).lines().map(read) {
                for (field, value) in point.fields {
                    prop_assert!(field != "time");
                    let found = type_of(&value).to_owned();
                    let known = types.entry((point.measurement.clone(), field)).or_insert(found.clone());
                    prop_assert_eq!(known.as_str(), found);
                }
            }
        }
    }
}
