//! Processes with their memory per node.

use super::canvas::Canvas;
use crate::table::{ProcessOrder, ProcessRow};
use crate::theme::node_letter;
use crate::view::View;
use numakit_model::numbers::{ABSENT, NumberStyle};
use ratatui::layout::Rect;
use ratatui::style::Style;

/// A column: its heading, its width, and the sort key that it shows.
struct Column {
    heading: &'static str,
    width: u16,
    sort: Option<ProcessOrder>,
    /// The number of the row, right-aligned.
    text: fn(&ProcessRow) -> String,
}

const fn column(
    heading: &'static str,
    width: u16,
    sort: Option<ProcessOrder>,
    text: fn(&ProcessRow) -> String,
) -> Column {
    Column { heading, width, sort, text }
}

static COLUMNS: [Column; 7] =
    [
        column("PID", 7, Some(ProcessOrder::Pid), |p| {
            if p.pid == 0 { ABSENT.to_owned() } else { p.pid.to_string() }
        }),
        column("USER", 8, None, |p| p.user.clone()),
        column("CPU%", 6, Some(ProcessOrder::Cpu), |p| NumberStyle::Percent.field(p.cpu, 5)),
        column("REM%", 6, Some(ProcessOrder::Remote), |p| NumberStyle::Percent.field(p.remote, 5)),
        column("MEM", 7, Some(ProcessOrder::Memory), |p| {
            NumberStyle::Bytes.field(p.resident.map(|bytes| bytes as f64), 6)
        }),
        column("FLT/s", 6, Some(ProcessOrder::Faults), |p| NumberStyle::Rate.field(p.faults, 5)),
        column("MOV/s", 6, Some(ProcessOrder::Moved), |p| NumberStyle::Rate.field(p.moved, 5)),
    ];

/// The columns before the bar of nodes: that of moved pages only while they are counted.
fn columns(view: &View) -> impl Iterator<Item = &'static Column> {
    let counts_moved = view.processes.counts_moved();
    COLUMNS.iter().filter(move |column| counts_moved || column.sort != Some(ProcessOrder::Moved))
}

/// Of the bar of nodes: as wide as if no column of moved pages took the place of names.
fn bar_width(area: Rect) -> u16 {
    (area.width.saturating_sub(60)).clamp(8, 32)
}

/// Draws as many as fit, around the selected one.
pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, view: &mut View) {
    if area.height == 0 {
        return;
    }
    let shown = view.shown();
    let rows = usize::from(area.height - 1);
    view.fits = rows;
    let at = view.selected.and_then(|pid| shown.iter().position(|&at| view.processes.rows[at].pid == pid));
    let first = at.map_or(0, |at| at.saturating_sub(rows.saturating_sub(1)));
    heading(canvas, area, view, shown.len());
    for (line, &at) in (1..area.height).zip(shown.iter().skip(first)) {
        let place = Rect { y: area.y + line, height: 1, ..area };
        let process = &view.processes.rows[at];
        row(canvas, place, view, process);
        if view.selected == Some(process.pid) {
            let style = canvas.theme().selected();
            canvas.paint(place, style);
        }
    }
    if shown.is_empty() && rows > 0 {
        let text = match (&view.processes.absent, view.processes.rows.is_empty()) {
            (Some(why), _) => format!("- {why}"),
            (None, true) => "Processes: after the first interval".to_owned(),
            (None, false) => "no process matches; a shows all".to_owned(),
        };
        let style = canvas.theme().faint();
        canvas.text(area.x, area.y + 1, area.width, &text, style);
    }
}

fn heading(canvas: &mut Canvas<'_>, area: Rect, view: &View, count: usize) {
    let theme = canvas.theme();
    let style = theme.heading();
    canvas.paint(Rect { height: 1, ..area }, style);
    let direction = if view.selection.reversed { theme.ascending() } else { theme.descending() };
    let name = |heading: &str, sort: Option<ProcessOrder>| match sort == Some(view.selection.sort) {
        true => format!("{heading}{direction}"),
        false => heading.to_owned(),
    };
    let mut x = area.x;
    for column in columns(view) {
        let text = name(column.heading, column.sort);
        match column.heading {
            "USER" => _ = canvas.text(x, area.y, column.width, &text, style),
            _ => canvas.right(x, area.y, column.width - 1, &text, style),
        }
        x += column.width;
    }
    let bar = bar_width(area);
    canvas.text(x, area.y, bar, "NODES", style);
    x += bar + 1;
    let mut of = Vec::new();
    match view.selection.of.as_slice() {
        [] => {}
        [pid] => of.push(format!("of {pid}")),
        several => of.push(format!("of {} processes", several.len())),
    }
    if !view.selection.filter.is_empty() {
        of.push(format!("with '{}'", view.selection.filter));
    }
    let which = if of.is_empty() { String::new() } else { format!(": {count} {}", of.join(" ")) };
    let text = format!("{}{which}", name("COMMAND", Some(ProcessOrder::Name)));
    canvas.text(x, area.y, area.right().saturating_sub(x), &text, style);
}

fn row(canvas: &mut Canvas<'_>, area: Rect, view: &View, process: &ProcessRow) {
    let theme = canvas.theme();
    let mut x = area.x;
    for column in columns(view) {
        let text = (column.text)(process);
        let style = match (column.sort, process.remote) {
            (Some(ProcessOrder::Remote), Some(remote)) => theme.amount(remote),
            _ => Style::new(),
        };
        match column.heading {
            "USER" => _ = canvas.text(x, area.y, column.width - 1, &text, style),
            _ => canvas.right(x, area.y, column.width - 1, text.trim_start(), style),
        }
        x += column.width;
    }
    let width = bar_width(area);
    match &process.memory {
        Ok(memory) if memory.iter().any(|bytes| *bytes > 0) => bar(canvas, x, area.y, width, view, memory),
        _ => _ = canvas.text(x, area.y, width, ABSENT, theme.faint()),
    }
    x += width + 1;
    canvas.text(x, area.y, area.right().saturating_sub(x), &process.command, Style::new());
}

/// The whole bar is all memory of the process; each node has its share, in its letter.
fn bar(canvas: &mut Canvas<'_>, x: u16, y: u16, width: u16, view: &View, memory: &[u64]) {
    let theme = canvas.theme();
    let mut x = x;
    for (at, cells) in shares(memory, width).into_iter().enumerate() {
        let Some(node) = view.machine.nodes.get(at) else { continue };
        let text: String = std::iter::repeat_n(node_letter(node.number), usize::from(cells)).collect();
        x += canvas.text(x, y, cells, &text, theme.node(at));
    }
}

/// Cells of each node: all of them are given away, the largest remainders first.
fn shares(memory: &[u64], width: u16) -> Vec<u16> {
    let total = memory.iter().map(|bytes| *bytes as f64).sum::<f64>().max(1.0);
    let exact: Vec<f64> = memory.iter().map(|bytes| *bytes as f64 / total * f64::from(width)).collect();
    let mut cells: Vec<u16> = exact.iter().map(|share| share.floor() as u16).collect();
    let mut order: Vec<usize> = (0..memory.len()).collect();
    order.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()).then(a.cmp(&b)));
    let left = usize::from(width.saturating_sub(cells.iter().sum()));
    order.into_iter().take(left).for_each(|at| cells[at] += 1);
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_full_and_in_proportion() {
        assert_eq!(shares(&[1, 1, 2], 8), [2, 2, 4]);
        assert_eq!(shares(&[1, 1, 1], 8), [3, 3, 2]);
        assert_eq!(shares(&[0, 5], 3), [0, 3]);
        assert_eq!(shares(&[u64::MAX, u64::MAX], 4), [2, 2]);
    }
}
