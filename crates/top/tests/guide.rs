//! The generated parts of the guide. `UPDATE=1` writes them.

#![allow(clippy::unwrap_used)]

#[test]
fn the_guide_has_the_keys() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/top.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (begin, end) = ("<!-- keys -->\n", "<!-- /keys -->");
    let (head, rest) = text.split_once(begin).unwrap();
    let (_, tail) = rest.split_once(end).unwrap();
    let expected = format!("{head}{begin}{}{end}{tail}", numakit_top::keys::guide());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &expected).unwrap();
    } else {
        assert_eq!(text, expected, "run again with UPDATE=1");
    }
}
