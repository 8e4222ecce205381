//! The words of a command line before the verb reads them: which verb is meant where none is named, and names that verbs had.

use crate::VERBS;
use numakit_sys::executable;
use std::ffi::{OsStr, OsString};

/// What `numa` without words runs.
const WITHOUT_WORDS: &str = "overview";
/// What `numa ./app` runs.
const OF_PROGRAMS: &str = "explain";

/// A name that a verb had.
#[derive(Debug)]
pub struct FormerName {
    /// The name.
    pub name: &'static str,
    /// What replaces it.
    pub now: &'static [&'static str],
    /// What becomes of the words after it.
    rest: fn(&[OsString]) -> Vec<OsString>,
}

/// Names that verbs had.
pub const FORMER_NAMES: [FormerName; 6] = [
    former("report", &["show"]),
    former("view", &["show", "--page"]),
    former("tasks", &["top", "--once"]),
    former("alloc-profile", &["alloc"]),
    // Never a verb, but what users type.
    former("compare", &["show"]),
    FormerName { name: "alloc-stats", now: &["alloc"], rest: of_alloc_stats },
];

const fn former(name: &'static str, now: &'static [&'static str]) -> FormerName {
    FormerName { name, now, rest: <[OsString]>::to_vec }
}

/// The process had no option, and the option for JSON no file.
fn of_alloc_stats(rest: &[OsString]) -> Vec<OsString> {
    let mut words = Vec::with_capacity(rest.len() + 1);
    let mut is_value = false;
    for word in rest {
        if word == "--json" {
            words.push("--json=-".into());
            continue;
        }
        if !is_value && word.as_encoded_bytes().first().is_some_and(u8::is_ascii_digit) {
            words.push("--pid".into());
        }
        is_value = word == "-i" || word == "--interval" || WITH_VALUE.iter().any(|option| word == option);
        words.push(word.clone());
    }
    words
}

/// Global options with a value, and those without.
const WITH_VALUE: [&str; 2] = ["--sysroot", "--color"];
const WITHOUT_VALUE: [&str; 4] = ["-h", "--help", "-V", "--version"];

/// The words with a verb, where they name a program or a verb by a former name; otherwise as they are.
pub fn with_verb(words: &[OsString]) -> Vec<OsString> {
    let mut words = words.to_vec();
    if words.len() <= 1 {
        words.push(WITHOUT_WORDS.into());
        return words;
    }
    let at = match first_of_command(&words) {
        Some(First::Word(at)) => at,
        Some(First::Option(at)) => {
            let verb = match verb_behind_options(&words, at) {
                Some(place) => words.remove(place),
                None => OF_PROGRAMS.into(),
            };
            words.insert(at, verb);
            return words;
        }
        None => return words,
    };
    if let Some(former) = FORMER_NAMES.iter().find(|former| words[at] == former.name) {
        let rest = (former.rest)(&words[at + 1..]);
        words.splice(at.., former.now.iter().map(OsString::from).chain(rest));
    } else if !is_verb(&words[at]) && is_program(&words[at]) {
        // The dashes before a program say that no option follows; those before a verb are a mistake.
        let from = if words[at - 1] == "--" { at - 1 } else { at };
        words.splice(from..at, [OF_PROGRAMS.into()]);
    }
    words
}

/// What follows global options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    /// The place of a verb or a program.
    Word(usize),
    /// The place of an option that is not global.
    Option(usize),
}

/// What follows the global options of a command line, if anything does.
fn first_of_command(words: &[OsString]) -> Option<First> {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let text = word.to_string_lossy();
        let name = text.split('=').next().unwrap_or_default();
        if name == "--" {
            return words.get(at + 1).map(|_| First::Word(at + 1));
        } else if WITH_VALUE.contains(&name) {
            at += if text.contains('=') { 1 } else { 2 };
        } else if !text.starts_with('-') {
            return Some(First::Word(at));
        } else if WITHOUT_VALUE.contains(&name) {
            at += 1;
        } else {
            return Some(First::Option(at));
        }
    }
    None
}

/// The place of a verb that stands behind options instead of before them.
fn verb_behind_options(words: &[OsString], from: usize) -> Option<usize> {
    let known = VERBS.iter().find(|verb| verb.name == OF_PROGRAMS)?.parser();
    let has_value = |text: &str| {
        let option = known.get_arguments().find(|arg| match text.strip_prefix("--") {
            Some(long) => arg.get_long() == Some(long),
            None => arg.get_short().is_some_and(|short| text == format!("-{short}")),
        });
        option.is_some_and(|arg| arg.get_action().takes_values())
    };
    let mut at = from;
    while let Some(text) = words.get(at)?.to_str().filter(|text| text.starts_with('-')) {
        at += if has_value(text) { 2 } else { 1 };
    }
    is_verb(&words[at]).then_some(at)
}

fn is_verb(word: &OsStr) -> bool {
    VERBS.iter().any(|verb| word == verb.name)
}

fn is_program(word: &OsStr) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    // A path is meant as a program; if it is none, the message should say so.
    word.as_encoded_bytes().contains(&b'/') || executable::find(word, &path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> String {
        let words: Vec<OsString> = text.split(' ').map(OsString::from).collect();
        with_verb(&words).join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn a_program_is_explained_and_a_verb_stays_a_verb() {
        assert_eq!(line("numa /bin/sh -c true"), "numa explain /bin/sh -c true");
        assert_eq!(line("numa sh -c top"), "numa explain sh -c top");
        assert_eq!(line("numa --for 2s explain --name x"), "numa explain --for 2s --name x");
        assert_eq!(line("numa --all -p 7 top"), "numa top --all -p 7");
        assert_eq!(line("numa --as top sh"), "numa explain --as top sh");
        assert_eq!(line("numa --for=2s"), "numa explain --for=2s");
        assert_eq!(line("numa --color never sh"), "numa --color never explain sh");
        assert_eq!(line("numa --color=never sh"), "numa --color=never explain sh");
        assert_eq!(line("numa -- sh -x"), "numa explain sh -x");
        for verb in
            ["numa top", "numa run sh", "numa --color never stat", "numa --help", "numa no-such-program-here"]
        {
            assert_eq!(line(verb), verb);
        }
    }

    #[test]
    fn former_names_are_no_verbs_and_lead_to_verbs() {
        for FormerName { name, now, .. } in FORMER_NAMES {
            assert!(!is_verb(OsStr::new(name)) && is_verb(OsStr::new(now[0])), "{name}");
            assert_eq!(line(&format!("numa {name} x")), format!("numa {} x", now.join(" ")));
        }
        for (former, now) in [
            ("alloc-stats 4711", "alloc --pid 4711"),
            ("alloc-stats -i 1s 4711 --json", "alloc -i 1s --pid 4711 --json=-"),
            ("alloc-stats --json 4711 --interval 2s", "alloc --json=- --pid 4711 --interval 2s"),
            ("--color never alloc-stats -i100ms 4711", "--color never alloc -i100ms --pid 4711"),
        ] {
            assert_eq!(line(&format!("numa {former}")), format!("numa {now}"));
        }
    }
}
