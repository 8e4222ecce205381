//! The first line, the last line, and the line about the selected process.

use super::canvas::Canvas;
use crate::keys::{self, ScreenPage};
use crate::table::ProcessRow;
use crate::view::{SourceState, View};
use numakit_model::numbers::{NumberStyle, clock, duration};
use numakit_observation::interval;
use ratatui::layout::Rect;

/// The machine, the page, and where the values come from.
pub(super) fn title(canvas: &mut Canvas<'_>, area: Rect, view: &View) {
    let machine = &view.machine;
    let count = |number: usize, word: &str| format!("{number} {word}{}", if number == 1 { "" } else { "s" });
    let places = format!("{}, {}", count(machine.nodes.len(), "node"), count(machine.cpus.len(), "CPU"));
    let page = if view.help { "help" } else { view.page.name() };
    let left = format!("numa top - {}: {places} - {page}", machine.host);
    let right = match &view.source {
        SourceState::Live { ended: Some(how), .. } => how.clone(),
        SourceState::Live { interval, paused, .. } => {
            let every = format!("every {}", interval::format(*interval));
            if *paused { format!("PAUSED, {every}") } else { every }
        }
        SourceState::Replay(playback) => {
            let state = if playback.plays { format!("x{}", playback.speed) } else { "PAUSED".to_owned() };
            let at = clock(playback.elapsed().as_secs_f64(), 8);
            let all = duration(playback.length().as_secs_f64());
            format!("{}: {} s of {all}, {state}", playback.name, at.trim_start())
        }
    };
    let style = canvas.theme().strong();
    let room =
        area.width.saturating_sub(u16::try_from(right.chars().count()).unwrap_or(u16::MAX)).saturating_sub(1);
    let used = canvas.text(area.x, area.y, room.max(area.width / 3), &left, style);
    canvas.right(area.x + used + 1, area.y, area.width.saturating_sub(used + 1), &right, style);
}

/// A message, the question that is asked, or the keys.
pub(super) fn keys(canvas: &mut Canvas<'_>, area: Rect, view: &View) {
    let theme = canvas.theme();
    if let Some(prompt) = &view.prompt {
        let text = format!("{} {}_   (Enter: accept, Esc: cancel)", prompt.question.words(), prompt.text);
        canvas.text(area.x, area.y, area.width, &text, theme.selected());
        return;
    }
    if let Some(message) = &view.message {
        canvas.text(area.x, area.y, area.width, message, theme.selected());
        return;
    }
    let mut at = area.x;
    for key in keys::keys(view.replays()).filter(|key| !key.short.is_empty()) {
        let name = key.shown.split(' ').next().unwrap_or_default();
        let length = u16::try_from(name.len() + key.short.len() + 3).unwrap_or(u16::MAX);
        if at.saturating_add(length) > area.right() + 2 {
            break;
        }
        at += canvas.text(at, area.y, length, name, theme.strong()) + 1;
        at += canvas.text(at, area.y, length, key.short, theme.faint()) + 2;
    }
}

/// The selected process in words, or what the screen cannot tell.
pub(super) fn detail(canvas: &mut Canvas<'_>, area: Rect, view: &View) {
    if area.height == 0 {
        return;
    }
    let shown = view.shown();
    let text = match view.selected_row(&shown).filter(|_| view.page != ScreenPage::Nodes) {
        Some(row) => words(view, row),
        None => absent(view),
    };
    let style = canvas.theme().faint();
    canvas.text(area.x, area.y, area.width, &text, style);
}

fn words(view: &View, row: &ProcessRow) -> String {
    let name = if row.pid == 0 { row.command.clone() } else { format!("{} {}", row.pid, row.command) };
    let memory = match &row.memory {
        Err(why) => return format!("{name}: its memory {}", why.words(&view.processes.fix)),
        Ok(memory) => memory,
    };
    let on = view.machine.nodes.iter().zip(memory).filter(|(_, bytes)| **bytes > 0);
    let mut on: Vec<_> = on.map(|(node, bytes)| (*bytes, node.number)).collect();
    on.sort_by_key(|&(bytes, node)| (std::cmp::Reverse(bytes), node));
    let places: Vec<String> = on
        .iter()
        .map(|(bytes, node)| format!("node {node} {}", NumberStyle::Bytes.words(*bytes as f64)))
        .collect();
    // The observed program of a recording: the kernel counts them for the machine.
    let of_machine = || view.moment.as_ref()?.observed.as_ref()?.moved;
    let moved = (row.pid == 0).then(of_machine).flatten();
    let moved =
        moved.map(|moved| format!("; {} pages moved on this machine", NumberStyle::Rate.words(moved)));
    match places.is_empty() {
        true => format!("{name}: it has no memory of its own"),
        false => format!("{name}: {}{}", places.join(", "), moved.unwrap_or_default()),
    }
}

/// The first reason for a '-'; the help has all of them.
fn absent(view: &View) -> String {
    let reasons = || view.machine.absent.iter().map(|(what, why)| format!("{what}: {why}"));
    if let Some(why) = &view.processes.absent {
        return format!("processes: {why}");
    }
    match (reasons().next(), reasons().count()) {
        (None, _) => String::new(),
        (Some(first), 1) => format!("- {first}"),
        (Some(first), all) => format!("- {first} ({} more: h)", all - 1),
    }
}
