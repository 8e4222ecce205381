use super::*;
use crate::documents;

fn shown(markdown: &str, width: usize, is_styled: bool) -> String {
    of_markdown("docs/guide/run.md", markdown, Layout { width, is_styled })
}

#[test]
fn blocks_are_readable() {
    let page = "# Title\n\nSome words with `code`\nand **bold**.\n\n- one\n- two\n  words\n\n  ```sh\n  numa run\n  ```\n\n## Next\n\n\
                1. first\n2. second\n   - below\n\nEnd.\n<!-- comment -->\n";
    let expected = "Title\n=====\n\nSome words with\n`code` and bold.\n\n- one\n\n- two words\n\n      numa run\n\nNext\n----\n\n\
                    1. first\n2. second\n   - below\n\nEnd.\n";
    assert_eq!(shown(page, 20, false), expected);
    let styled = shown(page, 20, true);
    assert!(
        styled.starts_with("\x1b[1mTitle\x1b[0m\n\nSome words with code\n")
            || styled.contains("\x1b[1mcode\x1b[0m"),
        "{styled:?}"
    );
    assert!(!styled.contains("====") && !styled.contains('`'), "{styled}");
}

#[test]
fn what_is_bold_ends_with_its_line() {
    let text =
        shown("**aaaa bbbb cccc**", 20, true) + &shown("x **aaaaaaaaa bbbbbbbbb ccccccccc** y", 20, true);
    for line in text.lines() {
        assert_eq!(line.matches("\x1b[1m").count(), line.matches("\x1b[0m").count(), "{text:?}");
    }
    assert_eq!(text.lines().count(), 4, "{text}");
}

#[test]
fn tables_are_columns_and_are_wrapped_where_they_are_wide() {
    let table = "| a | what |\n|---|---|\n| `x\\|y` | some words |\n| b | c |\n";
    assert_eq!(shown(table, 40, false), "a      what\n-----  ----------\n`x|y`  some words\nb      c\n");
    let wide = shown("| name | what |\n|---|---|\n| one | some more words than fit |\n", 20, false);
    assert_eq!(wide, "name  what\n----  --------------\none   some more\n      words than fit\n");
}

#[test]
fn links_say_where_they_lead() {
    let text = shown(
        "[Plan](plan.md#x), [here](run.md), [below](#below), [there](https://a.b), <https://c.d>, ![a machine](../images/live.png)",
        200,
        false,
    );
    assert_eq!(
        text,
        "Plan ('numa help guide plan'), here, below, there <https://a.b>, https://c.d, [Picture: a machine]\n"
    );
}

#[test]
fn every_page_is_laid_out() {
    let (mut words, mut codes) = (0, 0);
    for document in documents().iter().filter(|document| document.is_page()) {
        let text = of(document, Layout { width: 80, is_styled: false });
        let long: Vec<&str> = text
            .lines()
            .filter(|line| {
                line.chars().count() > 80 && !line.starts_with("    ") && line.trim().contains(' ')
            })
            .collect();
        assert!(text.lines().count() > 5, "{}: {text}", document.path);
        assert!(
            !text.contains(BOLD) && !text.contains("](") && !text.contains("<!--"),
            "{}: {text}",
            document.path
        );
        for block in document.markdown().split("\n```").skip(1).step_by(2) {
            let line = block.lines().skip(1).find(|line| !line.trim().is_empty()).unwrap_or("");
            assert!(text.contains(line.trim_end()), "{} lost the code '{line}'", document.path);
            codes += 1;
        }
        // A table of fifteen columns, in one of the decisions, is wider.
        let is_of_guide = document.path.starts_with("docs/guide");
        assert!(!is_of_guide || long.len() <= text.lines().count() / 20, "{}: {long:#?}", document.path);
        words += text.split_whitespace().count();
    }
    assert!(words > 50_000 && codes > 100, "{words} words, {codes} blocks of code");
}
