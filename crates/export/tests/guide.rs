//! The table of formats in the guide is the one in the code. `UPDATE=1` writes it.
#![allow(clippy::unwrap_used)]

use numakit_export::{ExportFormat, FORMATS};

fn line(format: &ExportFormat) -> String {
    let values: Vec<&str> = format.values.iter().map(|v| v.name()).collect();
    format!("| `{}` | `.{}` | {} | {} |\n", format.name, format.extension, values.join(", "), format.help)
}

#[test]
fn the_guide_has_the_formats() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/export.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (begin, end) = ("<!-- formats -->\n", "<!-- /formats -->");
    let (head, rest) = text.split_once(begin).unwrap();
    let (_, tail) = rest.split_once(end).unwrap();
    let lines: String = FORMATS.iter().map(line).collect();
    let title = "| `--to` | name | numbers | what it is |\n|---|---|---|---|\n";
    let expected = format!("{head}{begin}{title}{lines}{end}{tail}");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &expected).unwrap();
    } else {
        assert_eq!(text, expected, "docs/guide/export.md is stale; run again with UPDATE=1");
    }
}
