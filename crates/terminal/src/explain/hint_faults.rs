//! What hint faults tell, beside what samples do.

use super::objects::{NAME_WIDTH, cut, interval, nodes};
use numakit_explain::ExplainedObject;
use numakit_explain::hint_faults::{HintFaultCounts, ObjectHintFaults};
use numakit_findings::explained::JudgedReport;
use numakit_model::numbers::grouped;
use std::cmp::Reverse;
use std::fmt::Write;

/// The table of the objects with most pages, and what the kernel did meanwhile; nothing if hint faults were not asked for.
pub fn text(judged: &JudgedReport, rows: usize) -> String {
    let Some(counts) = &judged.report.hint_faults else { return String::new() };
    let mut out = String::new();
    let objects = judged.objects.iter().map(|judged| &judged.object);
    let mut shown: Vec<(&ExplainedObject, &ObjectHintFaults)> =
        objects.filter_map(|object| Some((object, object.hint_faults.as_ref()?))).collect();
    shown.sort_by_key(|(_, hints)| Reverse(hints.pages));
    shown.truncate(rows);
    if !shown.is_empty() {
        // Writing to a string cannot fail.
        _ = writeln!(
            out,
            "\n  {:<NAME_WIDTH$} {:>8} {:>8}  {:<24} REMOTE",
            "OBJECT", "PAGES", "FAULTS", "USED FROM by hint faults"
        );
    }
    for (object, hints) in shown {
        _ = writeln!(
            out,
            "  {:<NAME_WIDTH$} {:>8} {:>8}  {:<24} {}",
            cut(&object.object.name),
            grouped(hints.pages as f64),
            grouped(hints.faults as f64),
            nodes(&hints.used_from),
            interval(hints.remote),
        );
    }
    out.push_str(&sentence(counts));
    out
}

fn sentence(counts: &HintFaultCounts) -> String {
    if counts.seconds == 0.0 {
        return "\nNo hint faults: the program ended before its memory had stopped growing.\n".to_owned();
    }
    let lost = match counts.lost {
        0 => String::new(),
        lost => format!("; {} were lost", grouped(lost as f64)),
    };
    let moved = match (counts.moved, counts.was_on) {
        (0, _) => "the kernel moved no page".to_owned(),
        (moved, true) => {
            format!(
                "the kernel moved {} pages, as it does anyway: balancing was on before",
                grouped(moved as f64)
            )
        }
        (moved, false) => format!(
            "the kernel moved {} pages, of which {} were moved back",
            grouped(moved as f64),
            grouped(counts.moved_back as f64)
        ),
    };
    format!(
        "\n{} hint faults of {} pages in {:.1} s of NUMA balancing{lost}; {moved}. Samples of that time are left out.\n",
        grouped(counts.faults as f64),
        grouped(counts.pages as f64),
        counts.seconds,
    )
}
