//! What is added to clap's messages about mistakes: the command that was meant.

use crate::{Group, VERBS, command};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use numakit_sys::command::quoted;
use std::ffi::OsString;
use std::path::Path;

/// At most so many verbs are named that have an option.
const MOST_VERBS: usize = 3;

/// The same error with advice, where there is any.
pub fn with_advice(mut error: clap::Error, words: &[OsString]) -> clap::Error {
    let advice =
        match (error.kind(), error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidSubcommand)) {
            (ErrorKind::UnknownArgument, Some(ContextValue::String(option)), _) => {
                option_of_another(option, words)
            }
            (ErrorKind::InvalidSubcommand, _, Some(ContextValue::String(word))) => Some(no_verb(word)),
            _ => None,
        };
    if let Some(advice) = advice {
        let mut all = match error.get(ContextKind::Suggested) {
            Some(ContextValue::StyledStrs(suggested)) => suggested.clone(),
            _ => Vec::new(),
        };
        all.push(advice.into());
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(all));
    }
    error
}

/// The verbs that have this option.
fn option_of_another(option: &str, words: &[OsString]) -> Option<String> {
    let name = option.split('=').next().unwrap_or(option);
    let numa = command();
    let has = |verb: &&crate::Verb| {
        numa.find_subcommand(verb.name).is_some_and(|defined| {
            defined.get_arguments().filter(|arg| !arg.is_hide_set()).any(|arg| {
                name.strip_prefix("--").is_some_and(|long| arg.get_long() == Some(long))
                    || name
                        .strip_prefix('-')
                        .is_some_and(|short| arg.get_short().map(String::from).as_deref() == Some(short))
            })
        })
    };
    let verbs: Vec<&str> =
        VERBS.iter().filter(|verb| verb.group != Group::Hidden).filter(has).map(|verb| verb.name).collect();
    let shown: Vec<String> = verbs.iter().take(MOST_VERBS).map(|verb| format!("'numa {verb}'")).collect();
    let first = verbs.first()?;
    // An option of a verb before any verb: the whole line with the verb.
    let has_verb = words.iter().skip(1).any(|word| VERBS.iter().any(|verb| word == verb.name));
    let moved = match words.get(1..) {
        Some(rest) if !has_verb => format!(": numa {first} {}", quoted(rest)),
        _ => String::new(),
    };
    Some(format!("'{name}' is an option of {}{moved}", shown.join(", ")))
}

fn no_verb(word: &str) -> String {
    match Path::new(word).is_file() {
        true => format!("'numa show {word}' shows a recording or a result; 'numa ./{word}' runs a program"),
        false => "no program has this name either; 'numa help more' lists the verbs".to_owned(),
    }
}
