//! The table of engines in the guide is the one in the code. `UPDATE=1` writes it.
#![allow(clippy::unwrap_used)]

use numakit_push::engines_guide;

#[test]
fn the_guide_has_the_engines() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/push.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (begin, end) = ("<!-- engines -->\n", "<!-- /engines -->");
    let (head, rest) = text.split_once(begin).unwrap();
    let (_, tail) = rest.split_once(end).unwrap();
    let expected = format!("{head}{begin}{}{end}{tail}", engines_guide());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &expected).unwrap();
    } else {
        assert_eq!(text, expected, "docs/guide/push.md is stale; run again with UPDATE=1");
    }
}
