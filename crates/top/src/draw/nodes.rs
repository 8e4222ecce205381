//! Nodes as meters.

use super::canvas::Canvas;
use crate::machine::NodeMoment;
use crate::view::View;
use numakit_model::numbers::{ABSENT, NumberStyle};
use ratatui::layout::Rect;
use ratatui::style::Style;

/// The width of a node's line from which on its meters can be read.
const COMFORTABLE: u16 = 72;
/// Columns of the number of a node, of its local share and of its bandwidth, each with its gap.
const NUMBER: u16 = 5;
const LOCAL: u16 = 8;
const BANDWIDTH: u16 = 14;

/// Draws the nodes in at most `most` rows with the heading; those that stand out if there is no room for all. Returns the rows
/// that they take.
pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, view: &View, most: usize) -> u16 {
    let nodes = view.machine.nodes.len();
    let rows = most.min(usize::from(area.height)).saturating_sub(1);
    if rows == 0 {
        return 0;
    }
    let side_by_side = usize::from((area.width / COMFORTABLE).max(1));
    let columns = nodes.div_ceil(rows).clamp(1, side_by_side);
    let has_room = nodes <= rows * columns;
    let lines = if has_room { nodes.div_ceil(columns) } else { rows };
    let room = if has_room { nodes } else { rows * columns - 1 };
    let width = area.width / u16::try_from(columns).unwrap_or(1);
    let shown = outstanding(view, room);
    for column in 0..columns {
        let x = area.x + width * u16::try_from(column).unwrap_or(0);
        heading(canvas, Rect { x, width: width - u16::from(columns > 1), height: 1, ..area }, view);
    }
    for (at, &node) in shown.iter().enumerate() {
        let (column, row) = ((at / lines) as u16, (at % lines) as u16);
        let place = Rect {
            x: area.x + width * column,
            y: area.y + 1 + row,
            width: width - u16::from(columns > 1),
            height: 1,
        };
        node_line(canvas, place, view, node);
    }
    if !has_room {
        let text = format!("{} more nodes: 3 shows more of them", nodes - shown.len());
        let x = area.x + width * u16::try_from(columns - 1).unwrap_or(0);
        let style = canvas.theme().faint();
        canvas.text(x, area.y + u16::try_from(lines).unwrap_or(0), width, &text, style);
    }
    u16::try_from(lines + 1).unwrap_or(area.height)
}

/// The nodes that are busiest, fullest or have the least local use, in the order of their numbers.
fn outstanding(view: &View, room: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (0..view.machine.nodes.len()).collect();
    if all.len() <= room {
        return all;
    }
    let score = |at: usize| {
        let node = view.moment.as_ref().and_then(|moment| moment.nodes.get(at)).copied().unwrap_or_default();
        let used = node.used.zip(node.total).map(|(used, total)| 100.0 * used / total.max(1.0));
        let remote = node.local.map(|local| 100.0 - local);
        [node.busy, used, remote].into_iter().flatten().fold(0.0, f64::max)
    };
    all.sort_by(|&a, &b| score(b).total_cmp(&score(a)).then(a.cmp(&b)));
    all.truncate(room);
    all.sort_unstable();
    all
}

/// Widths of both meters.
fn meters(width: u16) -> (u16, u16) {
    let room = width.saturating_sub(NUMBER + LOCAL + BANDWIDTH);
    (room / 2, room - room / 2)
}

fn heading(canvas: &mut Canvas<'_>, area: Rect, view: &View) {
    let theme = canvas.theme();
    canvas.paint(area, theme.heading());
    let (cpu, memory) = meters(area.width);
    canvas.text(area.x, area.y, NUMBER, "node", theme.heading());
    canvas.text(area.x + NUMBER, area.y, cpu, "CPU time", theme.heading());
    let text = "memory in use, : page cache";
    canvas.text(area.x + NUMBER + cpu, area.y, memory, text, theme.heading());
    let at = area.x + NUMBER + cpu + memory;
    canvas.right(at, area.y, LOCAL, "local %", theme.heading());
    let _ = view;
    canvas.right(at + LOCAL, area.y, BANDWIDTH, "memory bus", theme.heading());
}

fn node_line(canvas: &mut Canvas<'_>, area: Rect, view: &View, at: usize) {
    let theme = canvas.theme();
    let node = &view.machine.nodes[at];
    let values = view.moment.as_ref().and_then(|m| m.nodes.get(at)).copied().unwrap_or_default();
    let (cpu, memory) = meters(area.width);
    canvas.right(area.x, area.y, NUMBER - 1, &node.number.to_string(), theme.strong());
    let x = area.x + NUMBER;
    if node.cpus.is_empty() {
        canvas.text(x, area.y, cpu, "no CPUs", theme.faint());
    } else {
        let busy = values.busy;
        let text = busy.map_or(ABSENT.to_owned(), |busy| NumberStyle::Percent.words(busy));
        let parts: Vec<(f64, char)> = busy.iter().map(|busy| (busy / 100.0, '|')).collect();
        canvas.meter(x, area.y, cpu - 1, &parts, theme.amount(busy.unwrap_or(0.0)), &text);
    }
    memory_meter(canvas, Rect { x: x + cpu, width: memory, ..area }, &values);
    let x = x + cpu + memory;
    let local = values.local.map_or(ABSENT.to_owned(), |local| NumberStyle::Percent.field(Some(local), 5));
    let style = values.local.map_or(Style::new(), |local| theme.amount(100.0 - local));
    canvas.right(x, area.y, LOCAL, &local, style);
    let utilisation = values.utilisation.map(|share| format!(" {}", NumberStyle::Percent.words(share)));
    let bandwidth = match values.bandwidth {
        None => ABSENT.to_owned(),
        Some(bytes) => {
            format!("{}B/s{}", NumberStyle::Rate.field(Some(bytes), 5), utilisation.unwrap_or_default())
        }
    };
    canvas.right(x + LOCAL, area.y, BANDWIDTH, &bandwidth, Style::new());
}

fn memory_meter(canvas: &mut Canvas<'_>, area: Rect, values: &NodeMoment) {
    let theme = canvas.theme();
    let (Some(total), Some(used)) = (values.total.filter(|total| *total > 0.0), values.used) else {
        canvas.meter(area.x, area.y, area.width, &[], Style::new(), ABSENT);
        return;
    };
    let file = values.file.unwrap_or(0.0);
    let bytes = |value: f64| NumberStyle::Bytes.field(Some(value), 6).trim().to_owned();
    let text = format!("{}/{}B", bytes(used), bytes(total));
    let parts = [(used / total, '|'), (file / total, ':')];
    canvas.meter(area.x, area.y, area.width, &parts, theme.amount(100.0 * used / total), &text);
}
