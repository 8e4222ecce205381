//! The keys: one table, from which the help is made.

use ratatui::crossterm::event::KeyCode;

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Ends the program.
    Quit,
    /// Shows or hides the help.
    Help,
    /// Shows a page.
    Show(ScreenPage),
    /// Shows the next page.
    NextPage,
    /// Moves the selection by lines, or the text of the page.
    Move(i32),
    /// The same by screens.
    MoveScreens(i32),
    /// The first line.
    First,
    /// The last line.
    Last,
    /// Sorts processes by the next key.
    NextSort,
    /// Reverses the order.
    Reverse,
    /// Asks for a text that processes must contain.
    Filter,
    /// Asks for a process.
    Pid,
    /// Shows all processes, without filter.
    All,
    /// Asks for an interval.
    Interval,
    /// Stops and continues.
    Pause,
    /// Plays another part of the recording, by steps.
    Step(i32),
    /// The same, by tenths of the recording.
    Jump(i32),
    /// Plays twice or half as fast.
    Speed(bool),
    /// Asks for a time.
    Seek,
    /// Draws everything again.
    Redraw,
    /// Stops the process, as a shell's Ctrl-Z.
    Suspend,
}

/// What the screen shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ScreenPage {
    /// A part of everything.
    #[default]
    Overview,
    /// All findings.
    Findings,
    /// All nodes and CPUs.
    Nodes,
    /// Processes only.
    Processes,
}

impl ScreenPage {
    /// All, in the order of their keys.
    pub const ALL: [Self; 4] = [Self::Overview, Self::Findings, Self::Nodes, Self::Processes];

    /// Its name in the title.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Findings => "findings",
            Self::Nodes => "nodes",
            Self::Processes => "processes",
        }
    }
}

/// Where a key works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Works {
    /// Everywhere.
    Always,
    /// While this machine is observed.
    Live,
    /// While a recording is played.
    Replay,
}

/// A key with its action.
#[derive(Debug)]
pub struct Key {
    /// The keys.
    pub codes: &'static [KeyCode],
    /// As the help writes them.
    pub shown: &'static str,
    /// What it does, for the help.
    pub does: &'static str,
    /// What it does.
    pub action: Action,
    /// Where.
    pub works: Works,
    /// The word of the last line of the screen; empty: it is only in the help.
    pub short: &'static str,
}

const fn key(
    codes: &'static [KeyCode],
    shown: &'static str,
    short: &'static str,
    action: Action,
    works: Works,
    does: &'static str,
) -> Key {
    Key { codes, shown, does, action, works, short }
}

use Action as A;
use KeyCode as C;
use Works::{Always, Live, Replay};

/// All keys, in the order of the help.
pub static KEYS: &[Key] = &[
    key(
        &[C::Char('q'), C::Char('Q')],
        "q",
        "quit",
        A::Quit,
        Always,
        "quit; with a command: end it, as Ctrl-C does",
    ),
    key(&[C::Char('h'), C::Char('?'), C::F(1)], "h ?", "help", A::Help, Always, "show or hide this help"),
    key(&[C::Char('1')], "1", "", A::Show(ScreenPage::Overview), Always, "overview"),
    key(
        &[C::Char('2')],
        "2",
        "",
        A::Show(ScreenPage::Findings),
        Always,
        "findings with their evidence and remedies",
    ),
    key(&[C::Char('3')], "3", "", A::Show(ScreenPage::Nodes), Always, "all nodes and CPUs"),
    key(&[C::Char('4')], "4", "", A::Show(ScreenPage::Processes), Always, "processes only"),
    key(&[C::Tab], "Tab", "page", A::NextPage, Always, "the next of these pages"),
    key(&[C::Up, C::Char('k')], "Up k", "", A::Move(-1), Always, "select the process above; scroll up"),
    key(&[C::Down, C::Char('j')], "Down j", "", A::Move(1), Always, "select the process below; scroll down"),
    key(&[C::PageUp], "PgUp", "", A::MoveScreens(-1), Always, "a screen up"),
    key(&[C::PageDown], "PgDn", "", A::MoveScreens(1), Always, "a screen down"),
    key(&[C::Home, C::Char('g')], "Home g", "", A::First, Always, "the first line"),
    key(&[C::End, C::Char('G')], "End G", "", A::Last, Always, "the last line"),
    key(&[C::Char('s')], "s", "sort", A::NextSort, Always, "sort processes by the next key"),
    key(&[C::Char('r')], "r", "", A::Reverse, Always, "reverse the order"),
    key(
        &[C::Char('/'), C::Char('f')],
        "/ f",
        "filter",
        A::Filter,
        Always,
        "only processes whose name or user contains a text",
    ),
    key(&[C::Char('p')], "p", "pid", A::Pid, Always, "only a process and its descendants"),
    key(&[C::Char('a')], "a", "", A::All, Always, "all processes again"),
    key(&[C::Char('i')], "i", "interval", A::Interval, Live, "change the interval"),
    key(&[C::Char(' ')], "Space", "pause", A::Pause, Always, "pause and continue"),
    key(&[C::Right, C::Char('.')], "Right .", "step", A::Step(1), Replay, "an interval forward"),
    key(&[C::Left, C::Char(',')], "Left ,", "", A::Step(-1), Replay, "an interval back"),
    key(&[C::Char('>')], ">", "", A::Jump(1), Replay, "a tenth of the recording forward"),
    key(&[C::Char('<')], "<", "", A::Jump(-1), Replay, "a tenth of the recording back"),
    key(&[C::Char('+'), C::Char('=')], "+", "speed", A::Speed(true), Replay, "twice as fast"),
    key(&[C::Char('-')], "-", "", A::Speed(false), Replay, "half as fast"),
    key(&[C::Char('t')], "t", "time", A::Seek, Replay, "go to a time after the start, such as 90s or 2min"),
    key(&[], "Ctrl-L", "", A::Redraw, Always, "draw everything again"),
    key(&[], "Ctrl-Z", "", A::Suspend, Always, "stop; 'fg' continues"),
];

/// The action of a key.
pub fn action(code: KeyCode, control: bool, replays: bool) -> Option<Action> {
    if control {
        return match code {
            KeyCode::Char('c') => Some(Action::Quit),
            KeyCode::Char('l') => Some(Action::Redraw),
            KeyCode::Char('z') => Some(Action::Suspend),
            _ => None,
        };
    }
    keys(replays).find(|key| key.codes.contains(&code)).map(|key| key.action)
}

/// The keys that work.
pub fn keys(replays: bool) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| match key.works {
        Works::Always => true,
        Works::Live => !replays,
        Works::Replay => replays,
    })
}

/// The keys as Markdown, for documents.
pub fn guide() -> String {
    let row = |key: &Key| {
        let only = match key.works {
            Works::Always => "",
            Works::Live => " (not with `--replay`)",
            Works::Replay => " (with `--replay`)",
        };
        let shown: Vec<String> = key.shown.split(' ').map(|key| format!("`{key}`")).collect();
        format!("| {} | {}{only} |\n", shown.join(" "), key.does)
    };
    "| key | does |\n|---|---|\n".to_owned() + &KEYS.iter().map(row).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_key_has_two_actions() {
        for replays in [false, true] {
            let mut seen = HashSet::new();
            for code in keys(replays).flat_map(|key| key.codes) {
                assert!(seen.insert(*code), "{code:?}");
            }
        }
    }

    #[test]
    fn keys_of_a_recording_work_there_only() {
        assert_eq!(action(KeyCode::Char('i'), false, false), Some(Action::Interval));
        assert_eq!(action(KeyCode::Char('i'), false, true), None);
        assert_eq!(action(KeyCode::Right, false, true), Some(Action::Step(1)));
        assert_eq!(action(KeyCode::Right, false, false), None);
        assert_eq!(action(KeyCode::Char('c'), true, false), Some(Action::Quit));
    }
}
