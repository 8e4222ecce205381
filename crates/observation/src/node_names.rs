//! Names of JavaScript functions, which Node.js writes only if it is asked at its start.

use numakit_explain::runtime::is_node;
use numakit_launch::Program;
use std::ffi::{OsStr, OsString};

/// The variable with options, and the option. Those that a user has set stay.
const VARIABLE: &str = "NODE_OPTIONS";
const OPTION: &str = "--perf-basic-prof";
/// What makes Node.js write names; one of these in its command is the user's wish.
const ASKED: [&str; 2] = ["--perf-basic-prof", "--perf_basic_prof"];

/// The variable with which a command writes `/tmp/perf-PID.map`; `None` if it is another program, or writes it already.
pub(crate) fn variable(words: &[OsString]) -> Option<(OsString, OsString)> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let program = Program::find(words.first()?, &path).ok()?.code;
    let program = program.canonicalize().ok()?;
    let is_node = program.file_name().and_then(OsStr::to_str).is_some_and(is_node);
    let set = std::env::var_os(VARIABLE);
    if is_node { options(words, set.as_deref()) } else { None }.map(|options| (VARIABLE.into(), options))
}

/// The options with ours; `None` where ours is among them or in the command.
fn options(words: &[OsString], set: Option<&OsStr>) -> Option<OsString> {
    let asks = |word: &OsStr| ASKED.iter().any(|asked| word.to_string_lossy().contains(asked));
    if words.iter().any(|word| asks(word)) || set.is_some_and(asks) {
        return None;
    }
    let mut options = set.unwrap_or_default().to_owned();
    if !options.is_empty() {
        options.push(" ");
    }
    options.push(OPTION);
    Some(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_user_stay() {
        let of = |command: &str, set: Option<&str>| {
            let words: Vec<OsString> = command.split(' ').map(OsString::from).collect();
            options(&words, set.map(OsStr::new)).map(|options| options.into_string().unwrap())
        };
        assert_eq!(of("node app.js", None).as_deref(), Some("--perf-basic-prof"));
        let set = Some("--max-old-space-size=100");
        assert_eq!(of("node app.js", set).as_deref(), Some("--max-old-space-size=100 --perf-basic-prof"));
        assert_eq!(of("node app.js", Some("--perf-basic-prof")), None);
        assert_eq!(of("node --perf-basic-prof-only-functions app.js", None), None);
    }

    #[test]
    fn other_programs_keep_their_environment() {
        assert_eq!(variable(&["sh".into(), "node".into()]), None);
        assert_eq!(variable(&["/no/such/program".into()]), None);
        assert_eq!(variable(&[]), None);
    }
}
