//! The findings of the page: three lines first, then each with its cost, its numbers and its remedy.

use super::{INDENT, Page};
use numakit_findings::cost_words;
use numakit_findings::finding::{Certainty, Finding, FindingSubject, Findings, Headline};

/// Space for the number of a finding.
const NUMBER: usize = 5;

impl Page {
    /// The answer in three lines.
    pub(super) fn headline(&mut self, headline: &Headline) {
        self.fact("Verdict", &headline.verdict);
        self.fact("Cost", &headline.cost);
        self.command("Do", &headline.action);
        self.line("");
    }

    pub(super) fn findings(&mut self, findings: &Findings) {
        let is_own = |finding: &&Finding| finding.subject == FindingSubject::Program;
        let own = findings.problems.iter().filter(is_own).count();
        for (at, finding) in findings.problems.iter().enumerate() {
            match at {
                at if at == own && own > 0 => self.section("Meanwhile on this machine"),
                0 => self.section("Findings"),
                _ => {}
            }
            self.finding(&format!("{:>3}. ", at + 1), finding);
        }
        if !findings.remarks.is_empty() {
            self.section("Good to know");
            findings.remarks.iter().for_each(|finding| self.finding("   - ", finding));
        }
        if !findings.untold.is_empty() && self.style.all {
            self.section("What this recording cannot tell");
            for untold in &findings.untold {
                self.wrapped(&format!("{}: {}", untold.what, untold.why));
            }
        }
    }

    fn finding(&mut self, number: &str, finding: &Finding) {
        let certainty = match finding.certainty {
            Certainty::Measured => "",
            Certainty::Likely => " (likely)",
            Certainty::Possible => " (possible)",
        };
        self.hanging(number, &format!("{}{certainty}", finding.says));
        self.hanging("", &format!("cost: {}", cost_words(finding)));
        for evidence in &finding.evidence {
            self.hanging("", &format!("{}: {}", evidence.series, evidence.says));
        }
        let colon = if finding.remedy.commands.is_empty() { "" } else { ":" };
        self.hanging("", &format!("{}{colon}", finding.remedy.words));
        for command in &finding.remedy.commands {
            self.line(&format!("{:NUMBER$}{INDENT}{command}", ""));
        }
    }

    /// Text beside a number; its lines begin below each other.
    pub(super) fn hanging(&mut self, lead: &str, text: &str) {
        let mut lead = lead;
        for line in crate::wrap::wrap(text, Some(self.width - NUMBER)) {
            self.line(&format!("{lead:<NUMBER$}{line}"));
            lead = "";
        }
    }
}
