//! Functions and source lines with their part of the CPU time.

use super::named;
use numakit_explain::Explanation;
use numakit_explain::code::{CodeName, CodeTime, PlaceTimes};
use numakit_findings::activity::of_cpu_time;
use std::collections::HashMap;
use std::fmt::Write;

/// Every function with this part of the CPU time has a row.
const MIN_FUNCTION: f64 = 0.01;
/// Source lines with a smaller part are left out.
const MIN_LINE: f64 = 0.005;

/// All functions with much of the CPU time, those that use most of it first.
pub fn functions(explanation: &Explanation) -> String {
    let spins: HashMap<&CodeName, u64> =
        explanation.spins.functions.iter().map(|spin| (&spin.name, spin.time)).collect();
    let mut shown: Vec<&CodeTime> =
        explanation.functions.iter().filter(|code| is_much(explanation, code, MIN_FUNCTION)).collect();
    shown.sort_by_key(|code| std::cmp::Reverse(code.time.total()));
    table("FUNCTION", explanation, &shown, &spins)
}

/// The source lines with most of the CPU time, at most `rows`.
pub fn source_lines(explanation: &Explanation, rows: usize) -> String {
    let lines = &explanation.source_lines;
    let mut shown: Vec<&CodeTime> =
        lines.iter().filter(|code| is_much(explanation, code, MIN_LINE)).collect();
    shown.sort_by_key(|code| std::cmp::Reverse(code.time.total()));
    shown.truncate(rows);
    table("SOURCE LINE", explanation, &shown, &HashMap::new())
}

fn is_much(explanation: &Explanation, code: &CodeTime, least: f64) -> bool {
    code.time.total() > 0 && of_cpu_time(explanation, code.time.total()) >= least
}

/// Shares are of the CPU time, of which the kernel has a part too. `spins` is the time of functions in loops that wait for other threads, a part of their computing.
fn table(
    heading: &str,
    explanation: &Explanation,
    shown: &[&CodeTime],
    spins: &HashMap<&CodeName, u64>,
) -> String {
    if shown.is_empty() {
        return String::new();
    }
    let spin = |words: &str| if spins.is_empty() { String::new() } else { format!(" {words:>6}") };
    let mut out =
        format!("\n   CPU% LOCAL%   REM%  UNKN%  CONT% CACHE%  COMP%{}  {heading}\n", spin("SPIN%"));
    let percent = |part: u64| of_cpu_time(explanation, part) * 100.0;
    for code in shown {
        let PlaceTimes { computing, private_cache, shared_cache, contended, local, remote, unknown } =
            code.time;
        let all = code.time.total();
        for part in [all, local, remote, unknown, contended, private_cache + shared_cache, computing] {
            // Writing to a string cannot fail.
            _ = write!(out, " {:6.1}", percent(part));
        }
        let spun = spins.get(&code.name).copied().unwrap_or(0);
        _ = writeln!(out, "{}  {}", spin(&format!("{:.1}", percent(spun))), named(&code.name));
    }
    out
}
