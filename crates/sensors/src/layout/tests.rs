use super::*;
use proptest::prelude::*;

fn names(text: &str) -> Vec<(&str, bool)> {
    entries(text.as_bytes()).map(|e| (e.name, e.kibibytes)).collect()
}

/// A layout of this content with these keys.
fn layout(text: &str, keys: &[&str]) -> FileLayout {
    FileLayout::new(text.as_bytes(), keys.iter().enumerate().map(|(slot, key)| (key.as_bytes(), slot)))
}

fn read(layout: &mut FileLayout, text: &str) -> [Option<u64>; 3] {
    let mut out = [None; 3];
    layout.read(text.as_bytes(), &mut out);
    out
}

#[test]
fn names_are_found_in_every_kind_of_file() {
    assert_eq!(names("pgfault 12\npgfree 0\n"), [("pgfault", false), ("pgfree", false)]);
    assert_eq!(
        names("Node 12 MemTotal:    4 kB\nNode 12 Active(anon): 1 kB\nNode 12 HugePages_Total:     0\n"),
        [("MemTotal", true), ("Active(anon)", true), ("HugePages_Total", false)]
    );
    assert_eq!(names("no number\nmark -1\nmore 1 x\n\n 5\nbad,name 1\ncut 12"), []);
    assert_eq!(names("big 18446744073709551615\ntoo_big 18446744073709551616\n"), [("big", false)]);
}

#[test]
fn values_are_read_in_the_order_learned() {
    let text = "a 1\nb 2\nc 3\n";
    let mut layout = layout(text, &["c", "a"]);
    assert_eq!(read(&mut layout, text), [Some(3), Some(1), None]);
    assert_eq!(read(&mut layout, "a 10\nb x\nc 30\n"), [Some(30), Some(10), None]);
    assert_eq!(layout.missing(), None);
}

#[test]
fn another_order_is_learned() {
    let mut layout = layout("a 1\nb 2\n", &["a", "b"]);
    assert_eq!(read(&mut layout, "new 9\nb 2\na 1\n"), [Some(1), Some(2), None]);
    assert_eq!(read(&mut layout, "new 9\nb 4\na 3\n"), [Some(3), Some(4), None]);
    assert_eq!(read(&mut layout, "ab 9\na 1\nb 2\n"), [Some(1), Some(2), None]);
}

#[test]
fn a_line_that_disappears_is_missing_until_it_is_back() {
    let (whole, part) = ("a 1\nb 2\nc 3\n", "a 1\n");
    let mut layout = layout(whole, &["a", "b", "c"]);
    assert_eq!(read(&mut layout, part), [Some(1), None, None]);
    assert_eq!(layout.missing(), Some("b".as_bytes()));
    let reads = (0..=PATIENCE).take_while(|_| read(&mut layout, whole)[2].is_none()).count();
    assert!(reads < PATIENCE as usize, "found again after {reads} reads");
    assert_eq!(read(&mut layout, whole), [Some(1), Some(2), Some(3)]);
    assert_eq!(layout.missing(), None);
}

#[test]
fn a_number_without_its_line_end_is_not_used() {
    let mut layout = layout("a 1\nb 200\n", &["a", "b"]);
    for cut in ["a 1\nb 20", "a 1\nb ", "a 1\nb", "a 1\nb\n", "a 1\nb -5\n", "a 1\nb 2 MB\n"] {
        assert_eq!(read(&mut layout, cut), [Some(1), None, None], "{cut:?}");
    }
    assert_eq!(read(&mut layout, "a 1\nb 200\n"), [Some(1), Some(200), None]);
}

#[test]
fn dropped_keys_are_not_read() {
    let text = "a 1\nb 2\nc 3\n";
    let mut layout = layout(text, &["a", "b", "c"]);
    layout.keep(&|slot| (slot == 1).then_some(0));
    assert_eq!(read(&mut layout, text), [Some(2), None, None]);
    assert_eq!(read(&mut layout, "a 1\nb 2\nthe rest does not matter"), [Some(2), None, None]);
    assert!(!layout.is_empty());
    layout.keep(&|_| None);
    assert!(layout.is_empty());
    assert_eq!(read(&mut layout, text), [None; 3]);
}

#[test]
fn a_file_without_end_is_cut() {
    let text: String = (0..10_000).map(|n| format!("line{n} {n}\n")).collect();
    assert_eq!(entries(text.as_bytes()).count(), MAX_LINES);
}

proptest! {
    #[test]
    fn one_pass_and_a_search_agree(
        names in prop::collection::vec("[a-c_]{1,3}", 1..12),
        values in prop::collection::vec(any::<u64>(), 12),
        shuffled in any::<prop::sample::Index>(),
    ) {
        let mut lines: Vec<(String, u64)> = names.into_iter().zip(values).collect();
        lines.sort();
        lines.dedup_by(|a, b| a.0 == b.0);
        let text = |lines: &[(String, u64)]| lines.iter().map(|(n, v)| format!("{n} {v}\n")).collect::<String>();
        let wanted: Vec<(String, u64)> = lines.clone();
        let keys = wanted.iter().enumerate().map(|(slot, (name, _))| (name.as_bytes(), slot));
        let mut layout = FileLayout::new(text(&lines).as_bytes(), keys);
        let expected: Vec<Option<u64>> = wanted.iter().map(|(_, v)| Some(*v)).collect();
        for _ in 0..2 {
            let mut out = vec![None; wanted.len()];
            layout.read(text(&lines).as_bytes(), &mut out);
            prop_assert_eq!(&out, &expected);
            let at = shuffled.index(lines.len());
            lines.rotate_left(at);
        }
    }

    #[test]
    fn garbage_never_panics_and_never_has_values(
        first in prop::collection::vec(any::<u8>(), 0..200),
        second in "[ab \n\tkB:0-9\\x00]{0,60}",
    ) {
        let mut layout = FileLayout::new(&first, [(b"a".as_slice(), 0), (b"b", 1), (b"", 2)]);
        let mut out = [None; 3];
        for text in [first.as_slice(), second.as_bytes(), &first] {
            layout.read(text, &mut out);
            _ = entries(text).count();
        }
        if !first.contains(&b'a') && !second.contains('a') {
            prop_assert_eq!(out[0], None);
        }
    }
}
