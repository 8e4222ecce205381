//! Two recordings compared, as a page of text: the answer in three lines, what differs, which findings are gone and new.

use super::{Page, PageStyle};
use numakit_findings::comparison::{Comparison, Difference};
use numakit_findings::cost_words;
use numakit_findings::finding::Finding;

/// As many differences as a table has, unless all are wanted.
const MAX_LINES: usize = 15;

/// The page. Only text of the recordings themselves may be wider than 100 characters.
pub fn comparison_page(comparison: &Comparison, style: PageStyle) -> String {
    let mut page = Page::new(style);
    page.fact("Verdict", &comparison.headline.verdict);
    page.fact("Change", &comparison.headline.change);
    page.command("Do", &comparison.headline.action);
    page.line("");
    page.fact("A", &comparison.before.words());
    page.fact("B", &comparison.after.words());
    comparison.cautions.iter().for_each(|caution| page.fact("Caution", caution));
    page.fact("Compared", &comparison.compared_words());
    page.differences("What differs in the program", comparison.of_program().collect());
    page.differences("What differs on the machine", comparison.machine.iter().collect());
    page.found("Findings of A that are gone in B", &comparison.gone);
    page.found("Findings that are new in B", &comparison.new);
    page.found("Findings of both", &comparison.kept);
    page.text
}

impl Page {
    fn differences(&mut self, title: &str, differences: Vec<&Difference>) {
        if differences.is_empty() {
            return;
        }
        self.section(title);
        let shown = if self.style.all { differences.len() } else { MAX_LINES };
        let rows: Vec<Vec<String>> =
            differences.iter().take(shown).map(|difference| row(difference)).collect();
        self.table(&["what", "A", "B", "change", "noise", "<B is"], &rows);
        if differences.len() > shown {
            self.wrapped(&format!("and {} more; --all lists them", differences.len() - shown));
        }
    }

    fn found(&mut self, title: &str, findings: &[Finding]) {
        if findings.is_empty() {
            return;
        }
        self.section(title);
        for finding in findings {
            self.hanging("   - ", &finding.says);
            self.hanging("", &format!("cost: {}", cost_words(finding)));
        }
    }
}

fn row(difference: &Difference) -> Vec<String> {
    let words = difference.words();
    vec![words.what, words.before, words.after, words.change, words.noise, words.verdict]
}
