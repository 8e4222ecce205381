//! What was found in the last minute.

use super::canvas::{Canvas, wrapped};
use crate::view::View;
use numakit_findings::finding::{Certainty, Finding, Findings};
use numakit_model::numbers::duration;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// The width of the words before the three lines.
const LEAD: u16 = 8;

/// On a body of fewer rows each line of the answer is cut, as processes need the rows.
const WRAPS_FROM: usize = 18;

/// The answer in three lines, which are wrapped if there is room, and up to `more` further problems. Returns the rows that it
/// takes.
pub(super) fn headline(canvas: &mut Canvas<'_>, area: Rect, view: &View, more: usize) -> u16 {
    let theme = canvas.theme();
    let Some(findings) = &view.findings else {
        let text = "Findings: after a second";
        canvas.text(area.x, area.y, area.width, text, theme.faint());
        return 1.min(area.height);
    };
    let headline = &findings.headline;
    let is_wrong = !findings.problems.is_empty();
    let lines = [
        ("Verdict", &headline.verdict, theme.verdict(is_wrong)),
        ("Cost", &headline.cost, Style::new()),
        ("Do", &headline.action, Style::new()),
    ];
    let may_wrap = usize::from(area.height) >= WRAPS_FROM;
    let mut row = 0;
    for (lead, text, style) in lines {
        for (at, part) in fitted(text, area.width.saturating_sub(LEAD), may_wrap).iter().enumerate() {
            if row < area.height {
                let lead = if at == 0 { lead } else { "" };
                canvas.text(area.x, area.y + row, LEAD, lead, theme.faint());
                canvas.text(area.x + LEAD, area.y + row, area.width.saturating_sub(LEAD), part, style);
                row += 1;
            }
        }
    }
    for finding in findings.problems.iter().skip(1).take(more) {
        if row < area.height {
            let text = format!("{}; {}", finding.says, finding.cost.words());
            canvas.text(area.x, area.y + row, LEAD, "Also", theme.faint());
            canvas.text(area.x + LEAD, area.y + row, area.width.saturating_sub(LEAD), &text, Style::new());
            row += 1;
        }
    }
    row
}

/// In one line, which is cut; or in up to two.
fn fitted(text: &str, width: u16, may_wrap: bool) -> Vec<String> {
    let mut lines = if may_wrap { wrapped(text, usize::from(width)) } else { vec![text.to_owned()] };
    if lines.len() > 2 {
        let rest = lines.split_off(1).join(" ");
        lines.push(rest);
    }
    lines
}

/// All findings with their numbers and remedies.
pub(super) fn page(canvas: &mut Canvas<'_>, area: Rect, view: &mut View) {
    let theme = canvas.theme();
    let width = usize::from(area.width);
    let lines = match &view.findings {
        None => vec![("Findings: after a second".to_owned(), theme.faint())],
        Some(findings) => {
            let styles = (theme.verdict(!findings.problems.is_empty()), theme.strong());
            text(findings, view.range, width, styles)
        }
    };
    scrolled(canvas, area, view, &lines);
}

/// Lines of a page that may be longer than the screen.
pub(super) fn scrolled(canvas: &mut Canvas<'_>, area: Rect, view: &mut View, lines: &[(String, Style)]) {
    let rows = usize::from(area.height);
    view.fits = rows;
    view.scroll = view.scroll.min(lines.len().saturating_sub(rows));
    for (at, (text, style)) in (0..area.height).zip(lines.iter().skip(view.scroll)) {
        canvas.text(area.x, area.y + at, area.width, text, *style);
    }
}

fn text(findings: &Findings, range: f64, width: usize, styles: (Style, Style)) -> Vec<(String, Style)> {
    let (verdict, heading) = styles;
    let plain = Style::new();
    let mut lines = Vec::new();
    let headline = &findings.headline;
    hang(&mut lines, "Verdict ", &headline.verdict, width, verdict);
    hang(&mut lines, "Cost    ", &headline.cost, width, plain);
    hang(&mut lines, "Do      ", &headline.action, width, plain);
    for (at, problem) in findings.problems.iter().enumerate() {
        lines.push((String::new(), plain));
        finding(&mut lines, &format!("{:>3}. ", at + 1), (problem, range), width, heading);
    }
    if !findings.remarks.is_empty() {
        lines.push((String::new(), plain));
        lines.push(("Good to know".to_owned(), heading));
        findings
            .remarks
            .iter()
            .for_each(|remark| finding(&mut lines, "   - ", (remark, range), width, plain));
    }
    if !findings.untold.is_empty() {
        lines.push((String::new(), plain));
        lines.push(("What cannot be told".to_owned(), heading));
        for untold in &findings.untold {
            hang(&mut lines, "   - ", &format!("{}: {}", untold.what, untold.why), width, plain);
        }
    }
    lines
}

/// A finding of a range of that length, in seconds.
fn finding(
    lines: &mut Vec<(String, Style)>,
    lead: &str,
    (finding, range): (&Finding, f64),
    width: usize,
    style: Style,
) {
    let certainty = match finding.certainty {
        Certainty::Measured => "",
        Certainty::Likely => " (likely)",
        Certainty::Possible => " (possible)",
    };
    let (plain, blank) = (Style::new(), " ".repeat(lead.len()));
    hang(lines, lead, &format!("{}{certainty}", finding.says), width, style);
    hang(lines, &blank, &format!("cost: {}; {}", finding.cost.words(), when(finding, range)), width, plain);
    for evidence in &finding.evidence {
        hang(lines, &blank, &format!("{}: {}", evidence.series, evidence.says), width, plain);
    }
    hang(lines, &blank, &finding.remedy.words, width, plain);
    for command in &finding.remedy.commands {
        lines.push((format!("{blank}  {command}"), style));
    }
}

/// When it was, seen from the end of the range.
fn when(finding: &Finding, range: f64) -> String {
    let ago = |seconds: f64| duration((range - seconds).max(0.0).round());
    match finding.until_seconds {
        None => format!("for {} now", ago(finding.since_seconds)),
        Some(until) => format!("from {} until {} ago", ago(finding.since_seconds), ago(until)),
    }
}

/// Text beside its lead.
fn hang(lines: &mut Vec<(String, Style)>, lead: &str, text: &str, width: usize, style: Style) {
    for (at, part) in wrapped(text, width.saturating_sub(lead.len()).max(10)).into_iter().enumerate() {
        let lead = if at == 0 { lead.to_owned() } else { " ".repeat(lead.len()) };
        lines.push((format!("{lead}{part}"), style));
    }
}
