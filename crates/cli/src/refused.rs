//! What works where running processes may not be observed: the exact commands, first those that need no root.

use anyhow::anyhow;
use numakit_explain::UNKNOWN_ARGUMENTS;
use numakit_observation::samples::SamplesError;
use numakit_processes::{ChosenProcesses, start_line};
use numakit_sys::SysRoot;
use numakit_sys::command::quoted;
use numakit_sys::permissions::Surroundings;
use std::ffi::OsString;

/// Digits of the number of a container that are printed.
const DIGITS: usize = 12;

/// The error, with what works instead.
pub fn of_running(error: &SamplesError, chosen: &ChosenProcesses) -> anyhow::Error {
    let start =
        chosen.numbers().first().and_then(|pid| start_line(&SysRoot::host(), *pid, UNKNOWN_ARGUMENTS));
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (why, fix) = match error {
        SamplesError::NoMethod(none) => (none.why(), Some(none.fix.to_string())),
        other => (other.to_string(), None),
    };
    let works = instead(Surroundings::own(), &quoted(&words), start.as_deref());
    let all: Vec<String> = [Some(why)].into_iter().chain(works).chain([fix]).flatten().collect();
    anyhow!(all.join("; "))
}

/// `words` are those of this command line, `start` is how the program was started.
fn instead(surroundings: &Surroundings, words: &str, start: Option<&str>) -> [Option<String>; 2] {
    let start = start.unwrap_or("./app");
    let starts = format!("a program that numa starts is observed without that: numa explain {start}");
    if surroundings.runtime.is_container() {
        let id = surroundings.container.as_deref();
        let id = id.and_then(|number| number.get(..DIGITS)).unwrap_or("ID");
        return [Some(starts), Some(format!("from the host: sudo numa explain --container {id} --for 10s"))];
    }
    let sudo = if surroundings.has_sudo { "this one: sudo" } else { "this one, as root:" };
    let as_root = (!surroundings.is_root).then(|| format!("{sudo} numa {words}"));
    [Some(starts), as_root]
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sys::permissions::Runtime;

    #[test]
    fn what_needs_no_root_comes_first_and_a_container_gets_the_command_of_its_host() {
        let said = |surroundings: &Surroundings, start| {
            instead(surroundings, "explain --pid 7", start).map(Option::unwrap_or_default)
        };
        let without = "a program that numa starts is observed without that: numa explain";
        let user = Surroundings { has_sudo: true, ..Surroundings::default() };
        let both = said(&user, Some("./db -x"));
        assert_eq!(both, [format!("{without} ./db -x"), "this one: sudo numa explain --pid 7".to_owned()]);
        let [first, second] = said(&Surroundings::default(), None);
        assert_eq!(
            (first, second.as_str()),
            (format!("{without} ./app"), "this one, as root: numa explain --pid 7")
        );
        let root = Surroundings { is_root: true, ..Surroundings::default() };
        assert_eq!(said(&root, None)[1], "");
        let container = Some("0123456789abcdef".repeat(4));
        let contained = Surroundings { runtime: Runtime::Docker, container, ..root };
        let from_host = "from the host: sudo numa explain --container 0123456789ab --for 10s";
        assert_eq!(said(&contained, None)[1], from_host);
    }
}
