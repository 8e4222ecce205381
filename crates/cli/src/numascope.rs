//! Translates the command line of NUMAscope to `numa stat`, `numa record` or `numa live`.

use crate::originals::Translation;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, value_parser};
use std::ffi::OsString;

const ABOUT: &str = "Show or record what a NUMA machine does, with the options of NUMAscope";

const LONG_ABOUT: &str = "\
Show or record what a NUMA machine does, with the options of NUMAscope

The command line is translated into a 'numa' command line, which -verbose prints. Options may begin with one \
dash or two and come before the mode. Control commands are also read from /run/numascope-ctl when run \
as root.";

/// NUMAscope's default events of `stat`.
const EVENTS: &str = "pgfault,pgalloc_normal,pgfree,numa_local,n2VicBlkXSent,n2RdBlkXSent,n2RdBlkModSent,\
                      n2ChangeToDirtySent,n2BcastProbeCmdSent,n2RdRespSent,n2ProbeRespSent";

/// Modes and their help.
const MODES: [(&str, &str); 3] =
    [("stat", "Show a table in the terminal"), ("record", "Record to a file"), ("live", "Show a web page")];

/// The definition of its command line.
pub fn command() -> Command {
    let value = |name: &'static str, placeholder: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(placeholder).help(help)
    };
    let events = "Comma-separated events; unavailable ones are dropped with a message [default: those \
                  of NUMAscope for stat, those of 'numa' for record and live]";
    let filename = "The recording; NUMAscope's JSON if the name ends in .json. If the file exists, the \
                    next free name of FILE_1, FILE_2, ... is used";
    let modes = MODES.map(|(name, help)| PossibleValue::new(name).help(help));
    Command::new("numascope")
        .about(ABOUT)
        .long_about(LONG_ABOUT)
        .args_override_self(true)
        .max_term_width(100)
        .arg(value("events", "LIST", events).value_parser(value_parser!(OsString)))
        .arg(
            value("interval", "MS", "Milliseconds between two samples, from 1 to 3600000")
                .default_value("100")
                .value_parser(milliseconds),
        )
        .arg(switch("discrete", "Show each instance of an event instead of their sum"))
        .arg(switch("list", "List the available events"))
        .arg(
            value("filename", "FILE", filename)
                .default_value("output.json")
                .value_parser(value_parser!(OsString)),
        )
        .arg(switch("overwrite", "Replace the recording if it exists"))
        .arg(value("listenAddr", "ADDRESS:PORT", "Where 'live' listens").default_value("127.0.0.1:7077"))
        .arg(switch("debug", "Print which sensors are available, why others are not, and what is sampled"))
        .arg(switch("verbose", "Print the 'numa' command").short('v'))
        .arg(
            Arg::new("mode")
                .value_name("MODE")
                .help("What to do")
                .value_parser(PossibleValuesParser::new(modes)),
        )
        .arg(
            Arg::new("command")
                .value_name("CMD")
                .help("A command to run and observe, with its arguments")
                .num_args(0..)
                .value_parser(value_parser!(OsString)),
        )
}

/// A switch: without a value it is on. The values are those of Go's package `flag`.
fn switch(name: &'static str, help: &'static str) -> Arg {
    let values = [
        PossibleValue::new("true").aliases(["1", "t", "T", "TRUE", "True"]),
        PossibleValue::new("false").aliases(["0", "f", "F", "FALSE", "False"]),
    ];
    Arg::new(name)
        .long(name)
        .help(help)
        .num_args(0..=1)
        .require_equals(true)
        .default_value("false")
        .default_missing_value("true")
        .hide_default_value(true)
        .hide_possible_values(true)
        .value_name("BOOL")
        .value_parser(PossibleValuesParser::new(values).map(|word| word.starts_with(['1', 't', 'T'])))
}

fn milliseconds(word: &str) -> Result<u64, &'static str> {
    match word.parse() {
        Ok(ms @ 1..=3_600_000) => Ok(ms),
        _ => Err("give a number of milliseconds from 1 to 3600000"),
    }
}

/// Translates its arguments.
pub fn translate(words: Vec<OsString>) -> Result<Translation, clap::Error> {
    let program = OsString::from("numascope");
    let line = command().try_get_matches_from([program].into_iter().chain(with_two_dashes(words)))?;
    let on = |name| line.get_one(name).is_some_and(|on: &bool| *on);
    let shown = on("verbose") || on("debug");
    if on("list") {
        return Ok(Translation::of("list", shown));
    }
    let Some(mode) = line.get_one::<String>("mode") else {
        let text = "no mode given; give stat, record or live";
        return Err(command().error(ErrorKind::MissingRequiredArgument, text));
    };
    let interval = line.get_one::<u64>("interval").map(|ms| format!("{ms}ms"));
    let default_events = (mode == "stat").then(|| EVENTS.into());
    let numa = Translation::of(mode, shown)
        .value("--interval", interval)
        .value("--events", line.get_one::<OsString>("events").cloned().or(default_events))
        .option_if(mode != "live" && !on("discrete"), "--per=machine");
    let numa = match mode.as_str() {
        "stat" => numa.option("--numascope-table"),
        "record" => numa
            .value("--output", line.get_one::<OsString>("filename"))
            .option_if(on("overwrite"), "--force")
            .option("--numascope-names"),
        _ => numa.value("--listen", line.get_one("listenAddr").map(address)),
    };
    let command = line.get_many("command").into_iter().flatten().cloned();
    Ok(numa
        .option("--skip-unavailable")
        .option("--ctl-compat=auto")
        .option_if(on("debug"), "--verbose")
        .command(command))
}

/// `:PORT` means all addresses in NUMAscope; `numa` needs an explicit address.
fn address(address: &String) -> String {
    if address.starts_with(':') { format!("127.0.0.1{address}") } else { address.clone() }
}

/// Converts options to two dashes. Go accepts one or two, up to the first other word, and takes any
/// word after an option as its value.
fn with_two_dashes(words: Vec<OsString>) -> Vec<OsString> {
    let definition = command();
    let mut read = Vec::with_capacity(words.len() + 1);
    let mut words = words.into_iter().peekable();
    let mut mode = None;
    while let Some(word) = words.next() {
        let text = word.to_string_lossy().into_owned();
        let Some(option) = text.strip_prefix('-').filter(|option| !option.is_empty()) else {
            mode = Some(word);
            break;
        };
        if option == "-" {
            break;
        }
        let option = option.strip_prefix('-').unwrap_or(option);
        let (name, attached) = option.split_once('=').map_or((option, false), |(name, _)| (name, true));
        let dashes = if name.len() > 1 { "--" } else { "-" };
        let mut full = OsString::from(format!("{dashes}{option}"));
        let takes_value = definition
            .get_arguments()
            .any(|arg| arg.get_long() == Some(name) && !arg.is_require_equals_set());
        if let Some(value) = words.next_if(|_| takes_value && !attached) {
            full.push("=");
            full.push(value);
        }
        read.push(full);
    }
    read.push("--".into());
    read.extend(mode);
    read.extend(words);
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(text: &str) -> Result<String, clap::Error> {
        let line = translate(text.split_whitespace().map(OsString::from).collect())?;
        Ok(line.words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn numascope_lines_are_translated() {
        command().debug_assert();
        let compatible = "--skip-unavailable --ctl-compat=auto";
        for (line, expected) in [
            (
                "-events pgfault,numa_hit -interval=10 --discrete -overwrite -filename f.json record ls -l",
                format!(
                    "record --interval=10ms --events=pgfault,numa_hit --output=f.json --force \
                     --numascope-names {compatible} -- ls -l"
                ),
            ),
            (
                "record",
                format!(
                    "record --interval=100ms --per=machine --output=output.json --numascope-names {compatible}"
                ),
            ),
            (
                "-interval 5 -- stat ls",
                format!(
                    "stat --interval=5ms --events={EVENTS} --per=machine --numascope-table {compatible} -- ls"
                ),
            ),
            (
                "-debug -events -x -discrete=T stat -v",
                format!("stat --interval=100ms --events=-x --numascope-table {compatible} --verbose -- -v"),
            ),
            ("-listenAddr :80 live", format!("live --interval=100ms --listen=127.0.0.1:80 {compatible}")),
            (
                "-listenAddr 0.0.0.0:80 -listenAddr=[::1]:81 -debug=0 live",
                format!("live --interval=100ms --listen=[::1]:81 {compatible}"),
            ),
            ("-list", "list".to_owned()),
            ("-v -list stat", "list".to_owned()),
        ] {
            assert_eq!(translated(line).unwrap(), format!("numa {expected}"), "{line}");
        }
    }

    #[test]
    fn words_that_are_not_utf8_are_kept() {
        use std::os::unix::ffi::OsStringExt;
        let name = OsString::from_vec(vec![b'f', 0xff]);
        let line = translate(vec!["-filename".into(), name.clone(), "record".into(), name.clone()]).unwrap();
        let mut output = OsString::from("--output=");
        output.push(&name);
        assert!(line.words.contains(&output) && line.words.last() == Some(&name), "{line:?}");
    }

    #[test]
    fn the_command_is_shown_on_request() {
        let shown = |text: &str| translate(text.split(' ').map(OsString::from).collect()).unwrap().shown;
        assert!(shown("-v stat") && shown("--verbose stat") && shown("-debug stat") && shown("-v -list"));
        assert!(!shown("stat -v") && !shown("-verbose=false stat"));
    }

    #[test]
    fn invalid_lines_are_refused() {
        for (text, word) in [
            ("-interval 0 stat", "from 1 to 3600000"),
            ("-interval x stat", "from 1 to 3600000"),
            ("-interval", "--interval"),
            ("-nonsense stat", "--nonsense"),
            ("-events", "--events"),
            ("-debug=maybe stat", "'maybe'"),
            ("dance", "[possible values: stat, record, live]"),
            ("- stat", "'-'"),
            ("-debug", "stat, record or live"),
        ] {
            let error = translated(text).unwrap_err();
            assert!(error.use_stderr() && error.to_string().contains(word), "{text}: {error}");
        }
        for help in ["-h", "-help", "--help"] {
            let answer = translated(help).unwrap_err();
            assert!(!answer.use_stderr() && answer.to_string().contains("--listenAddr"), "{answer}");
        }
    }
}
