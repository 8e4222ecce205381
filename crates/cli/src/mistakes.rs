//! What is added to clap's messages about mistakes: the command that was meant.

use crate::{Verb, command, listed_verbs};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::path::Path;

/// Verbs that are named at most, of those that have an option.
const MOST_VERBS: usize = 3;

/// The same error with advice, where there is any.
pub fn with_advice(mut error: clap::Error) -> clap::Error {
    let (ErrorKind::UnknownArgument, Some(ContextValue::String(option))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    else {
        return error;
    };
    if let Some(advice) = option_of_another(option) {
        let mut all = match error.get(ContextKind::Suggested) {
            Some(ContextValue::StyledStrs(suggested)) => suggested.clone(),
            _ => Vec::new(),
        };
        all.push(advice.into());
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(all));
    }
    error
}

/// What is wrong with a first word that is neither a verb nor a program, and what was meant; `None` of other mistakes.
pub fn no_verb(error: &clap::Error) -> Option<String> {
    let (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word))) =
        (error.kind(), error.get(ContextKind::InvalidSubcommand))
    else {
        return None;
    };
    let meant = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(near)) => {
            near.iter().map(|verb| format!("did you mean 'numa {verb}'? ")).next_back()
        }
        _ => None,
    };
    Some(match Path::new(word).is_file() {
        true => format!(
            "'{word}' is a file: 'numa show {word}' shows a recording or a result, 'numa ./{word}' runs a program"
        ),
        false => format!(
            "'{word}' is neither a verb nor a program in PATH; {}'numa help more' lists the verbs",
            meant.unwrap_or_default()
        ),
    })
}

/// The verbs that have this option.
fn option_of_another(option: &str) -> Option<String> {
    let name = option.split('=').next().unwrap_or(option);
    let numa = command();
    let has = |verb: &&Verb| {
        numa.find_subcommand(verb.name).is_some_and(|defined| {
            defined.get_arguments().filter(|arg| !arg.is_hide_set()).any(|arg| {
                name.strip_prefix("--").is_some_and(|long| arg.get_long() == Some(long))
                    || name
                        .strip_prefix('-')
                        .is_some_and(|short| arg.get_short().map(String::from).as_deref() == Some(short))
            })
        })
    };
    let verbs = listed_verbs().filter(has).take(MOST_VERBS);
    let shown: Vec<String> = verbs.map(|verb| format!("'numa {}'", verb.name)).collect();
    (!shown.is_empty()).then(|| format!("'{name}' is an option of {}", shown.join(", ")))
}
