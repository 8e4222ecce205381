use super::*;
use numakit_model::{Instance, Kind, Series, Unit};

const SAMPLE: &str = r#"[["kernel VMstat", 1, 0],
["pgfault","nr_free_pages"],
[1000000,12,-5],
["label",1500000,"phase 2"],
[2000000,0,7]]
"#;

/// A recording of the original, with its headings.
const CARDS: &str = r#"[["NumaConnect2",2,200000000],
["% wait cycles for requests from from SIU to RMPE:0","% wait cycles for requests from from SIU to RMPE:1","data packets with full cachelines of data sent:0","data packets with full cachelines of data sent:1","something new:1"],
[1554000000000000,5000000,194000000,2000000,4000000,-1],
["label",1554000000050000,"EP \"D\""],
[1554000000100000,5000001,194000001,380000,400000,null],
[1554000000200000,0,193999999,380000,400000,9007199254740993]
]
"#;

fn one(text: &str) -> (Header, Batch, Option<String>) {
    let (header, mut batches, damage) = read(text.as_bytes()).unwrap();
    assert!(batches.len() <= 1);
    let batch = batches.pop().unwrap_or_else(|| Batch::empty(header.series.len()));
    (header, batch, damage)
}

fn written(header: &Header, batches: &[Batch]) -> String {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, header).unwrap();
    batches.iter().for_each(|batch| writer.batch(batch).unwrap());
    writer.finish().unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_original_form_is_read() {
    let (header, batch, damage) = one(SAMPLE);
    assert_eq!(damage, None);
    assert_eq!(header.series[0].name(), "vmstat.pgfault");
    assert_eq!(header.started, 1_000_000_000);
    assert_eq!(batch.time, [1_000_000_000, 1_500_000_000, 2_000_000_000]);
    assert_eq!(batch.label[1].as_deref(), Some("phase 2"));
    assert_eq!(batch.columns[1].get(0).map(|v| v as i64), Some(-5));
    assert_eq!(batch.columns[1].get(1), None);
    // The original writes rates of change of levels.
    assert_eq!(header.series[1].metric.kind, Kind::Rate);
}

#[test]
fn cards_are_recognised_by_their_headings_and_percentages_by_the_maximum() {
    let (header, batch, _) = one(CARDS);
    let names: Vec<String> = header.series.iter().map(Series::name).collect();
    assert_eq!(
        names,
        [
            "numaconnect2.n2WaitCycReqSiuRmpe@card0",
            "numaconnect2.n2WaitCycReqSiuRmpe@card1",
            "numaconnect2.n2CachelinesSent@card0",
            "numaconnect2.n2CachelinesSent@card1",
            "numaconnect2.something new@card1"
        ]
    );
    let of = |at: usize| (header.series[at].metric.unit, header.series[at].metric.maximum);
    assert_eq!((of(1), of(2)), ((Unit::Cycles, Some(200_000_000)), (Unit::Count, None)));
    // Equation 1: the sum over the interconnects of wait cycles by the maximum.
    let percent = |at: usize| {
        100.0 * batch.columns[at].get(0).unwrap() as f64 / header.series[at].metric.maximum.unwrap() as f64
    };
    assert_eq!((percent(0), percent(1), percent(0) + percent(1)), (2.5, 97.0, 99.5));
}

#[test]
fn a_percentage_of_any_sensor_is_of_its_maximum() {
    let (header, ..) = one(r#"[["UNC",8,400000000],["% busy","UNC0.1 IOA SCI Intr"],[1,2,3]]"#);
    let names: Vec<String> = header.series.iter().map(Series::name).collect();
    assert_eq!(names, ["unc.busy", "unc.UNC0.1 IOA SCI Intr"]);
    let maxima: Vec<_> = header.series.iter().map(|s| s.metric.maximum).collect();
    assert_eq!(maxima, [Some(400_000_000), None]);
}

#[test]
fn the_form_of_an_early_version_is_read() {
    let (header, batch, damage) =
        one(r#"[["Numascale NumaConnect2","n2CycRmpeHalf:0","n2CycRmpeHalf:1"],[5,6,7]]"#);
    assert_eq!(
        (header.series[1].name().as_str(), batch.len(), damage),
        ("numaconnect2.n2CycRmpeHalf@card1", 1, None)
    );
    assert_eq!(header.series[1].metric.maximum, None, "the file states none");
}

/// Only white space differs.
#[test]
fn files_of_the_original_survive_a_round_trip() {
    let unc = "[[\"UNC\",8,400000000],\n[\"% busy\",\"UNC0.1 IOA SCI Intr\"],\n[1,2,3]\n]\n";
    for text in [SAMPLE, CARDS, unc] {
        let (header, batch, _) = one(text);
        let again = written(&header, &[batch]);
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(value(&again), value(text), "{again}");
    }
}

fn series(metric: numakit_model::Metric, instance: Instance) -> Series {
    Series::new(&std::sync::Arc::new(metric), instance)
}

/// A recording of numakit: two cards and the kernel.
fn recorded() -> (Header, Batch) {
    let counter = |name: &str| numakit_sensors::numaconnect2::table::counter(name).unwrap().metric();
    let vmstat = |name: &str| {
        let line = numakit_sensors::known::VMSTAT.get(name).unwrap();
        line.metric("vmstat", numakit_model::Scope::Machine, "/proc/vmstat")
    };
    let header = Header {
        series: vec![
            series(vmstat("numa_local"), Instance::Machine),
            series(counter("n2WaitCycReqSiuRmpe"), Instance::Device(0)),
            series(counter("n2WaitCycReqSiuRmpe"), Instance::Device(1)),
            series(counter("n2Cyc"), Instance::Device(1)),
            series(counter("n2CachelinesSent"), Instance::Device(1)),
            series(vmstat("nr_free_pages"), Instance::Machine),
        ],
        ..Header::default()
    };
    let mut batch = Batch::empty(6);
    batch.push_label(1_000_000_000, "numakit:command ep.D");
    batch.push_sample(1_100_000_000, 5, &[Some(0), Some(0), Some(0), Some(0), Some(7), Some(100)]);
    batch.push_label(1_150_000_000, "phase");
    let second = [Some(50), None, Some(19_400_000), Some(20_000_000), Some(8), Some(90)];
    batch.push_sample(1_200_000_000, 5, &second);
    batch.push_sample(1_300_000_000, 5, &[Some(50), Some(200), None, None, Some(8), Some(80)]);
    batch.push_label(1_400_000_000, "numakit:exit 0");
    (header, batch)
}

#[test]
fn written_recordings_are_read_with_their_names_and_rates() {
    let (header, batch) = recorded();
    let text = written(&header, std::slice::from_ref(&batch));
    let (again, rows, damage) = one(&text);
    assert_eq!(damage, None, "{text}");
    let names = |header: &Header| header.series.iter().map(Series::name).collect::<Vec<_>>();
    assert_eq!(names(&again), names(&header));
    let maxima = |header: &Header| header.series.iter().map(|s| s.metric.maximum).collect::<Vec<_>>();
    assert_eq!(maxima(&again), maxima(&header));
    let kinds: Vec<Kind> = again.series.iter().map(|s| s.metric.kind).collect();
    assert_eq!((kinds[0], kinds[5]), (Kind::Rate, Kind::Gauge));
    // All labels are where they were; the first sample has no rates.
    let labels = |batch: &Batch| batch.label.iter().flatten().cloned().collect::<Vec<_>>();
    assert_eq!(labels(&rows), labels(&batch));
    assert!(rows.time.is_sorted(), "{:?}", rows.time);
    let column =
        |at: usize| (0..rows.len()).filter(|row| rows.label[*row].is_none()).map(move |row| (at, row));
    let values = |at: usize| column(at).map(|(at, row)| rows.columns[at].get(row)).collect::<Vec<_>>();
    assert_eq!(values(0), [Some(500), Some(0)]);
    assert_eq!(values(1), [None, Some(1000)]);
    assert_eq!(values(2), [Some(194_000_000), None]);
    assert_eq!(values(5), [Some(90), Some(80)]);
    // A second round trip changes nothing.
    assert_eq!(written(&again, &[rows]), text);
}

/// The page of the original reads these parts of the file: the name of the sensor and its maximum,
/// headings of text, a time in the third row and in the last, and a number or nothing for each heading.
#[test]
fn the_page_of_the_original_finds_its_data() {
    let (header, batch) = recorded();
    let text = written(&header, &[batch]);
    let json: Vec<Vec<Value>> = serde_json::from_str(&text).unwrap();
    assert_eq!(json[0], [Value::from("NumaConnect2"), 2.into(), 200_000_000.into()]);
    let headings: Vec<&str> = json[1].iter().map(|heading| heading.as_str().unwrap()).collect();
    assert_eq!(headings.iter().filter(|heading| heading.starts_with('%')).count(), 3);
    // What it shows by default.
    assert_eq!(headings[1], "% wait cycles for requests from SIU to RMPE:0");
    assert!(json[2][0].is_u64() && json[json.len() - 1][0].is_u64());
    for row in &json[2..] {
        if row[0] == "label" {
            assert!(row.len() == 3 && row[1].is_u64() && row[2].is_string());
        } else {
            assert_eq!(row.len(), headings.len() + 1);
            assert!(row.iter().all(|value| value.is_number() || value.is_null()));
        }
    }
}

#[test]
fn labels_without_samples_and_one_sample_are_written() {
    let (header, _) = recorded();
    let mut batch = Batch::empty(6);
    batch.push_label(1_000, "a");
    assert_eq!(one(&written(&header, &[batch.clone()])).1.labels(), 1);
    for time in [2_000, 3_000] {
        batch.push_sample(time, 0, &[Some(1); 6]);
    }
    batch.push_label(4_000, "b");
    let (_, rows, _) = one(&written(&header, &[batch]));
    assert_eq!((rows.time, rows.label[0].as_deref()), (vec![1_000, 3_000, 4_000], Some("a")));
}

#[test]
fn a_killed_recorder_leaves_readable_rows() {
    for cut in 0..SAMPLE.len() - 2 {
        match read(&SAMPLE.as_bytes()[..cut]) {
            Ok((_, batches, damage)) => {
                let rows: usize = batches.iter().map(Batch::len).sum();
                assert!(damage.is_some() && rows <= 3, "cut at {cut}");
            }
            Err(_) => assert!(cut < SAMPLE.find(",\n[1000000").unwrap(), "cut at {cut}"),
        }
    }
}

#[test]
fn other_files_are_refused() {
    for text in ["", "[]", "{}", "[1]", "[[1]]", r#"[["a",1,0]]"#, r#"[["a",1,0],[7]]"#] {
        assert!(read(text.as_bytes()).is_err(), "{text}");
    }
    for rest in ["[2,3,4],[3,5]]", "[2,[3]],[3,5]]", "7,[3,5]]", "[2 3],[3,5]]", "[\"label\",2],[3,5]]"] {
        let (_, batch, damage) = one(&format!(r#"[["a",1,0],["x"],[1,2],{rest}"#));
        assert!(batch.len() == 1 && damage.is_some(), "{rest}: {batch:?} {damage:?}");
    }
    let (_, batch, damage) = one(r#"[["a",1,0],["x"],[1,2]] and more"#);
    assert!(batch.len() == 1 && damage.is_some());
}

#[test]
fn rows_are_read_in_batches_and_again_from_any_of_them() {
    let row = |i: u64| format!(",\n[{},{i},{}]", i * 1000, u64::MAX / 2 - i);
    let rows: String = (0..40_000).map(row).collect();
    let text = format!("[[\"Card\",1,0],[\"a\",\"]\\\"\"]{rows}]");
    let (header, mut rows) = NumascopeRows::open(std::io::Cursor::new(&text)).unwrap();
    assert_eq!((header.series.len(), header.started), (2, 0));
    let (mut places, mut count) = (Vec::new(), 0);
    loop {
        let at = rows.position();
        let Some(batch) = rows.next_batch().unwrap() else { break };
        // Memory is bounded by the text of a batch.
        assert!(batch.len() * 5 <= BATCH, "{}", batch.len());
        count += batch.len() as u64;
        places.push((at, count - batch.len() as u64, batch));
    }
    assert_eq!((count, rows.damage()), (40_000, None));
    assert_eq!(places.len(), text.len().div_ceil(BATCH));
    for (at, before, batch) in places.iter().rev() {
        rows.go_to(*at, *before).unwrap();
        assert_eq!((rows.position(), rows.next_batch().unwrap().as_ref()), (*at, Some(batch)));
    }
}

/// The maximum memory of its batches, and their number.
fn batch_memory(text: &str) -> (usize, usize) {
    let (_, batches, damage) = read(text.as_bytes()).unwrap();
    assert_eq!(damage, None);
    let bytes = |batch: &Batch| {
        let labels = batch.label.capacity() * size_of::<Option<String>>();
        let columns: usize =
            batch.columns.iter().map(|c| c.values.capacity() * size_of::<u64>() + c.valid.capacity()).sum();
        (batch.time.capacity() + batch.took.capacity()) * size_of::<u64>() + labels + columns
    };
    (batches.iter().map(bytes).max().unwrap_or(0), batches.len())
}

/// The memory depends on the length of a batch, not on that of the file.
#[test]
fn memory_does_not_grow_with_the_file() {
    let text = |columns: usize, bytes: usize| {
        let headings: Vec<String> = (0..columns).map(|column| format!("\"{column}\"")).collect();
        let mut text = format!("[[\"Card\",1,0],[{}]", headings.join(","));
        let values = ",2".repeat(columns);
        for time in 1.. {
            if text.len() > bytes {
                break;
            }
            text.push_str(&format!(",[{time}{values}]"));
        }
        text + "]"
    };
    for columns in [1, 300] {
        let (small, few) = batch_memory(&text(columns, 2 * BATCH));
        let (large, many) = batch_memory(&text(columns, 4 * BATCH));
        assert!(large <= small && large <= 16 * BATCH, "{columns} columns: {small}, {large}");
        assert!((few, many) >= (2, 4), "{few}, {many}");
    }
}
