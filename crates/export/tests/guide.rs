//! The table of formats in the guide is the one in the code.

use numakit_export::{ExportFormat, FORMATS};

fn line(format: &ExportFormat) -> String {
    let values: Vec<&str> = format.values.iter().map(|v| v.name()).collect();
    format!("| `{}` | `.{}` | {} | {} |\n", format.name, format.extension, values.join(", "), format.help)
}

#[test]
fn the_guide_has_the_formats() {
    let lines: String = FORMATS.iter().map(line).collect();
    let title = "| `--to` | name | numbers | what it is |\n|---|---|---|---|\n";
    numakit_testing::guide::check_part("docs/guide/export.md", "formats", &format!("{title}{lines}"));
}
