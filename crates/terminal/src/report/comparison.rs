//! Two recordings compared, as a page of text: the answer in three lines, what differs, which findings are gone and new.

use super::cells::counted;
use super::{Page, PageStyle};
use numakit_analysis::comparison::{ComparedRecording, Comparison, Difference, change_words, value_words};
use numakit_analysis::cost_words;
use numakit_analysis::findings::Finding;
use numakit_model::numbers::{duration, grouped};

/// As many differences as a table has, unless all are wanted.
const MAX_LINES: usize = 15;

/// The page. Only text of the recordings themselves may be wider than 100 characters.
pub fn comparison_page(comparison: &Comparison, style: PageStyle) -> String {
    let mut page = Page::new(style);
    page.fact("Verdict", &comparison.headline.verdict);
    page.fact("Change", &comparison.headline.change);
    page.command("Do", &comparison.headline.action);
    page.line("");
    page.fact("A", &recording(&comparison.before));
    page.fact("B", &recording(&comparison.after));
    comparison.cautions.iter().for_each(|caution| page.fact("Caution", caution));
    page.compared(comparison);
    let (own, others) = (&comparison.program, &comparison.machine);
    let run: Vec<&Difference> = comparison.run_time.iter().collect();
    page.differences("What differs in the program", run.into_iter().chain(own).collect());
    page.differences("What differs on the machine", others.iter().collect());
    page.found("Findings of A that are gone in B", &comparison.gone);
    page.found("Findings that are new in B", &comparison.new);
    page.found("Findings of both", &comparison.kept);
    page.text
}

fn recording(of: &ComparedRecording) -> String {
    let command = of.command.as_deref().unwrap_or("the whole machine");
    let problems = match of.problems {
        0 => "no problem".to_owned(),
        count => counted(count as u64, "problem"),
    };
    format!("{command}: {} on {}, {problems} found", duration(of.seconds), of.host)
}

impl Page {
    fn compared(&mut self, comparison: &Comparison) {
        let not = match comparison.not_compared {
            0 => String::new(),
            1 => "; 1 is in one only, or has too few values to tell its noise".to_owned(),
            count => format!(
                "; {} are in one only, or have too few values to tell their noise",
                grouped(count as f64)
            ),
        };
        let differ =
            comparison.program.iter().chain(&comparison.machine).map(|d| 1 + d.alike.len()).sum::<usize>();
        let compared = counted(comparison.compared as u64, "value");
        self.fact(
            "Compared",
            &format!("{compared}, of which {} differ beyond noise{not}", grouped(differ as f64)),
        );
    }

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
    let name = match difference.alike.len() {
        0 => difference.name.clone(),
        more => format!("{} and {more} alike", difference.name),
    };
    let (change, noise) = change_words(difference);
    let is_noise = (difference.after - difference.before).abs() <= difference.noise;
    let judged = match difference.is_better {
        _ if is_noise => "equal",
        Some(true) => "better",
        Some(false) => "worse",
        None => "",
    };
    let words = |value| value_words(&difference.unit, value);
    vec![name, words(difference.before), words(difference.after), change, noise, judged.to_owned()]
}
