use super::*;
use numakit_files::{Piece, Relocation};
use numakit_processes::Mapper;
use std::collections::BTreeMap;
use std::path::PathBuf;

fn residence(nodes: [u64; 2]) -> FileResidence {
    FileResidence {
        size: 8 << 20,
        changed: None,
        cached: Ok(nodes.iter().sum()),
        nodes: Ok((0..).zip(nodes).collect()),
        huge: Ok(0),
        pieces: vec![Piece::Mixed],
    }
}

fn changed(deed: Deed) -> ChangedFiles {
    let mapper =
        Mapper { pid: 77, command: "server".to_owned(), file: 0, mapped: 8 << 20, threads: BTreeMap::new() };
    ChangedFiles {
        nodes: vec![0, 1],
        page: 4096,
        files: vec![(FoundFile { path: PathBuf::from("a.gguf"), id: (1, 2) }, deed)],
        left_out: LeftOut::default(),
        mappers: Mappers { list: vec![mapper], denied: 0 },
        capability: "setcap cap_sys_nice=ep on the program".to_owned(),
    }
}

fn moved(way: Way, pages: Relocation, block: u64) -> ChangedFiles {
    let (before, after) = (residence([8 << 20, 0]), residence([2 << 20, 6 << 20]));
    changed(Deed::Moved(Relocated { before, after, way, pages, block, read_whole: false }))
}

#[test]
fn a_move_says_what_stayed_and_how_to_move_it() {
    let pages = Relocation { moved: 1536, there: 3, mapped: 512, ..Relocation::default() };
    let some = moved(Way::InPlace, pages, 1);
    assert_eq!(
        some.page(),
        "\
FILE              CACHED     NODE0     NODE1
a.gguf  before  8.00 MiB  8.00 MiB         0
         after  8.00 MiB  2.00 MiB  6.00 MiB

a.gguf: 1,536 pages moved in memory, 3 were there already.
a.gguf: 512 pages stayed on other nodes: process 77 (server) maps it. Run as root, or setcap cap_sys_nice=ep on the \
program; or stop them.
"
    );
    assert!(!some.is_complete());
    let json = some.json();
    let file = &json["files"][0];
    assert_eq!((&file["way"], &file["pages"]["mapped"]), (&json!("in-place"), &json!(512)));
    assert_eq!(
        (&file["before"]["on"], &file["after"]["on"]),
        (&json!([8 << 20, 0]), &json!([2 << 20, 6 << 20]))
    );
    assert_eq!(file["complete"], json!(false));
}

#[test]
fn other_ways_and_reasons_are_said() {
    let none = Relocation::default();
    assert!(moved(Way::ReadAgain, none, 1).page().contains("removed from the cache and read again"));
    let refused = moved(Way::Refused, none, 1);
    assert!(
        refused
            .page()
            .contains("nothing moved: move_pages is refused here, and process 77 (server) maps it.")
    );
    assert!(!refused.is_complete());
    let full = Relocation { full: 2, busy: 3, ..none };
    let text = moved(Way::InPlace, full, 512).page();
    for part in
        ["2 pages stayed: the node has no free", "3 pages stayed: they are locked", "blocks of 2.00 MiB"]
    {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(moved(Way::InPlace, Relocation { moved: 5, ..none }, 1).is_complete());
}

#[test]
fn eviction_and_loading_say_what_stays() {
    let evicted =
        |left| changed(Deed::Evicted { before: residence([8 << 20, 0]), after: residence([left, 0]) });
    assert!(evicted(0).is_complete() && !evicted(4096).is_complete());
    let text = evicted(4096).page();
    assert!(
        text.contains("a.gguf: 4.00 KiB stayed in the cache: process 77 (server) maps it; stop them."),
        "{text}"
    );
    let loaded = changed(Deed::Loaded {
        before: residence([1 << 20, 0]),
        after: residence([4 << 20, 4 << 20]),
        read: 8 << 20,
        policy: "interleave:0-1".to_owned(),
    });
    let text = loaded.page();
    let note = "read 8.00 MiB under the policy interleave:0-1; 1.00 MiB were cached before and stay";
    assert!(loaded.is_complete() && text.contains(note), "{text}");
}
