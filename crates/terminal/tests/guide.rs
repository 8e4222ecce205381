//! The generated parts of the guide.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use numakit_findings::objects_guide;
use numakit_formulas::Catalog;
use numakit_terminal::{formulas, stat};
use numakit_testing::guide::check_part;

fn check(page: &str, part: &str, content: &str) {
    check_part(&format!("docs/guide/{page}"), part, content);
}

#[test]
fn the_guide_has_the_columns() {
    check("stat.md", "columns", &stat::guide());
}

#[test]
fn the_guide_has_the_criteria_and_shows_pages() {
    check("show.md", "criteria", &numakit_findings::criteria_guide());
    check("show.md", "rules", &numakit_findings::shares_guide());
    check("show.md", "findings", &numakit_findings::findings_guide());
    let (page, compared) = (include_str!("golden/four-nodes.txt"), include_str!("golden/compared.txt"));
    check("show.md", "page", &format!("```\n{page}```\n"));
    check("show.md", "comparison", &format!("```\n{compared}```\n"));
}

#[test]
fn the_guide_has_the_verdicts() {
    check("explain.md", "verdicts", &objects_guide());
}

#[test]
fn the_guide_has_the_formulas() {
    // One test, so that two tests do not write the page at the same time.
    check("formulas.md", "facts", &formulas::facts_guide());
    check("formulas.md", "formulas", &formulas::guide());
}

#[test]
fn the_example_of_the_guide_works() {
    let page = include_str!("../../../docs/guide/formulas.md");
    let (_, rest) = page.split_once("<!-- example -->\n```\n").unwrap();
    let (example, _) = rest.split_once("```\n<!-- /example -->").unwrap();
    let known = formulas::known_metrics();
    let add = |text: &str| {
        let mut catalog = Catalog::built_in().clone();
        catalog.add(text, "my.txt", &|name| known.get(name).copied()).map(|()| catalog)
    };
    let catalog = add(example).unwrap();
    for name in ["free_share", "my_huge_share"] {
        assert!(!catalog.get(name).unwrap().is_built_in());
    }
    let mistake = add(&example.replace("= 100 * free", "= 100 * (free + 5)")).unwrap_err().to_string();
    let shown = format!("numa: {mistake}");
    assert!(page.replace("\n      ", " ").contains(&shown), "the guide does not show: {shown}");
}
