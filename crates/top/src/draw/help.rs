//! The help: all keys, what the screen shows, and why something is absent.

use super::canvas::{Canvas, wrapped};
use super::findings::scrolled;
use crate::keys;
use crate::view::View;
use ratatui::layout::Rect;
use ratatui::style::Style;

pub(super) fn page(canvas: &mut Canvas<'_>, area: Rect, view: &mut View) {
    let theme = canvas.theme();
    let mut lines: Vec<(String, Style)> = Vec::new();
    for key in keys::keys(view.replays()) {
        lines.push((format!("  {:<8} {}", key.shown, key.does), Style::new()));
    }
    let width = usize::from(area.width);
    let mut section = |heading: &str, texts: &[String]| {
        lines.push((String::new(), Style::new()));
        lines.push((heading.to_owned(), theme.strong()));
        for text in texts {
            let parts = wrapped(text, width.saturating_sub(2));
            lines.extend(parts.into_iter().map(|part| (format!("  {part}"), Style::new())));
        }
    };
    if !view.machine.absent.is_empty() || view.processes.absent.is_some() {
        let machine = view.machine.absent.iter().map(|(what, why)| format!("{what}: {why}"));
        let processes = view.processes.absent.iter().map(|why| format!("processes: {why}"));
        section("What '-' means here", &machine.chain(processes).collect::<Vec<_>>());
    }
    let local = (!view.machine.local_of.is_empty()).then(|| {
        let of = view.machine.local_of.join(", otherwise of ");
        format!("local %: on the node's own memory, the share of {of}")
    });
    let mut words: Vec<String> = WORDS.iter().map(|line| (*line).to_owned()).collect();
    words.extend(local);
    words
        .push(format!("map: p0 n1 is node 1 of package 0; each character is a CPU, {}", theme.load_legend()));
    section("What is shown", &words);
    scrolled(canvas, area, view, &lines);
}

const WORDS: [&str; 5] = [
    "Verdict, Cost, Do: what the last minute shows; page 2 has the evidence",
    "REM%: of the memory of the process, the share on other nodes than its threads, weighted with their CPU time",
    "NODES: the memory of the process by node: each character is the number of a node, from 10 on a letter",
    "FLT/s: page faults; MEM: resident memory; MOV/s: pages that NUMA balancing moved, while kernel.numa_balancing is on",
    "memory bus: data read from and written to the memory of the node, and its share of the maximum",
];
