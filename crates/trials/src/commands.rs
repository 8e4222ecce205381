//! The command line of a setting, and the setting of a command line.

use numakit_sys::command::quoted;
use numakit_tune::candidates::TuneSetting;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// A command line: variables, and words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialCommand {
    /// Names and values of variables.
    pub variables: Vec<(OsString, OsString)>,
    /// The program and its arguments.
    pub words: Vec<OsString>,
}

/// The words of a command that a user gave as one text: a shell runs what only a shell understands.
pub fn words_of_line(line: &str) -> Vec<OsString> {
    let needs_shell = line.chars().any(|letter| "|&;<>()$`*?[]{}~#\n".contains(letter))
        || line.split_ascii_whitespace().next().is_some_and(|first| first.contains('='));
    match shlex::split(line).filter(|words| !words.is_empty() && !needs_shell) {
        Some(words) => words.into_iter().map(OsString::from).collect(),
        None => ["sh", "-c", line].map(OsString::from).to_vec(),
    }
}

/// The command that runs a program with a setting. `numa` is the word by which this program is started.
pub fn command_of(setting: &TuneSetting, program: &[OsString], numa: &OsStr) -> TrialCommand {
    let variables = setting.environment();
    let variable = |(name, value): &(&str, &str)| (OsString::from(name), OsString::from(value));
    let mut words = Vec::new();
    if setting.is_placed() {
        words.extend([numa.to_owned(), "run".into()]);
        words.extend(setting.words().into_iter().map(OsString::from));
        // A program may begin with a hyphen.
        words.extend(
            program.first().filter(|first| first.as_encoded_bytes().starts_with(b"-")).map(|_| "--".into()),
        );
    }
    words.extend_from_slice(program);
    TrialCommand { variables: variables.iter().map(variable).collect(), words }
}

/// The same as it is typed, with what changes the machine before it.
pub fn typed(setting: &TuneSetting, program: &[OsString]) -> String {
    let TrialCommand { variables, words } = command_of(setting, program, OsStr::new("numa"));
    let machine = setting.machine().into_iter().map(|(file, value)| format!("echo {value} >{file} && "));
    let variables = variables.iter().map(|(name, value)| format!("{}={} ", name.display(), quoted(&[value])));
    machine.chain(variables).collect::<String>() + &quoted(&words)
}

/// The name of a variable, and its value.
type Variable = (String, String);

/// Variables before a command, and the words behind them.
fn split(line: &str) -> Option<(Vec<Variable>, Vec<String>)> {
    let mut words = shlex::split(line)?;
    let variable = |word: &String| {
        let (name, value) = word.split_once('=')?;
        let is_name = !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
        is_name.then(|| (name.to_owned(), value.to_owned()))
    };
    let variables: Vec<(String, String)> = words.iter().map_while(variable).collect();
    words.drain(..variables.len());
    Some((variables, words))
}

/// The setting of options of `numa run`, with variables before them; `None` for neither.
pub fn setting_of_words(line: &str) -> Option<TuneSetting> {
    let (variables, words) = split(line)?;
    let is_option = words.first().is_none_or(|word| word.starts_with('-'));
    let run = (!words.is_empty()).then_some(words.as_slice());
    (is_option && !(words.is_empty() && variables.is_empty())).then(|| TuneSetting::typed(&variables, run))
}

/// The setting that a command gives to a program; `None` for a command of another kind, such as one of a shell.
pub fn setting_of(command: &str, program: &[OsString]) -> Option<TuneSetting> {
    let (variables, words) = split(command)?;
    let before = words.len().checked_sub(program.len())?;
    let (run, rest) = words.split_at(before);
    if !rest.iter().zip(program).all(|(word, wanted)| OsStr::new(word) == wanted) {
        return None;
    }
    match run {
        [] => (!variables.is_empty()).then(|| TuneSetting::typed(&variables, None)),
        [numa, verb, words @ ..]
            if Path::new(numa).file_name() == Some(OsStr::new("numa")) && verb == "run" =>
        {
            let words: Vec<String> = words.iter().filter(|word| *word != "--").cloned().collect();
            Some(TuneSetting::typed(&variables, Some(&words)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_tune::candidates::TuneOption;

    fn words(line: &str) -> Vec<OsString> {
        words_of_line(line)
    }

    #[test]
    fn a_line_goes_to_the_shell_only_if_it_must() {
        assert_eq!(words("./app 'a b' c"), ["./app", "a b", "c"]);
        for line in ["./app | sort", "A=1 ./app", "cd /tmp && ./app", "./app $HOME", "./app 'open"] {
            assert_eq!(words(line), ["sh", "-c", line]);
        }
    }

    #[test]
    fn commands_and_settings_are_each_others_inverse() {
        let program = words("./app -n '3 4'");
        for line in [
            "numa run --thp on ./app -n '3 4'",
            "numa run --apply app.cure ./app -n '3 4'",
            "numa run ./app -n '3 4'",
            "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 ./app -n '3 4'",
            "JDK_JAVA_OPTIONS='-XX:+UseNUMA -Xmx1g' numa run -c 4 --memory interleave ./app -n '3 4'",
        ] {
            let setting = setting_of(line, &program).unwrap();
            assert_eq!(typed(&setting, &program), line);
        }
        let thp = setting_of("numa run --thp on ./app", &words("./app")).unwrap();
        assert_eq!(thp.options(), [TuneOption::HugePages]);
        for other in
            ["./app", "numa move --pid 3", "echo always >/sys/x && ./app", "numa run --thp on ./other"]
        {
            assert_eq!(setting_of(other, &words("./app")), None, "{other}");
        }
    }

    #[test]
    fn settings_are_given_as_options_and_variables() {
        let typed_with = |line| setting_of_words(line).map(|setting| typed(&setting, &words("./app")));
        assert_eq!(
            typed_with("--apply a.cure --thp on").as_deref(),
            Some("numa run --apply a.cure --thp on ./app")
        );
        assert_eq!(
            typed_with("OMP_NUM_THREADS=4 -c 4").as_deref(),
            Some("OMP_NUM_THREADS=4 numa run -c 4 ./app")
        );
        assert_eq!(typed_with("--thp=on").as_deref(), Some("numa run --thp on ./app"));
        assert_eq!(typed_with("A='b c'").as_deref(), Some("A='b c' ./app"));
        assert_eq!([typed_with(""), typed_with("./other"), typed_with("'open")], [None, None, None]);
    }

    #[test]
    fn a_setting_of_the_machine_is_typed_before_the_program() {
        let option = TuneOption::Machine("/sys/x".into(), "always".into());
        let setting = TuneSetting::default().with(&option).unwrap();
        assert_eq!(typed(&setting, &words("./app")), "echo always >/sys/x && ./app");
        assert!(!setting.is_placed());
    }
}
