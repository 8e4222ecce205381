//! The command line of the original numaplace, for `numa` called by that name.

use crate::Global;
use crate::verbs::run::Run;
use anyhow::{Context, bail};
use numakit_sys::stdio::print;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::ExitCode;

/// What the original prints for a wrong command line, in our words.
pub const USAGE: &str = "\
usage: numaplace [-atvVdp] [-c CORES] CMD [ARG]...
  -a        no NUMA allocator (there is none here: accepted)
  -c CORES  so many cores (default: all that are free)
  -d        tell why each core was chosen, and all that -v tells
  -p        leave the main thread on all cores
  -t        transparent huge pages off
  -v        tell which cores were chosen, and what was set
  -V        print the version
all else is in 'numa run --help'";

/// The options as they stand on the line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Cores; all that are free without.
    pub cores: Option<String>,
    /// Tell why.
    pub debug: bool,
    /// Leave the main thread alone.
    pub parent_free: bool,
    /// Huge pages off.
    pub no_huge_pages: bool,
    /// Tell what.
    pub verbose: bool,
    version: bool,
    /// The program with its arguments.
    pub command: Vec<OsString>,
}

/// Runs such a command line (without the program's name).
pub fn run(words: impl Iterator<Item = OsString>) -> anyhow::Result<ExitCode> {
    let line = Line::parse(words)?;
    if line.version {
        print(format_args!("numaplace {} (numakit)\n", env!("CARGO_PKG_VERSION")))?;
        return Ok(ExitCode::SUCCESS);
    }
    if line.command.is_empty() {
        bail!("no program given\n{USAGE}");
    }
    Run::original(line)?.run(&Global::host())
}

impl Line {
    /// Letters may stand together behind one dash; what is no option begins the command.
    fn parse(words: impl Iterator<Item = OsString>) -> anyhow::Result<Self> {
        let mut line = Self::default();
        let mut words = words.peekable();
        while let Some(word) = words.next_if(|word| word.len() > 1 && word.as_bytes().starts_with(b"-")) {
            if word == "--" {
                break;
            }
            let letters = &word.as_bytes()[1..];
            for (at, letter) in letters.iter().enumerate() {
                match letter {
                    b'a' => {}
                    b'd' => line.debug = true,
                    b'p' => line.parent_free = true,
                    b't' => line.no_huge_pages = true,
                    b'v' => line.verbose = true,
                    b'V' => line.version = true,
                    b'c' => {
                        let rest = OsString::from_vec(letters[at + 1..].to_vec());
                        let value = if rest.is_empty() { words.next() } else { Some(rest) };
                        let value = value.with_context(|| format!("-c needs a number of cores\n{USAGE}"))?;
                        line.cores = Some(value.to_string_lossy().into_owned());
                        break;
                    }
                    _ => bail!("unknown option '{}' in '{}'\n{USAGE}", char::from(*letter), word.display()),
                }
            }
        }
        line.command = words.collect();
        Ok(line)
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
        let line = parse("-atv -c 6 ./app -c 7 -- x").unwrap();
        let expected = Line {
            cores: Some("6".into()),
            no_huge_pages: true,
            verbose: true,
            command: ["./app", "-c", "7", "--", "x"].map(OsString::from).to_vec(),
            ..Line::default()
        };
        assert_eq!(line, expected);
        assert_eq!(parse("-dpc12 app").unwrap().cores.as_deref(), Some("12"));
        let line = parse("-d -p -- -app").unwrap();
        assert!(line.debug && line.parent_free && line.command == ["-app"]);
        assert!(parse("-V").unwrap().version);
        assert_eq!(parse("- x").unwrap().command, ["-", "x"]);
    }

    #[test]
    fn wrong_lines_are_refused() {
        for text in ["-x app", "-c", "-vz app", "--help"] {
            assert!(parse(text).unwrap_err().to_string().contains("usage: numaplace"), "{text}");
        }
    }
}
