//! What is added to clap's messages about mistakes: the command that was meant.

use crate::{Verb, command, listed_verbs};
use clap::ArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use numakit_sys::command::quoted;
use std::ffi::OsString;
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

/// What is wrong with the words of a program, of which one is an option of the verb that ran it; `None` if none is.
pub fn option_of_program(verb: &Verb, matches: &ArgMatches) -> Option<String> {
    let words: Vec<&OsString> = matches.try_get_many::<OsString>("command").ok()??.collect();
    let defined = verb.parser();
    let meant = |word: &&OsString| {
        let name = word.to_str()?.strip_prefix("--")?.split('=').next()?;
        defined.get_arguments().find(|arg| !arg.is_hide_set() && arg.get_long() == Some(name))
    };
    let at = words.iter().skip(1).position(|word| meant(word).is_some())? + 1;
    let has_value =
        meant(&words[at])?.get_action().takes_values() && !words[at].as_encoded_bytes().contains(&b'=');
    let end = (at + 1 + usize::from(has_value)).min(words.len());
    let option = quoted(&words[at..end]);
    Some(format!(
        "{program} got the option {option}, which stands after it; options of 'numa {verb}' come first: numa {verb} {option} \
         {command}",
        program = quoted(&words[..1]),
        verb = verb.name,
        command = quoted(&[&words[..at], &words[end..]].concat()),
    ))
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Command;

    fn said(line: &str) -> Option<String> {
        let words: Vec<&str> = line.split(' ').collect();
        let verb = crate::VERBS.iter().find(|verb| verb.name == words[0]).unwrap();
        let matches =
            Command::new("numa").subcommand(verb.parser()).get_matches_from([&["numa"], &words[..]].concat());
        option_of_program(verb, matches.subcommand().unwrap().1)
    }

    #[test]
    fn an_option_that_the_program_got_is_put_before_it() {
        let words = said("explain ./app 7 --for 2s -x").unwrap();
        assert!(words.ends_with(" first: numa explain --for 2s ./app 7 -x"), "{words}");
        let words = said("record ./app --output=a.arrows").unwrap();
        assert!(words.ends_with(" first: numa record --output=a.arrows ./app"), "{words}");
        let words = said("explain ./app --all -x").unwrap();
        assert!(words.ends_with(" first: numa explain --all ./app -x"), "{words}");
        for other in ["explain --for 2s ./app 7", "run ./app --of-its-own", "explain --pid 7"] {
            assert_eq!(said(other), None, "{other}");
        }
    }
}
