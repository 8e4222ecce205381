//! Draws a view: the same view and size give the same cells.

mod canvas;
mod findings;
mod help;
mod map;
mod nodes;
mod processes;
mod status;
#[cfg(test)]
mod tests;

use crate::keys::ScreenPage;
use crate::theme::Theme;
use crate::view::View;
use canvas::Canvas;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// The smallest screen on which something can be shown.
pub const SMALLEST: (u16, u16) = (40, 10);

/// Draws the screen. The view learns how many lines of a page fit.
pub fn draw(view: &mut View, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let mut canvas = Canvas::new(buffer, theme);
    let (columns, rows) = SMALLEST;
    if area.width < columns || area.height < rows {
        let text = format!("{}x{}: too small", area.width, area.height);
        canvas.text(area.x, area.y, area.width, &text, theme.strong());
        return;
    }
    status::title(&mut canvas, line(area, 0), view);
    status::keys(&mut canvas, line(area, area.height - 1), view);
    let body = Rect { y: area.y + 1, height: area.height - 2, ..area };
    match (view.help, view.page) {
        (true, _) => help::page(&mut canvas, body, view),
        (_, ScreenPage::Overview) => overview(&mut canvas, body, view),
        (_, ScreenPage::Findings) => findings::page(&mut canvas, body, view),
        (_, ScreenPage::Nodes) => node_page(&mut canvas, body, view),
        (_, ScreenPage::Processes) => {
            let rest = split(body, body.height - 1);
            processes::draw(&mut canvas, rest.0, view);
            status::detail(&mut canvas, rest.1, view);
        }
    }
}

/// A part of everything: findings, nodes, the map; processes get the rest.
fn overview(canvas: &mut Canvas<'_>, area: Rect, view: &mut View) {
    let (area, detail) = split(area, area.height - 1);
    let room = usize::from(area.height);
    let more = room.saturating_sub(20) / 6;
    let used = findings::headline(canvas, area, view, more);
    let (_, area) = split(area, used);
    let used = nodes::draw(canvas, area, view, (room / 4 + 1).max(2));
    let (_, area) = split(area, used);
    let used = map::draw(canvas, area, view, (room / 5).max(1));
    let (_, area) = split(area, used);
    processes::draw(canvas, area, view);
    status::detail(canvas, detail, view);
}

/// All nodes and CPUs, as far as they fit.
fn node_page(canvas: &mut Canvas<'_>, area: Rect, view: &mut View) {
    let half = if map::lines(view, area.width, canvas.theme()) + 2 < usize::from(area.height) / 2 {
        usize::from(area.height) - map::lines(view, area.width, canvas.theme()) - 2
    } else {
        usize::from(area.height) / 2
    };
    let used = nodes::draw(canvas, area, view, half.max(2));
    let (_, area) = split(area, used);
    let (area, detail) = split(area, area.height.saturating_sub(1));
    map::draw(canvas, area, view, usize::from(area.height));
    status::detail(canvas, detail, view);
}

/// The upper rows and the rest.
fn split(area: Rect, rows: u16) -> (Rect, Rect) {
    let rows = rows.min(area.height);
    let rest = Rect { y: area.y + rows, height: area.height - rows, ..area };
    (Rect { height: rows, ..area }, rest)
}

fn line(area: Rect, at: u16) -> Rect {
    Rect { y: area.y + at, height: 1, ..area }
}
