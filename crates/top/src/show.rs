//! The loop of the screen: events in, drawings and requests out.

use crate::machine::Moment;
use crate::playback::Playback;
use crate::screen::{Screen, ScreenError};
use crate::table::ProcessTable;
use crate::theme::Theme;
use crate::view::{Request, SourceState, View};
use numakit_findings::finding::Findings;
use numakit_sys::signal::{self, Signals};
use numakit_sys::{poll, stdio, tty};
use ratatui::crossterm::event::{self, KeyEvent, KeyEventKind};
use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// What happens.
#[derive(Debug)]
pub enum ScreenEvent {
    /// A key.
    Key(KeyEvent),
    /// The terminal has another size.
    Resized,
    /// New values.
    Moment(Box<Moment>),
    /// New findings, and the seconds that they are about.
    Findings(Box<Findings>, f64),
    /// New processes.
    Processes(ProcessTable),
    /// The place in a recording.
    Playback(Playback),
    /// The observation ended; nothing new comes.
    Ended(String),
    /// Ctrl-Z, or a signal like it.
    Stop,
    /// The process continued after a stop.
    Continued,
    /// Give the terminal back and return.
    End,
}

/// Shortest time between two drawings because of new values: keys are drawn at once.
const FRAME: Duration = Duration::from_millis(40);

/// Draws until the user or an event ends it. The terminal is given back in any case.
pub fn show(
    mut view: View,
    theme: Theme,
    events: &Receiver<ScreenEvent>,
    mut request: impl FnMut(Request),
) -> Result<(), ScreenError> {
    let mut screen = Screen::take(theme)?;
    screen.draw(&mut view)?;
    let mut due: Option<Instant> = None;
    loop {
        let wait = due.map_or(Duration::from_secs(3600), |due| due.saturating_duration_since(Instant::now()));
        let event = match events.recv_timeout(wait) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => {
                due = None;
                screen.draw(&mut view)?;
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        match handle(event, &mut view, &mut screen, &mut request)? {
            Next::End => return Ok(()),
            Next::DrawNow => {
                due = None;
                screen.draw(&mut view)?;
            }
            Next::DrawSoon => due = due.or_else(|| Some(Instant::now() + FRAME)),
            Next::Nothing => {}
        }
    }
}

enum Next {
    Nothing,
    DrawSoon,
    DrawNow,
    End,
}

fn handle(
    event: ScreenEvent,
    view: &mut View,
    screen: &mut Screen,
    request: &mut impl FnMut(Request),
) -> Result<Next, ScreenError> {
    match event {
        ScreenEvent::Key(key) => match view.key(&key) {
            Some(Request::Suspend) => signal::stop_group(),
            Some(Request::Redraw) => screen.redraw()?,
            Some(Request::Quit) => return Ok(Next::End),
            Some(other) => request(other),
            None => {}
        },
        ScreenEvent::Resized => {}
        ScreenEvent::Stop => screen.suspend()?,
        ScreenEvent::Continued => screen.retake()?,
        ScreenEvent::End => return Ok(Next::End),
        ScreenEvent::Ended(how) => {
            if let SourceState::Live { ended, .. } = &mut view.source {
                *ended = Some(how);
            }
        }
        ScreenEvent::Playback(playback) => {
            view.source = SourceState::Replay(playback);
            return Ok(Next::DrawSoon);
        }
        values if !view.follows() => {
            drop(values);
            return Ok(Next::Nothing);
        }
        ScreenEvent::Moment(moment) => {
            let is_first = view.moment.is_none();
            view.moment = Some(*moment);
            return Ok(if is_first { Next::DrawNow } else { Next::DrawSoon });
        }
        ScreenEvent::Findings(findings, range) => {
            (view.findings, view.range) = (Some(*findings), range);
            return Ok(Next::DrawSoon);
        }
        ScreenEvent::Processes(table) => {
            view.processes = table;
            return Ok(Next::DrawSoon);
        }
    }
    Ok(Next::DrawNow)
}

/// How often it is checked whether the terminal has another size.
const CHECK: Duration = Duration::from_millis(250);

/// Reads keys and changes of size in a thread of its own, until the terminal is gone or its input ends.
pub fn read_keys(to: Sender<ScreenEvent>) -> io::Result<()> {
    std::thread::Builder::new().name("keys".into()).spawn(move || {
        // At its end, the input is always readable, and reading an event would try again and again.
        while poll::readable(&[io::stdin().as_fd()], Some(CHECK)).is_ok()
            && !tty::has_ended(io::stdin().as_fd())
        {
            match forward(&to) {
                Ok(true) => {}
                Ok(false) => return,
                Err(_) => break,
            }
        }
        let _ = to.send(ScreenEvent::End);
    })?;
    Ok(())
}

/// Passes on what has happened; `false` if nobody receives it.
fn forward(to: &Sender<ScreenEvent>) -> io::Result<bool> {
    while event::poll(Duration::ZERO)? {
        let event = match event::read()? {
            event::Event::Key(key) if key.kind != KeyEventKind::Release => ScreenEvent::Key(key),
            event::Event::Resize(..) => ScreenEvent::Resized,
            _ => continue,
        };
        if to.send(event).is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Signals before which the terminal has to be given back: those that stop and continue the process, and those that end it
/// unless they are handled. Collect them before any other thread exists.
#[derive(Debug)]
pub struct Stops(Signals);

impl Stops {
    /// From now on they neither stop nor end the process.
    pub fn collect() -> io::Result<Self> {
        let all = [&[signal::STOP, signal::CONTINUE][..], &signal::OTHER_ENDS].concat();
        Signals::collect(&all).map(Self)
    }

    /// Passes them on, in a thread of its own.
    pub fn follow(self, to: Sender<ScreenEvent>) -> io::Result<()> {
        std::thread::Builder::new().name("stops".into()).spawn(move || {
            while poll::readable(&[self.0.as_fd()], None).is_ok() {
                while let Some(signal) = self.0.next() {
                    let event = match signal.number {
                        signal::STOP => ScreenEvent::Stop,
                        signal::CONTINUE => ScreenEvent::Continued,
                        _ => ScreenEvent::End,
                    };
                    if to.send(event).is_err() {
                        return;
                    }
                }
            }
            stdio::note("signals that stop the process cannot be read");
        })?;
        Ok(())
    }
}
