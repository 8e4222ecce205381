//! The parts of pages that are generated, such as tables of the guide. One stands between `<!-- NAME -->` and `<!-- /NAME -->`.

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Checks that a part of a page, such as `docs/guide/push.md`, is as the code has it. `UPDATE=1` writes it.
///
/// # Panics
///
/// If the page has no such part, or the part is stale.
pub fn check_part(page: &str, part: &str, content: &str) {
    let path = format!("{ROOT}/{page}");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let (begin, end) = (format!("<!-- {part} -->\n"), format!("<!-- /{part} -->"));
    let (head, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("{page} has no {begin}"));
    let (_, tail) = rest.split_once(&end).unwrap_or_else(|| panic!("{page} has no {end}"));
    let expected = format!("{head}{begin}{content}{end}{tail}");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &expected).unwrap_or_else(|error| panic!("{path}: {error}"));
    } else {
        assert_eq!(text, expected, "{page} is stale; run again with UPDATE=1");
    }
}
