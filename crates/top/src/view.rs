//! What the screen shows, and what keys change about it. Pure: no clock, no terminal.

use crate::keys::{self, Action, ScreenPage};
use crate::machine::{MachineMeters, Moment};
use crate::playback::{PlayCommand, Playback};
use crate::table::{ProcessRow, ProcessSelection, ProcessTable};
use numakit_findings::finding::Findings;
use numakit_observation::interval;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::sync::Arc;
use std::time::Duration;

/// What the screen shows.
#[derive(Debug)]
pub struct View {
    /// The machine.
    pub machine: Arc<MachineMeters>,
    /// The newest values.
    pub moment: Option<Moment>,
    /// The findings of the last minute.
    pub findings: Option<Findings>,
    /// The seconds that they are about.
    pub range: f64,
    /// The processes.
    pub processes: ProcessTable,
    /// Which processes are shown.
    pub selection: ProcessSelection,
    /// The page.
    pub page: ScreenPage,
    /// Whether the help covers it.
    pub help: bool,
    /// A question that the user answers.
    pub prompt: Option<Prompt>,
    /// Where values come from.
    pub source: SourceState,
    /// A message, until the next key.
    pub message: Option<String>,
    /// The selected process.
    pub selected: Option<u32>,
    /// The first line of a page that is longer than the screen.
    pub scroll: usize,
    /// How many lines of it fit, as drawn last.
    pub fits: usize,
}

/// Where values come from.
#[derive(Debug, Clone, PartialEq)]
pub enum SourceState {
    /// This machine.
    Live {
        /// The interval.
        interval: Duration,
        /// Whether the screen stands still.
        paused: bool,
        /// How the observation ended, if it has.
        ended: Option<String>,
    },
    /// A recording.
    Replay(Playback),
}

/// A question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// What is asked.
    pub question: Question,
    /// The answer so far.
    pub text: String,
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// A text that processes must contain.
    Filter,
    /// A process.
    Pid,
    /// An interval.
    Interval,
    /// A time after the start of the recording.
    Time,
}

impl Question {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Filter => "only processes that contain:",
            Self::Pid => "only this process and its descendants, by PID:",
            Self::Interval => "interval, such as 500ms or 2s:",
            Self::Time => "time after the start, such as 90s or 2min:",
        }
    }
}

/// What a key asks others to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// End.
    Quit,
    /// Sample at this interval.
    Interval(Duration),
    /// Play another part of the recording.
    Play(PlayCommand),
    /// Draw everything again.
    Redraw,
    /// Stop the process.
    Suspend,
}

impl View {
    /// An empty view of a machine.
    pub fn new(machine: Arc<MachineMeters>, source: SourceState, selection: ProcessSelection) -> Self {
        Self {
            machine,
            moment: None,
            findings: None,
            range: 0.0,
            processes: ProcessTable::default(),
            selection,
            page: ScreenPage::Overview,
            help: false,
            prompt: None,
            source,
            message: None,
            selected: None,
            scroll: 0,
            fits: 1,
        }
    }

    /// Whether a recording is shown.
    pub fn replays(&self) -> bool {
        matches!(self.source, SourceState::Replay(_))
    }

    /// Whether new values are shown.
    pub fn follows(&self) -> bool {
        !matches!(self.source, SourceState::Live { paused: true, .. })
    }

    /// The positions of the processes that are shown.
    pub fn shown(&self) -> Vec<usize> {
        self.processes.shown(&self.selection)
    }

    /// The selected process, if it is shown.
    pub fn selected_row(&self, shown: &[usize]) -> Option<&ProcessRow> {
        let pid = self.selected?;
        shown.iter().map(|&at| &self.processes.rows[at]).find(|row| row.pid == pid)
    }

    /// A key.
    pub fn key(&mut self, event: &KeyEvent) -> Option<Request> {
        self.message = None;
        let control = event.modifiers.contains(KeyModifiers::CONTROL);
        if control && event.code == KeyCode::Char('c') {
            return Some(Request::Quit);
        }
        if let Some(prompt) = self.prompt.take() {
            return self.answer(prompt, event.code);
        }
        let is_close = event.code == KeyCode::Esc || (event.code == KeyCode::Char('q') && self.help);
        if is_close && (self.help || self.selected.is_some()) {
            (self.help, self.selected, self.scroll) = (false, None, 0);
            return None;
        }
        let action = keys::action(event.code, control, self.replays())?;
        self.act(action)
    }

    fn act(&mut self, action: Action) -> Option<Request> {
        match action {
            Action::Quit => return Some(Request::Quit),
            Action::Redraw => return Some(Request::Redraw),
            Action::Suspend => return Some(Request::Suspend),
            Action::Step(steps) => return Some(Request::Play(PlayCommand::Step(steps))),
            Action::Jump(tenths) => return Some(Request::Play(PlayCommand::Jump(tenths))),
            Action::Speed(faster) => return Some(Request::Play(PlayCommand::Speed(faster))),
            Action::Pause => match &mut self.source {
                SourceState::Live { paused, .. } => *paused = !*paused,
                SourceState::Replay(_) => return Some(Request::Play(PlayCommand::Pause)),
            },
            Action::Help => (self.help, self.scroll) = (!self.help, 0),
            Action::Show(page) => self.show(page),
            Action::NextPage => {
                let at = ScreenPage::ALL.iter().position(|page| *page == self.page).unwrap_or(0);
                self.show(ScreenPage::ALL[(at + 1) % ScreenPage::ALL.len()]);
            }
            Action::Move(lines) => self.travel(i64::from(lines)),
            Action::MoveScreens(screens) => {
                self.travel(i64::from(screens) * i64::try_from(self.fits.max(2) - 1).unwrap_or(1));
            }
            Action::First => self.travel(-i64::from(i32::MAX)),
            Action::Last => self.travel(i64::from(i32::MAX)),
            Action::NextSort => self.selection.sort = self.selection.sort.next(),
            Action::Reverse => self.selection.reversed = !self.selection.reversed,
            Action::All => (self.selection.filter, self.selection.of) = (String::new(), Vec::new()),
            Action::Filter => self.ask(Question::Filter),
            Action::Pid => self.ask(Question::Pid),
            Action::Interval => self.ask(Question::Interval),
            Action::Seek => self.ask(Question::Time),
        }
        None
    }

    fn show(&mut self, page: ScreenPage) {
        (self.page, self.help, self.scroll) = (page, false, 0);
    }

    fn ask(&mut self, question: Question) {
        let text = if question == Question::Filter { self.selection.filter.clone() } else { String::new() };
        self.prompt = Some(Prompt { question, text });
    }

    /// Whether the selection moves; on other pages, the text does.
    pub fn selects(&self) -> bool {
        !self.help && matches!(self.page, ScreenPage::Overview | ScreenPage::Processes)
    }

    fn travel(&mut self, lines: i64) {
        let moved = |from: usize, last: usize| {
            let to = i64::try_from(from).unwrap_or(0).saturating_add(lines);
            usize::try_from(to.max(0)).unwrap_or(0).min(last)
        };
        if !self.selects() {
            // Drawing limits it to the length of the page.
            self.scroll = moved(self.scroll, usize::MAX / 2);
            return;
        }
        let shown = self.shown();
        let Some(last) = shown.len().checked_sub(1) else { return };
        let at =
            self.selected.and_then(|pid| shown.iter().position(|&at| self.processes.rows[at].pid == pid));
        let to = match at {
            Some(at) => moved(at, last),
            None if lines > 1 => moved(0, last),
            None => 0,
        };
        self.selected = Some(self.processes.rows[shown[to]].pid);
    }

    fn answer(&mut self, mut prompt: Prompt, code: KeyCode) -> Option<Request> {
        match code {
            KeyCode::Esc => {
                if prompt.question == Question::Filter {
                    self.selection.filter.clear();
                }
                return None;
            }
            KeyCode::Enter => return self.accept(&prompt),
            KeyCode::Backspace => _ = prompt.text.pop(),
            KeyCode::Char(typed) if prompt.text.len() < 64 => prompt.text.push(typed),
            _ => {}
        }
        if prompt.question == Question::Filter {
            self.selection.filter.clone_from(&prompt.text);
        }
        self.prompt = Some(prompt);
        None
    }

    fn accept(&mut self, prompt: &Prompt) -> Option<Request> {
        let text = prompt.text.trim();
        match prompt.question {
            Question::Filter => {}
            Question::Pid if text.is_empty() => self.selection.of.clear(),
            Question::Pid => match text.parse::<u32>() {
                // Before the first measurement, nobody knows.
                Ok(pid)
                    if self.processes.rows.is_empty()
                        || self.processes.rows.iter().any(|row| row.pid == pid) =>
                {
                    (self.selection.of, self.selection.filter) = (vec![pid], String::new());
                }
                _ => {
                    self.message =
                        Some(format!("there is no process '{text}'; the column PID has their numbers"))
                }
            },
            Question::Interval | Question::Time if text.is_empty() => {}
            Question::Interval => match interval::parse(text) {
                Ok(every) => {
                    if let SourceState::Live { interval, .. } = &mut self.source {
                        *interval = every;
                    }
                    return Some(Request::Interval(every));
                }
                Err(error) => self.message = Some(error.to_string()),
            },
            Question::Time => match time_after_start(text) {
                Some(time) => return Some(Request::Play(PlayCommand::Seek(time))),
                None => self.message = Some(format!("'{text}' is not a time; write it as 90s or 2min")),
            },
        }
        None
    }
}

/// A time such as `90s`, `1.5min` or `2h`; without a unit, in seconds.
fn time_after_start(text: &str) -> Option<Duration> {
    let units = [("ms", 1e-3), ("min", 60.0), ("h", 3600.0), ("s", 1.0), ("", 1.0)];
    let (number, scale) = units.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))?;
    let seconds: f64 = number.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds * scale).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{NotRead, ProcessOrder};
    use crate::testing::{header, machine_of};

    fn view() -> View {
        let machine = Arc::new(machine_of(&header("node:2 core:2")));
        let source = SourceState::Live { interval: Duration::from_secs(1), paused: false, ended: None };
        let mut view = View::new(machine, source, ProcessSelection::default());
        view.processes.rows = [(5, 30.0, "five"), (6, 20.0, "six"), (7, 10.0, "seven")]
            .map(|(pid, cpu, name)| ProcessRow {
                pid,
                parent: 1,
                user: "me".into(),
                command: name.into(),
                cpu: Some(cpu),
                remote: None,
                resident: None,
                memory: Err(NotRead::Waits),
                faults: None,
                moved: None,
            })
            .into();
        view
    }

    fn press(view: &mut View, code: KeyCode) -> Option<Request> {
        view.key(&KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn type_text(view: &mut View, text: &str) -> Option<Request> {
        text.chars().for_each(|c| _ = press(view, KeyCode::Char(c)));
        press(view, KeyCode::Enter)
    }

    #[test]
    fn the_selection_stays_on_its_process() {
        let mut view = view();
        press(&mut view, KeyCode::Down);
        press(&mut view, KeyCode::Down);
        assert_eq!(view.selected, Some(6));
        view.processes.rows[1].cpu = Some(99.0);
        press(&mut view, KeyCode::Down);
        assert_eq!(view.selected, Some(5));
        press(&mut view, KeyCode::End);
        assert_eq!(view.selected, Some(7));
        press(&mut view, KeyCode::Esc);
        assert_eq!(view.selected, None);
    }

    #[test]
    fn a_filter_works_while_it_is_typed_and_escape_undoes_it() {
        let mut view = view();
        press(&mut view, KeyCode::Char('/'));
        press(&mut view, KeyCode::Char('s'));
        assert_eq!(view.shown().len(), 2);
        press(&mut view, KeyCode::Char('q'));
        assert_eq!(view.shown().len(), 0, "keys are text there");
        press(&mut view, KeyCode::Backspace);
        press(&mut view, KeyCode::Enter);
        assert_eq!((view.shown().len(), &view.prompt), (2, &None));
        press(&mut view, KeyCode::Char('/'));
        press(&mut view, KeyCode::Esc);
        assert_eq!(view.shown().len(), 3);
    }

    #[test]
    fn wrong_answers_are_explained() {
        let mut view = view();
        press(&mut view, KeyCode::Char('p'));
        assert_eq!(type_text(&mut view, "99"), None);
        assert!(view.message.as_ref().unwrap().contains("no process '99'"));
        press(&mut view, KeyCode::Char('p'));
        type_text(&mut view, "6");
        assert_eq!((view.shown().len(), view.selection.of.as_slice()), (1, &[6][..]));
        press(&mut view, KeyCode::Char('a'));
        press(&mut view, KeyCode::Char('i'));
        type_text(&mut view, "5");
        assert!(view.message.as_ref().unwrap().contains("has no unit"));
        press(&mut view, KeyCode::Char('i'));
        let request = type_text(&mut view, "2s");
        assert_eq!(request, Some(Request::Interval(Duration::from_secs(2))));
    }

    #[test]
    fn pages_sort_keys_and_the_end() {
        let mut view = view();
        press(&mut view, KeyCode::Tab);
        assert_eq!((view.page, view.selects()), (ScreenPage::Findings, false));
        press(&mut view, KeyCode::Char('h'));
        assert!(view.help);
        assert_eq!((press(&mut view, KeyCode::Char('q')), view.help), (None, false));
        press(&mut view, KeyCode::Char('s'));
        assert_eq!(view.selection.sort, ProcessOrder::Remote);
        press(&mut view, KeyCode::Char(' '));
        assert!(!view.follows());
        assert_eq!(press(&mut view, KeyCode::Char('q')), Some(Request::Quit));
        let control = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        view.prompt = Some(Prompt { question: Question::Pid, text: String::new() });
        assert_eq!(view.key(&control), Some(Request::Quit));
    }

    #[test]
    fn times_after_the_start() {
        let seconds = |text| time_after_start(text).map(|time| time.as_secs_f64());
        assert_eq!(
            ["90", "90s", "1.5min", "2h", "100ms"].map(seconds),
            [90.0, 90.0, 90.0, 7200.0, 0.1].map(Some)
        );
        assert_eq!(["", "x", "-1s", "1e400s", "nans"].map(seconds), [None; 5]);
    }
}
