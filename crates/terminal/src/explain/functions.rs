//! Functions and source lines with their part of the CPU time.

use super::named;
use numakit_explain::Explanation;
use numakit_explain::code::{CodeName, CodeTime, PlaceTimes};
use std::collections::HashMap;
use std::fmt::Write;

/// Every function with this part of the CPU time has a row.
const MIN_FUNCTION: f64 = 0.01;
/// Source lines with a smaller part are left out.
const MIN_LINE: f64 = 0.005;

/// All functions with much of the CPU time, those that use most of it first.
pub fn functions(explanation: &Explanation) -> String {
    let sum: u64 = explanation.functions.iter().map(|code| code.time.total()).sum();
    let spins: HashMap<&CodeName, u64> =
        explanation.spins.functions.iter().map(|spin| (&spin.name, spin.time)).collect();
    let mut shown: Vec<&CodeTime> =
        explanation.functions.iter().filter(|code| is_much(code, MIN_FUNCTION, sum)).collect();
    shown.sort_by_key(|code| std::cmp::Reverse(code.time.total()));
    table("FUNCTION", &shown, sum, &spins)
}

/// The source lines with most of the CPU time, at most `rows`.
pub fn source_lines(explanation: &Explanation, rows: usize) -> String {
    let sum: u64 = explanation.functions.iter().map(|code| code.time.total()).sum();
    let lines = &explanation.source_lines;
    let mut shown: Vec<&CodeTime> = lines.iter().filter(|code| is_much(code, MIN_LINE, sum)).collect();
    shown.sort_by_key(|code| std::cmp::Reverse(code.time.total()));
    shown.truncate(rows);
    table("SOURCE LINE", &shown, sum, &HashMap::new())
}

fn is_much(code: &CodeTime, least: f64, sum: u64) -> bool {
    code.time.total() > 0 && code.time.total() as f64 >= least * sum as f64
}

/// `spins` is the time of functions in loops that wait for other threads, a part of their computing.
fn table(heading: &str, shown: &[&CodeTime], sum: u64, spins: &HashMap<&CodeName, u64>) -> String {
    if shown.is_empty() {
        return String::new();
    }
    let spin = |words: &str| if spins.is_empty() { String::new() } else { format!(" {words:>6}") };
    let mut out =
        format!("\n   CPU% LOCAL%   REM%  UNKN%  CONT% CACHE%  COMP%{}  {heading}\n", spin("SPIN%"));
    let percent = |part: u64| part as f64 / sum as f64 * 100.0;
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
