//! The terminal: taken, drawn, and given back however the program ends.

use crate::draw::draw;
use crate::theme::Theme;
use crate::view::View;
use numakit_sys::stdio::{OutputError, Stdout};
use numakit_sys::{signal, tty};
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::queue;
use ratatui::crossterm::terminal::{
    DisableLineWrap, EnableLineWrap, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode,
};
use ratatui::layout::{Position, Rect};
use ratatui::{Terminal, TerminalOptions, Viewport};
use std::cell::RefCell;
use std::io::{self, BufWriter, Write};
use std::rc::Rc;
use thiserror::Error;

/// Why nothing can be drawn.
#[derive(Debug, Error)]
pub enum ScreenError {
    /// Standard input or output is not a terminal.
    #[error(
        "standard {stream} is not a terminal, on which numa top draws; 'numa top --once' prints processes, 'numa stat' counters"
    )]
    NotATerminal {
        /// Which one.
        stream: &'static str,
    },
    /// TERM says that the terminal has no cursor.
    #[error(
        "the environment variable TERM is '{0}', a terminal on which the cursor cannot be moved; set it to the terminal's \
         type, as in 'TERM=xterm numa top', or use 'numa top --once' and 'numa stat', which print lines"
    )]
    Dumb(String),
    /// It cannot be drawn on.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A system call failed.
    #[error("the terminal cannot be used: {0}")]
    System(#[from] io::Error),
}

/// An error if the screen cannot be drawn on.
pub fn check(term: Option<&str>) -> Result<(), ScreenError> {
    if !tty::is_output() {
        return Err(ScreenError::NotATerminal { stream: "output" });
    }
    if !tty::is_input() {
        return Err(ScreenError::NotATerminal { stream: "input" });
    }
    match term.unwrap_or_default() {
        term @ ("" | "dumb") => Err(ScreenError::Dumb(term.to_owned())),
        _ => Ok(()),
    }
}

/// Standard output, whose errors are kept until they are asked for: what draws would print them, and panic if that fails too.
#[derive(Debug, Default, Clone)]
struct Output(Rc<RefCell<Option<OutputError>>>);

impl Output {
    fn check(&self) -> Result<(), OutputError> {
        match &*self.0.borrow() {
            Some(failure) => Err(failure.clone()),
            None => Ok(()),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.borrow().is_none()
            && let Err(error) = Stdout::default().write_all(bytes)
        {
            *self.0.borrow_mut() = Some(error.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The terminal while the screen is drawn on it. When this is dropped, it is as it was before.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Output>>>,
    output: Output,
    theme: Theme,
    taken: bool,
}

impl Screen {
    /// Takes the terminal.
    pub fn take(theme: Theme) -> Result<Self, ScreenError> {
        let output = Output::default();
        let backend = CrosstermBackend::new(BufWriter::with_capacity(1 << 16, output.clone()));
        let terminal = Terminal::with_options(backend, TerminalOptions { viewport: Viewport::Fullscreen })?;
        let mut screen = Self { terminal, output, theme, taken: false };
        screen.enter()?;
        Ok(screen)
    }

    fn enter(&mut self) -> Result<(), ScreenError> {
        self.taken = true;
        enable_raw_mode()?;
        queue!(self.writer(), EnterAlternateScreen, DisableLineWrap, Hide)?;
        self.redraw()
    }

    /// Gives the terminal back. Its errors are ignored: it may be gone.
    pub fn leave(&mut self) {
        if std::mem::take(&mut self.taken) {
            let _ = queue!(self.writer(), EnableLineWrap, LeaveAlternateScreen, Show);
            let _ = self.writer().flush();
            let _ = disable_raw_mode();
        }
    }

    /// The next drawing draws every cell.
    pub fn redraw(&mut self) -> Result<(), ScreenError> {
        // Clearing it would ask the terminal where its cursor is, and wait for the answer.
        let area = Rect::from((Position::ORIGIN, self.terminal.size()?));
        self.terminal.resize(area)?;
        Ok(self.output.check()?)
    }

    /// Draws what has changed.
    pub fn draw(&mut self, view: &mut View) -> Result<(), ScreenError> {
        let theme = self.theme;
        self.terminal.draw(|frame| {
            let area = frame.area();
            draw(view, theme, area, frame.buffer_mut());
        })?;
        Ok(self.output.check()?)
    }

    /// Stops the process as Ctrl-Z would; continues when it does.
    pub fn suspend(&mut self) -> Result<(), ScreenError> {
        self.leave();
        signal::stop_self();
        self.enter()
    }

    /// After the process continued: another program may have changed the terminal.
    pub fn retake(&mut self) -> Result<(), ScreenError> {
        // What is remembered of the terminal's state may be wrong, so it is set again.
        disable_raw_mode()?;
        enable_raw_mode()?;
        queue!(self.writer(), DisableLineWrap, Hide)?;
        self.redraw()
    }

    fn writer(&mut self) -> &mut CrosstermBackend<BufWriter<Output>> {
        self.terminal.backend_mut()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.leave();
    }
}
