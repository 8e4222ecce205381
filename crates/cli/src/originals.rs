//! The programs that numakit replaces. Their command lines are translated into command lines of
//! `numa`, which then run.

use crate::{answer, numaplace, numascope};
use clap::Command;
use numakit_sys::command::quoted;
use numakit_sys::stdio::say;
use std::ffi::OsString;
use std::process::ExitCode;

/// A program whose command lines are translated.
pub struct Original {
    /// Its name.
    pub name: &'static str,
    /// Defines its command line, for help, man page and completions.
    pub command: fn() -> Command,
    /// Translates its arguments.
    pub translate: fn(Vec<OsString>) -> Result<Translation, clap::Error>,
}

/// A command line of `numa`.
#[derive(Debug, PartialEq, Eq)]
pub struct Translation {
    /// The words; the first is `numa`.
    pub words: Vec<OsString>,
    /// Whether it is printed.
    pub shown: bool,
}

/// All such programs.
pub const ORIGINALS: [Original; 2] = [
    Original { name: "numascope", command: numascope::command, translate: numascope::translate },
    Original { name: "numaplace", command: numaplace::command, translate: numaplace::translate },
];

impl Original {
    /// Translates and runs a command line without the name of the program.
    pub fn run(&self, words: Vec<OsString>) -> anyhow::Result<ExitCode> {
        match (self.translate)(words) {
            Ok(line) => {
                if line.shown {
                    say(format_args!("{}: runs: {}\n", self.name, quoted(&line.words)));
                }
                crate::run(&line.words)
            }
            Err(other) => answer(other),
        }
    }
}

impl Translation {
    /// The words `numa VERB`.
    pub(crate) fn of(verb: &str, shown: bool) -> Self {
        Self { words: vec!["numa".into(), verb.into()], shown }
    }

    /// Adds an option.
    pub(crate) fn option(mut self, option: &str) -> Self {
        self.words.push(option.into());
        self
    }

    /// Adds an option if a condition holds.
    pub(crate) fn option_if(self, condition: bool, option: &str) -> Self {
        if condition { self.option(option) } else { self }
    }

    /// Adds `NAME=VALUE`, if there is a value: one word, so that the value may begin with a dash.
    pub(crate) fn value(mut self, name: &str, value: Option<impl Into<OsString>>) -> Self {
        if let Some(value) = value {
            let mut word = OsString::from(name);
            word.push("=");
            word.push(value.into());
            self.words.push(word);
        }
        self
    }

    /// Adds the user's command, if there is one.
    pub(crate) fn command(mut self, command: impl IntoIterator<Item = OsString>) -> Self {
        let mut command = command.into_iter().peekable();
        if command.peek().is_some() {
            self.words.push("--".into());
            self.words.extend(command);
        }
        self
    }
}
