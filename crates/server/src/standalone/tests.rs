use super::*;
use crate::examiner::Examiner;
use crate::layout::SeriesLayout;
use crate::testing::header;
use crate::wire::SourceKind;
use data_encoding::BASE64;
use flate2::read::GzDecoder;
use numakit_formulas::Catalog;
use numakit_history::History;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::Read;
use std::sync::Arc;

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
const SPIKE: usize = 777;

fn shell() -> Shell<'static> {
    Shell::new("console.log(1 < 2);", "body { color: red }", b"<svg/>")
}

/// A sample every millisecond of incompressible noise, a constant with one spike, and an absent value.
pub fn opened(name: &str, rows: usize) -> OpenedRecording {
    let mut header = header(&["a.noise", "a.spike", "a.none"]);
    (header.interval, header.started) = (MS, SECOND);
    let names = SeriesLayout::new(&header, &Catalog::default());
    let history = History::new(3, 64 << 20);
    let mut noise = 1u64;
    for row in 0..rows {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let spike = if row == SPIKE { 1e6 } else { 1.0 };
        let values = [Some((noise >> 40) as f64 / 7.0), Some(spike), None];
        history.push(SECOND + row as u64 * MS, &values);
    }
    let info = names.info(SourceKind::Recording, name, &header);
    let examiner = Examiner::new(&header, &names, &Arc::default());
    let (names, data) = (names.names().to_vec(), Arc::new(history));
    OpenedRecording { info, names, data, examiner, rows: None, damage: None }
}

/// The blocks of a file, unpacked; the first as JSON.
fn blocks(html: &[u8]) -> (Value, Vec<Vec<u8>>) {
    let text = std::str::from_utf8(html).unwrap();
    let parts = text.split("<script type=\"application/octet-stream\">").skip(1);
    let mut blocks: Vec<Vec<u8>> = parts
        .map(|part| {
            let packed = BASE64.decode(part.split_once("</script>").unwrap().0.as_bytes()).unwrap();
            let mut out = Vec::new();
            GzDecoder::new(&packed[..]).read_to_end(&mut out).unwrap();
            out
        })
        .collect();
    let contents = serde_json::from_slice(&blocks.remove(0)).unwrap();
    (contents, blocks)
}

/// Header of a frame, and its columns.
fn frame(bytes: &[u8]) -> (Value, &[u8]) {
    let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    (serde_json::from_slice(&bytes[4..4 + length]).unwrap(), &bytes[(4 + length).next_multiple_of(8)..])
}

#[test]
fn a_file_is_not_larger_than_its_limit() {
    let source = [opened("a", 20_000)];
    let mut before = None;
    for size in [200_000, 100_000, 50_000, 20_000, 10_000, 5_000u64] {
        let (html, steps) = html_of(&shell(), size, &source, &[], |_| ()).unwrap();
        assert!(html.len() as u64 <= size, "{} of {size}", html.len());
        assert!(steps[0] >= before, "fewer bytes, longer buckets: {steps:?} after {before:?}");
        before = steps[0];
    }
    assert!(before >= Some(100 * MS), "{before:?}");
    let error = html_of(&shell(), 1000, &source, &[], |_| ()).unwrap_err().to_string();
    assert!(error.contains("1000 bytes are too few") && error.contains("--size"), "{error}");
}

#[test]
fn every_row_is_included_if_there_is_room() {
    let (html, steps) = html_of(&shell(), 1 << 20, &[opened("a", 10_000)], &[], |_| ()).unwrap();
    assert_eq!(steps, [None]);
    let (contents, blocks) = blocks(&html);
    let source = &contents["sources"][0];
    assert_eq!(
        (&source["from_ns"], &source["step_ns"], &source["block"]),
        (&SECOND.into(), &0.into(), &1.into())
    );
    let stretches = source["stretches"].as_array().unwrap();
    assert_eq!(blocks.len(), 2 * stretches.len());
    assert_eq!(stretches.iter().map(|s| s["rows"].as_u64().unwrap()).sum::<u64>(), 10_000);
    let mut row = 0;
    for (pair, stretch) in blocks.chunks(2).zip(stretches) {
        let (times, values) = (frame(&pair[0]).0, frame(&pair[1]).0);
        assert_eq!(stretch["from_ns"], SECOND + row * MS);
        assert_eq!((&times["rows"], &times["from_ns"]), (&stretch["rows"], &stretch["from_ns"]));
        assert_eq!((&values["rows"], values["columns"].as_array().unwrap().len()), (&stretch["rows"], 3));
        row += stretch["rows"].as_u64().unwrap();
        assert!(stretch["to_ns"].as_u64().unwrap() > SECOND + (row - 1) * MS);
    }
}

#[test]
fn a_spike_survives_in_buckets() {
    for size in [50_000, 8_000] {
        let (html, steps) = html_of(&shell(), size, &[opened("a", 20_000)], &[], |_| ()).unwrap();
        let (contents, blocks) = blocks(&html);
        assert_eq!(contents["sources"][0]["step_ns"], steps[0].unwrap());
        let greatest = |block: &Vec<u8>| {
            let (header, body) = frame(block);
            let columns = header["columns"].as_array().unwrap();
            let column = columns.iter().find(|c| c["series"] == 1 && c["what"] == "max")?;
            assert_eq!(column["type"], "f32");
            let at = column["at"].as_u64().unwrap() as usize;
            let values = body[at..at + 4 * header["rows"].as_u64().unwrap() as usize].chunks_exact(4);
            values.map(|v| f32::from_le_bytes(v.try_into().unwrap())).reduce(f32::max)
        };
        assert_eq!(blocks.iter().filter_map(greatest).reduce(f32::max), Some(1e6));
    }
}

#[test]
fn a_gap_takes_no_room() {
    let source = opened("a", 1000);
    let history = History::new(3, 1 << 20);
    for row in 0..2000u64 {
        let gap = if row < 1000 { 0 } else { 3600 * SECOND };
        history.push(SECOND + row * MS + gap, &[Some(row as f64), Some(0.5 * row as f64), None]);
    }
    let source = OpenedRecording { data: Arc::new(history), ..source };
    let (html, steps) = html_of(&shell(), 1 << 20, &[source], &[], |_| ()).unwrap();
    let (contents, _) = blocks(&html);
    assert_eq!(steps, [None]);
    assert!(contents["sources"][0]["stretches"].as_array().unwrap().len() < 10);
    assert!(html.len() < 40_000, "{}", html.len());
}

#[test]
fn room_that_one_recording_does_not_use_is_left_for_the_other() {
    let [small, large] = [opened("small", 900), opened("large", 20_000)];
    let single = html_of(&shell(), 60_000, &[opened("large", 20_000)], &[], |_| ()).unwrap().1[0];
    for order in [[small, large], [opened("large", 20_000), opened("small", 900)]] {
        let (html, steps) = html_of(&shell(), 70_000, &order, &[], |_| ()).unwrap();
        assert!(html.len() <= 70_000);
        let of = |name: &str| steps[order.iter().position(|o| o.info.name == name).unwrap()];
        assert_eq!((of("small"), of("large")), (None, single));
        let (contents, blocks) = blocks(&html);
        let second = contents["sources"][1]["block"].as_u64().unwrap() as usize - 1;
        assert!(second < blocks.len());
        assert_eq!(frame(&blocks[second]).0["source"], 1, "its blocks begin there");
        assert_eq!(contents["sources"][1]["info"]["id"], 1);
    }
}

#[test]
fn only_its_own_script_and_style_are_allowed() {
    let html = String::from_utf8(shell().html(std::iter::empty())).unwrap();
    for (open, close, directive) in
        [("<script>", "</script>", "script-src"), ("<style>", "</style>", "style-src")]
    {
        let inside = html.split_once(open).unwrap().1.split_once(close).unwrap().0;
        let hash = BASE64.encode(&Sha256::digest(inside));
        assert!(html.contains(&format!("{directive} 'sha256-{hash}';")), "{html}");
    }
    assert!(html.contains("default-src 'none';") && html.contains("img-src data:;"));
    assert!(!html.contains("unsafe") && !html.contains("connect-src"));
    let Ok(shell) = Shell::of_page() else { return numakit_skips::PAGE.skip_part("the page is not built") };
    let html = String::from_utf8(shell.html(std::iter::empty())).unwrap().to_lowercase();
    // The bundle must not contain the end of its own element.
    assert_eq!((html.matches("<script").count(), html.matches("</script").count()), (1, 1));
    assert_eq!((html.matches("<style").count(), html.matches("</style").count()), (1, 1));
    assert!(!html.contains("<!--"));
}

#[test]
fn hostile_names_and_labels_are_only_text() {
    let hostile = "</script><img src=x onerror=alert(1)><!--<script>'\"&";
    let mut source = opened(hostile, 10);
    source.info.host = hostile.into();
    source.info.command = Some(hostile.into());
    source.info.metrics[0].name = hostile.into();
    source.data.push_label(SECOND, hostile);
    let (html, _) = html_of(&shell(), 1 << 20, &[source], &[], |_| ()).unwrap();
    let text = String::from_utf8(html.clone()).unwrap();
    for bad in ["<img", "onerror", "<!--", "alert"] {
        assert!(!text.contains(bad), "{bad}");
    }
    let (contents, blocks) = blocks(&html);
    // One element for each block, and the page's script.
    assert_eq!(text.matches("<script").count(), 2 + blocks.len());
    assert_eq!(text.matches("</script>").count(), 2 + blocks.len());
    let source = &contents["sources"][0];
    for told in [&source["info"]["name"], &source["info"]["metrics"][0]["name"], &source["labels"][0]["text"]]
    {
        assert_eq!(told, hostile);
    }
}

#[test]
fn nothing_is_left_of_a_file_that_cannot_be_written() {
    let folder = std::env::temp_dir().join(format!("numakit-standalone-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("taken")).unwrap();
    assert!(put(&folder.join("taken"), true, b"x").is_err(), "a folder is in the way");
    assert!(put(&folder.join("no/such"), true, b"x").is_err());
    put(&folder.join("there"), true, b"whole").unwrap();
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(std::fs::read(folder.join("there")).unwrap(), b"whole");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn each_pair_of_recordings_is_compared() {
    let sources = [opened("a", 9000), opened("b", 9000), opened("c", 9000)];
    let compared = comparisons(&sources, |_| ()).unwrap();
    let pairs: Vec<(u32, u32)> = compared.iter().map(|one| (one.first, one.second)).collect();
    assert_eq!(pairs, [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]);
    assert!(compared.iter().all(|one| one.compared.whole && one.compared.machine.is_empty()));
    let (html, _) = html_of(&shell(), 1 << 20, &sources, &compared, |_| ()).unwrap();
    let contents = blocks(&html).0;
    assert_eq!(contents["comparisons"][5]["compared"]["verdict"], compared[5].compared.verdict.as_str());
    assert!(comparisons(&sources[..1], |_| ()).unwrap().is_empty());
}
