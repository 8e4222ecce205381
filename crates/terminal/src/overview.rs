//! What `numa` alone shows: this machine, what is wrong on it now, and what to type.

use crate::topology::summary;
use crate::wrap::wrap;
use numakit_findings::finding::Findings;
use numakit_model::Topology;
use numakit_model::numbers::{NumberStyle, duration};
use numakit_processes::BusyProgram;
use std::fmt::Write;

/// Lines of the terminal that it was made for.
pub const HEIGHT: usize = 24;
/// The widest line.
const WIDTH: usize = 100;
/// The width of the words before what is said.
const LEAD: usize = 9;
/// A program that uses less of a CPU is not busy.
const BUSY: f64 = 0.05;
/// Threads that waited for less of the last minute did not wait, in percent.
const WAITED: f64 = 1.0;
/// Lines for one of verdict, cost and remedy.
const LINES: usize = 2;

/// A look at the machine.
#[derive(Debug)]
pub enum MachineLook {
    /// It was seen.
    Seen(Box<SeenMachine>),
    /// It was not.
    Failed {
        /// Why.
        why: String,
    },
}

/// What was seen of the machine just now.
#[derive(Debug)]
pub struct SeenMachine {
    /// What is wrong.
    pub findings: Findings,
    /// How long it was looked at.
    pub seconds: f64,
    /// What threads waited for in the last minute, as in `a CPU`, and for which part of it, in percent.
    pub minute: Vec<(&'static str, f64)>,
    /// The program that used most CPU time.
    pub busy: Option<BusyProgram>,
}

/// The screen. `look` is what was seen; `examples` are command lines and what each is for.
pub fn text(
    topology: &Topology,
    look: &MachineLook,
    examples: &[(&str, &str)],
    columns: Option<usize>,
) -> String {
    let width = columns.unwrap_or(WIDTH).min(WIDTH);
    let mut out = String::new();
    said(&mut out, "machine", &summary(topology), width);
    match look {
        MachineLook::Failed { why } => said(&mut out, "now", &format!("cannot be told: {why}"), width),
        MachineLook::Seen(seen) => now(&mut out, seen, width),
    }
    out.push('\n');
    let longest = examples.iter().map(|(line, _)| line.len()).max().unwrap_or(0);
    for (line, purpose) in examples {
        // Writing to a string cannot fail.
        _ = writeln!(out, "  {line:<longest$}  {purpose}");
    }
    out.push_str("\n'numa help' lists the verbs and options, 'numa help VERB' describes one.\n");
    out
}

fn now(out: &mut String, SeenMachine { findings, seconds, minute, busy }: &SeenMachine, width: usize) {
    let headline = &findings.headline;
    match findings.problems.first() {
        None => {
            let text = format!("nothing wrong was seen on this machine in {}", duration(*seconds));
            said(out, "now", &text, width);
            let untold: Vec<&str> = findings.untold.iter().map(|untold| untold.what).collect();
            if !untold.is_empty() {
                said(out, "unknown", &untold.join(", "), width);
            }
        }
        Some(problem) => {
            said(out, "now", &headline.verdict, width);
            said(out, "cost", &headline.cost, width);
            said(out, "do", &problem.remedy.words, width);
        }
    }
    let waited = minute.iter().filter(|(_, share)| *share >= WAITED);
    let waited: Vec<String> = waited
        .map(|(what, share)| format!("for {what} {} of the time", NumberStyle::Percent.words(*share)))
        .collect();
    if !waited.is_empty() {
        said(out, "minute", &format!("in the last minute threads waited {}", waited.join(", ")), width);
    }
    let cpus = |busy: &BusyProgram| busy.ran as f64 / 1e9 / seconds.max(1e-9);
    if let Some(busy) = busy.as_ref().filter(|busy| cpus(busy) >= BUSY) {
        let processes = match busy.processes {
            1 => String::new(),
            several => format!(" with {several} processes"),
        };
        let text = format!("{} ({}{processes}) uses {:.1} CPUs", busy.command, busy.pid, cpus(busy));
        let sudo = if busy.is_readable { "" } else { "sudo " };
        let next = match busy.lasts {
            true => format!("{sudo}numa explain --pid {} --for 10s", busy.pid),
            false => "numa top".to_owned(),
        };
        said(out, "busiest", &if busy.lasts { text } else { format!("{text}, and lives shortly") }, width);
        said(out, "next", &next, width);
    }
}

/// One heading with its text, in at most [`LINES`] lines.
fn said(out: &mut String, heading: &str, text: &str, width: usize) {
    let mut lines = wrap(text, Some(width.saturating_sub(LEAD)));
    if lines.len() > LINES {
        lines.truncate(LINES);
        lines[LINES - 1].push_str(" ...");
    }
    for (at, line) in lines.iter().enumerate() {
        let heading = if at == 0 { heading } else { "" };
        // Writing to a string cannot fail.
        _ = writeln!(out, "{heading:<LEAD$}{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_findings::finding::{
        Certainty, Finding, FindingCost, FindingRemedy, FindingSubject, Headline, Untold,
    };

    const EXAMPLES: [(&str, &str); 6] = [("numa ./app", "says what costs"); 6];

    fn busy() -> BusyProgram {
        BusyProgram {
            pid: 4711,
            command: "postgres".into(),
            processes: 12,
            ran: 3_200_000_000,
            is_readable: true,
            lasts: true,
        }
    }

    #[test]
    fn a_quiet_machine_and_its_busiest_program_are_named() {
        let untold = vec![Untold { what: "traffic", why: "no counters".into() }];
        let findings = Findings { untold, ..Findings::default() };
        let look = SeenMachine { findings, seconds: 1.0, minute: Vec::new(), busy: Some(busy()) };
        let text = text(&Topology::default(), &MachineLook::Seen(Box::new(look)), &EXAMPLES, None);
        assert!(
            text.contains("\nnow      nothing wrong was seen on this machine in 1 s\nunknown  traffic\n"),
            "{text}"
        );
        assert!(text.contains("\nbusiest  postgres (4711 with 12 processes) uses 3.2 CPUs\n"), "{text}");
        assert!(text.contains("\nnext     numa explain --pid 4711 --for 10s\n"), "{text}");
        let foreign = BusyProgram { is_readable: false, ..busy() };
        let look = SeenMachine {
            findings: Findings::default(),
            seconds: 1.0,
            minute: Vec::new(),
            busy: Some(foreign),
        };
        let shown = super::text(&Topology::default(), &MachineLook::Seen(Box::new(look)), &EXAMPLES, None);
        assert!(shown.contains("\nnext     sudo numa explain --pid 4711 --for 10s\n"), "{shown}");
        let short = BusyProgram { lasts: false, ..busy() };
        let minute = vec![("a CPU", 44.31), ("memory", 0.2)];
        let look = SeenMachine { findings: Findings::default(), seconds: 1.0, minute, busy: Some(short) };
        let shown = super::text(&Topology::default(), &MachineLook::Seen(Box::new(look)), &EXAMPLES, None);
        assert!(shown.contains("uses 3.2 CPUs, and lives shortly\nnext     numa top\n"), "{shown}");
        assert!(
            shown.contains("\nminute   in the last minute threads waited for a CPU 44.3 % of the time\n"),
            "{shown}"
        );
        let idle = BusyProgram { ran: 1_000_000, ..busy() };
        let look =
            SeenMachine { findings: Findings::default(), seconds: 1.0, minute: Vec::new(), busy: Some(idle) };
        assert!(
            !super::text(&Topology::default(), &MachineLook::Seen(Box::new(look)), &EXAMPLES, None)
                .contains("busiest")
        );
    }

    #[test]
    fn it_fits_the_smallest_screen_whatever_is_wrong() {
        let long = "a very long sentence about what is wrong ".repeat(20);
        let problem = Finding {
            rule: "rule",
            subject: FindingSubject::Machine,
            says: long.clone(),
            since_seconds: 0.0,
            until_seconds: None,
            cost: FindingCost::Unknown { why: long.clone() },
            certainty: Certainty::Likely,
            evidence: Vec::new(),
            remedy: FindingRemedy::default(),
        };
        let headline = Headline { verdict: long.clone(), cost: long.clone(), action: long };
        let findings = Findings { headline, problems: vec![problem], ..Findings::default() };
        let look = SeenMachine { findings, seconds: 1.0, minute: Vec::new(), busy: Some(busy()) };
        let text = text(&Topology::default(), &MachineLook::Seen(Box::new(look)), &EXAMPLES, Some(80));
        assert!(text.lines().count() < HEIGHT, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 84), "{text}");
    }

    #[test]
    fn what_cannot_be_seen_is_said() {
        let text = text(
            &Topology::default(),
            &MachineLook::Failed { why: "there is no /proc".into() },
            &EXAMPLES,
            None,
        );
        assert!(text.contains("\nnow      cannot be told: there is no /proc\n"), "{text}");
    }
}
