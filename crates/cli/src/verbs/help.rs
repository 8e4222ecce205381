//! `numa help`.

use crate::{Examples, GlobalArgs, Group, VERBS, command, help};
use anyhow::bail;
use clap::Args;
use numakit_sys::stdio::print;
use std::process::ExitCode;

/// The word for the verbs that the first help leaves out.
const MORE: &str = "more";

/// Show the help of a verb, or list all verbs
#[derive(Debug, Args)]
pub struct HelpArgs {
    /// A verb, or 'more' for all verbs
    #[arg(value_name = "VERB")]
    topic: Option<String>,
}

impl HelpArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples =
        [("numa help more", "lists all verbs"), ("numa help run", "describes the verb run")];

    /// Prints it.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        let mut numa = command();
        numa.build();
        let text = match self.topic.as_deref() {
            None => numa.render_long_help(),
            Some(MORE) => help::listed(&numa, &Group::LISTED).into(),
            Some(name) => match VERBS.iter().find(|verb| verb.name == name) {
                Some(verb) => help::of_verb(&mut numa, verb.name),
                None => bail!("there is no verb '{name}'; 'numa help more' lists the verbs"),
            },
        };
        match global.color() {
            true => print(text.ansi())?,
            false => print(text)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
