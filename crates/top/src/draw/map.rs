//! The machine as a map: each CPU is a character, by package and node.

use super::canvas::Canvas;
use crate::theme::Theme;
use crate::view::View;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// A piece of a line: text, and the load that it shows.
type Piece = (String, Option<f64>);

/// The rows that the whole map takes.
pub(super) fn lines(view: &View, width: u16, theme: Theme) -> usize {
    laid_out(view, width, theme, 1).len()
}

/// Draws it in at most `most` rows: if it is longer, one character is the busiest of several CPUs. Returns the rows that it takes.
pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, view: &View, most: usize) -> u16 {
    let theme = canvas.theme();
    let most = most.min(usize::from(area.height));
    if view.machine.cpus.is_empty() || most == 0 {
        return 0;
    }
    let most_of_node = view.machine.nodes.iter().map(|node| node.cpus.len()).max().unwrap_or(1).max(1);
    let mut per = 1;
    let mut lines = laid_out(view, area.width, theme, per);
    while lines.len() > most && per < most_of_node {
        per *= 2;
        lines = laid_out(view, area.width, theme, per);
    }
    let rows = lines.len().min(most);
    for (row, pieces) in (0u16..).zip(lines.into_iter().take(rows)) {
        let mut x = area.x;
        for (text, load) in pieces {
            let style = load.map_or(theme.faint(), |load| theme.amount(load));
            x += canvas.text(x, area.y + row, area.right().saturating_sub(x), &text, style);
        }
    }
    if per > 1 {
        let text = format!(" {per} CPUs a character, the busiest");
        let x = area.right().saturating_sub(u16::try_from(text.len()).unwrap_or(0));
        let _ =
            canvas.text(x, area.y + u16::try_from(rows).unwrap_or(1) - 1, area.width, &text, Style::new());
    }
    u16::try_from(rows).unwrap_or(most as u16)
}

/// Nodes beside each other; a package begins a line where that does not waste lines.
fn laid_out(view: &View, width: u16, theme: Theme, per: usize) -> Vec<Vec<Piece>> {
    let machine = &view.machine;
    let width = usize::from(width);
    let mut lines: Vec<Vec<Piece>> = vec![Vec::new()];
    let mut used = 0;
    let mut package = None;
    let many = machine.packages() > 1;
    for (at, node) in machine.nodes.iter().enumerate() {
        let mut label = format!("n{} ", node.number);
        if many && node.package != package {
            package = node.package;
            if let Some(package) = package {
                label = format!("p{package} {label}");
            }
        }
        let loads = loads(view, at, theme, per);
        let length = label.len() + loads.len() + 2;
        if used > 0 && used + length > width + 2 {
            lines.push(Vec::new());
            used = 0;
        }
        push(&mut lines, (label.clone(), None));
        used += label.len();
        for piece in loads {
            if used >= width {
                lines.push(vec![(" ".repeat(label.len()), None)]);
                used = label.len();
            }
            push(&mut lines, piece);
            used += 1;
        }
        push(&mut lines, ("  ".to_owned(), None));
        used += 2;
    }
    lines
}

fn push(lines: &mut [Vec<Piece>], piece: Piece) {
    if let Some(line) = lines.last_mut() {
        line.push(piece);
    }
}

/// The CPUs of a node, or the busiest of each `per` of them.
fn loads(view: &View, at: usize, theme: Theme, per: usize) -> Vec<Piece> {
    let range = view.machine.nodes[at].cpus.clone();
    let unknown = vec![None; range.len()];
    let cpus = view.moment.as_ref().and_then(|moment| moment.cpus.get(range)).unwrap_or(&unknown);
    let busiest = |some: &[Option<f64>]| some.iter().flatten().copied().reduce(f64::max);
    cpus.chunks(per)
        .map(|some| {
            let load = busiest(some);
            (theme.load(load).to_owned(), load)
        })
        .collect()
}
