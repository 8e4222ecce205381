//! The command line of the original NUMAscope, for `numa` called by that name.

use crate::Global;
use crate::observe::Observe;
use crate::to_file::{self, Existing};
use crate::verbs;
use anyhow::{Context, bail};
use numakit_export::{Options, Source, Values};
use numakit_sensors::Selection;
use numakit_session::Recorded;
use numakit_session::names::json_of;
use numakit_sys::stdio::{print, say};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// What the original prints for a wrong command line, in our words.
pub const USAGE: &str = "\
usage: numascope [OPTION]... stat|record|live [CMD [ARG]...]
  -events A,B      what to sample; what is not to be had here is dropped, with a word
                   (default: everything for record and live, the original's selection for stat)
  -interval MS     milliseconds between two samples, 1 to 3600000 (default 100)
  -discrete        each instance by itself instead of sums
  -list            list what can be sampled
  -filename F      the recording; a name that ends in .json gets the original's format
  -overwrite       replace the recording if it exists; without it the next free name of F_1, F_2, ...
  -listenAddr A    where 'live' listens (default 127.0.0.1:7077)
  -debug           say which sensors there are, why others are not, and what is sampled
orders are taken at /run/numascope-ctl when run as root; all else is in 'numa --help'";

/// What the original shows without being asked.
const EVENTS: &str = "pgfault,pgalloc_normal,pgfree,numa_local,n2VicBlkXSent,n2RdBlkXSent,n2RdBlkModSent,\
                      n2ChangeToDirtySent,n2BcastProbeCmdSent,n2RdRespSent,n2ProbeRespSent";

/// The options as they stand on the line.
#[derive(Debug, Default, PartialEq)]
struct Line {
    events: Option<String>,
    interval: Option<u64>,
    discrete: bool,
    list: bool,
    debug: bool,
    help: bool,
    filename: Option<PathBuf>,
    overwrite: bool,
    listen: Option<String>,
    verb: Option<String>,
    command: Vec<OsString>,
}

/// Runs such a command line (without the program's name).
pub fn run(words: impl Iterator<Item = OsString>) -> anyhow::Result<ExitCode> {
    let line = Line::parse(words)?;
    let global = Global::host();
    if line.help {
        return answer(USAGE);
    }
    if line.list {
        return verbs::list::List::default().run(&global);
    }
    let usual = (line.verb.as_deref() == Some("stat")).then_some(EVENTS);
    let events = line.events.as_deref().or(usual).map(str::parse::<Selection>).transpose()?;
    let observe = Observe::original(events, line.debug);
    let interval = Duration::from_millis(line.interval.unwrap_or(100));
    match line.verb.as_deref() {
        Some("stat") => {
            verbs::stat::Stat::original(interval, line.discrete, observe, line.command).run(&global)
        }
        Some("record") => record(line, interval, observe, &global),
        Some("live") => {
            verbs::live::Live::original(line.listen, interval, observe, line.command)?.run(&global)
        }
        Some(other) => bail!("unknown mode '{other}'; it is stat, record or live\n{USAGE}"),
        None => bail!("no mode given; it is stat, record or live\n{USAGE}"),
    }
}

/// Writes to standard output.
fn answer(text: &str) -> anyhow::Result<ExitCode> {
    print(format_args!("{text}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Records; into the original's format when the file's name asks for it.
fn record(line: Line, interval: Duration, observe: Observe, global: &Global) -> anyhow::Result<ExitCode> {
    let file = line.filename.unwrap_or_else(|| "output.json".into());
    verbs::record::Record::original(
        Some(file),
        line.overwrite,
        interval,
        line.discrete,
        observe,
        line.command,
    )
    .run(global)
}

/// Makes the original's format of those recordings that are to have it. False, and a word each,
/// where that fails: then the recording is kept as it was made.
pub fn convert(recorded: &mut [Recorded], overwrite: bool) -> bool {
    let mut all = true;
    for one in recorded {
        let Some(json) = json_of(&one.path) else { continue };
        match converted(&one.path, &json, Existing::forced(overwrite)) {
            Ok(bytes) => {
                let _ = std::fs::remove_file(&one.path);
                (one.path, one.bytes) = (json, bytes);
            }
            Err(error) => {
                say(format_args!("numascope: {error:#}; the recording is kept as {}\n", one.path.display()));
                all = false;
            }
        }
    }
    all
}

fn converted(from: &Path, to: &Path, existing: Existing) -> anyhow::Result<u64> {
    let format = numakit_export::format("numascope").context("no such format")?;
    let options = Options { values: Values::Rates, all: true };
    let mut source = Source::open(from)?;
    to_file::write(to, existing, "it came while this was recorded", |to| {
        Ok((format.write)(&mut source, options, to)?)
    })?;
    Ok(std::fs::metadata(to)?.len())
}

impl Line {
    /// Options come first, with one dash or two, their value behind `=` or as the next word;
    /// `--` ends them.
    fn parse(words: impl Iterator<Item = OsString>) -> anyhow::Result<Self> {
        let mut line = Self::default();
        let mut words = words.peekable();
        while let Some(word) = words.next() {
            let text = word.to_string_lossy().into_owned();
            let Some(option) = text.strip_prefix('-').filter(|o| !o.is_empty() && line.verb.is_none()) else {
                line.verb = Some(text);
                line.command = words.collect();
                break;
            };
            let option = option.strip_prefix('-').unwrap_or(option);
            if option.is_empty() {
                line.verb = words.next().map(|word| word.to_string_lossy().into_owned());
                line.command = words.collect();
                break;
            }
            let (name, attached) =
                option.split_once('=').map_or((option, None), |(n, v)| (n, Some(v.to_owned())));
            let mut value = || {
                let next = || words.next().map(|w| w.to_string_lossy().into_owned());
                attached.clone().or_else(next).with_context(|| format!("-{name} needs a value\n{USAGE}"))
            };
            match name {
                "events" => line.events = Some(value()?),
                "interval" => line.interval = Some(milliseconds(&value()?)?),
                "filename" => line.filename = Some(value()?.into()),
                "listenAddr" => line.listen = Some(value()?),
                "discrete" => line.discrete = switch(name, attached.as_deref())?,
                "list" => line.list = switch(name, attached.as_deref())?,
                "overwrite" => line.overwrite = switch(name, attached.as_deref())?,
                "debug" => line.debug = switch(name, attached.as_deref())?,
                "h" | "help" => line.help = true,
                _ => bail!("unknown option '-{name}'\n{USAGE}"),
            }
        }
        Ok(line)
    }
}

/// A switch without a value is on; the values are those of the original.
fn switch(name: &str, value: Option<&str>) -> anyhow::Result<bool> {
    match value {
        None | Some("1" | "t" | "T" | "true" | "TRUE" | "True") => Ok(true),
        Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Ok(false),
        Some(other) => bail!("-{name}={other} is neither true nor false\n{USAGE}"),
    }
}

fn milliseconds(text: &str) -> anyhow::Result<u64> {
    match text.parse() {
        Ok(ms @ 1..=3_600_000) => Ok(ms),
        _ => bail!("-interval '{text}' is not a number of milliseconds from 1 to 3600000"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> anyhow::Result<Line> {
        Line::parse(text.split_whitespace().map(OsString::from))
    }

    #[test]
    fn lines_of_the_original_are_read() {
        let line = parse(
            "-events pgfault,numa_hit -interval=10 --discrete -overwrite -filename f.json record ls -l",
        )
        .unwrap();
        let expected = Line {
            events: Some("pgfault,numa_hit".into()),
            interval: Some(10),
            discrete: true,
            filename: Some("f.json".into()),
            overwrite: true,
            verb: Some("record".into()),
            command: vec!["ls".into(), "-l".into()],
            ..Line::default()
        };
        assert_eq!(line, expected);
        assert!(parse("-list").unwrap().list);
        assert!(parse("-debug stat").unwrap().debug && !parse("-debug=0 stat").unwrap().debug);
        assert!(parse("-help").unwrap().help);
        let line = parse("-interval 5 -- stat ls").unwrap();
        assert_eq!((line.verb.as_deref(), line.command.len()), (Some("stat"), 1));
        assert_eq!(parse("-listenAddr 0.0.0.0:80 live").unwrap().verb.as_deref(), Some("live"));
    }

    #[test]
    fn wrong_lines_are_refused() {
        for text in [
            "-interval 0 stat",
            "-interval x stat",
            "-interval",
            "-nonsense stat",
            "-events",
            "-debug=maybe stat",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
