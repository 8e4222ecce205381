use super::*;
use numakit_model::Fix;
use std::path::PathBuf;

fn found(path: &str) -> FoundFile {
    FoundFile { path: PathBuf::from(path), id: (1, 2) }
}

fn residence(pieces: Vec<Piece>) -> FileResidence {
    let nodes = BTreeMap::from([(0, 3 << 20), (2, 1 << 20)]);
    FileResidence {
        size: 8 << 20,
        changed: None,
        cached: Ok(4 << 20),
        nodes: Ok(nodes),
        huge: Ok(2 << 20),
        pieces,
    }
}

fn shown() -> ShownFiles {
    let mut pieces = vec![Piece::Node(0); 90];
    pieces.extend([Piece::Node(2); 30]);
    pieces.extend([Piece::Absent; 120]);
    let why =
        || Unavailable::new("what is cached of the file", "mincore does not tell", Fix::Root { or: None });
    let untold = FileResidence {
        cached: Err(why()),
        nodes: Err(why()),
        huge: Err(why()),
        changed: Some(9 << 20),
        ..residence(vec![Piece::Unknown])
    };
    let mapper = Mapper {
        pid: 77,
        command: "server".to_owned(),
        file: 0,
        mapped: 8 << 20,
        threads: BTreeMap::from([(0, 4), (2, 12)]),
    };
    ShownFiles {
        nodes: vec![0, 2],
        files: vec![(found("/m/a.gguf"), residence(pieces)), (found("b\n"), untold)],
        left_out: LeftOut { links: 3, special: 0, pool: 1, unreadable: 2 },
        mappers: Mappers { list: vec![mapper], denied: 5 },
        fix: "run numa as root".to_owned(),
    }
}

#[test]
fn a_wide_page_has_the_strip_beside_the_table() {
    let text = shown().page(120);
    let line = text.lines().nth(1).unwrap();
    let strip = line.split_whitespace().last().unwrap();
    assert!(
        line.starts_with("/m/a.gguf  8.00 MiB  4.00 MiB     50.0  3.00 MiB  1.00 MiB  2.00 MiB  000"),
        "{text}"
    );
    assert!(strip.len() >= 40 && strip.starts_with("000000000000") && strip.contains("222222."), "{strip}");
    assert!(strip.ends_with('.') && text.lines().all(|line| line.chars().count() <= 120), "{text}");
    assert!(text.lines().nth(2).unwrap().starts_with("b?"), "{text}");
    assert!(text.contains("\n77    server  8.00 MiB"), "{text}");
    assert!(text.contains("0:4 2:12"), "{text}");
    for note in [
        "b?: what is cached of the file: mincore does not tell; run numa as root.",
        "b?: its size changed from 8.00 MiB to 9.00 MiB meanwhile.",
        "The mappings of 5 processes cannot be read; run numa as root.",
        "Left out: symbolic links 3, files on hugetlbfs 1, files and folders that you may not read 2.",
    ] {
        assert!(text.contains(note), "{note} is not in {text}");
    }
}

#[test]
fn a_narrow_page_has_strips_on_lines_of_their_own() {
    let text = shown().page(42);
    let strip = "  000000000000000222222....................\n".replace("....................", "");
    assert!(text.contains("\n/m/a.gguf\n  000000000000000"), "{strip} {text}");
    let line = text.lines().find(|line| line.starts_with("  0000")).unwrap();
    assert_eq!(line.len(), 42, "{text}");
}

#[test]
fn a_file_on_one_node_is_a_sentence_with_its_command() {
    let file = OneSidedFile {
        pid: 77,
        command: "server".to_owned(),
        path: PathBuf::from("/m/a.gguf"),
        size: 4 << 30,
        node: 2,
        threads: BTreeMap::from([(0, 4), (2, 12)]),
    };
    let (seen, fix) = one_sided(&file);
    let expected =
        "/m/a.gguf (4.00 GiB) is cached on node 2, and 77 (server) maps it with threads on nodes 0, 2";
    assert_eq!((seen.as_str(), fix.as_str()), (expected, "as root: numa file spread '/m/a.gguf'"));
}

#[test]
fn strips_merge_pieces() {
    use Piece::{Absent, Mixed, Node, Unknown};
    assert_eq!(strip(&[Node(0), Node(0), Node(1), Absent], 2), "0+");
    assert_eq!(strip(&[Node(11), Node(40), Mixed, Unknown], 64), "b#+?");
    assert_eq!(strip(&[], 10), "");
}

#[test]
fn json_has_bytes_in_the_order_of_nodes_and_null_with_the_reason() {
    let json = shown().json();
    let (first, second) = (&json["files"][0], &json["files"][1]);
    assert_eq!(first["on"], json!([3 << 20, 1 << 20]));
    assert_eq!(first["pieces"][239], json!("absent"));
    assert_eq!(first["mapped_by"][0]["threads"], json!([4, 12]));
    assert_eq!((&second["cached"], &second["on"]), (&Value::Null, &Value::Null));
    assert!(second["why"]["cached"].as_str().unwrap().contains("run numa as root"));
    assert_eq!((&json["denied"], &json["left_out"]["links"]), (&json!(5), &json!(3)));
}

#[test]
fn of_many_files_those_with_most_in_the_cache_are_listed() {
    let mut many = shown();
    many.files.truncate(1);
    many.mappers.list.clear();
    for at in 0..30 {
        let cached = if at < 25 { 0 } else { 1 << 20 };
        many.files.push((
            found(&format!("f{at}")),
            FileResidence { cached: Ok(cached), ..residence(vec![Piece::Absent]) },
        ));
    }
    let text = many.page(100);
    let listed = text.lines().filter(|line| line.contains("8.00 MiB")).count();
    assert!(listed == 20 && text.contains("\nf29 ") && !text.contains("\nf19 "), "{text}");
    assert!(
        text.contains("The 20 of 31 files with most cached bytes; all of them have 9.00 MiB cached;"),
        "{text}"
    );
}
