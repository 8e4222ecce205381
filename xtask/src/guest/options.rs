//! The options of `cargo xtask guest`.

use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::time::Duration;

/// The text of --help.
pub const HELP: &str = "\
Usage: cargo xtask guest [OPTIONS] -- CMD ARGS
       cargo xtask guest [OPTIONS] --shell
       cargo xtask guest                      list the shapes

Runs a command on a Linux machine with several NUMA nodes, in QEMU. CMD is numa, numascope, a
program of tests/guest/programs, any program of this machine (it is extra_file along with its
libraries) or a command of busybox. So are guest programs and numactl where ARGS name them. It
starts in the folder /out; what it leaves there comes back. The exit status is that of CMD.

  --shape NAME         what the machine looks like [four]
  --memory MIB         memory of every node that has some [what the shape says]
  --timeout S          seconds until it counts as hanging [300]
  --file PATH[:INSIDE] take a file or folder along [as /root/NAME]
  --with PROGRAM       take another program along that CMD starts
  --out DIR            where what it leaves in /out goes [target/guest/out, emptied before]
  --shell              a prompt in the guest; 'exit' ends it
  --sim                count the lines that go between the nodes from 'numa mark begin' to
                       'numa mark end', or between the markers that a program sets
  --json FILE          where the counts of --sim go [traffic.json among what comes back]
";

const TIMEOUT: Duration = Duration::from_secs(300);
const SHAPE: &str = "four";

/// A file that is copied into the guest.
#[derive(Debug, PartialEq, Eq)]
pub struct ExtraFile {
    pub here: PathBuf,
    pub inside: String,
}

/// The options.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    pub shape: String,
    pub memory_mib: Option<u64>,
    pub timeout: Duration,
    pub files: Vec<ExtraFile>,
    pub with: Vec<String>,
    pub out: Option<PathBuf>,
    pub shell: bool,
    pub simulated: bool,
    pub json: Option<PathBuf>,
    pub command: Vec<String>,
}

/// What the command line requests.
#[derive(Debug, PartialEq, Eq)]
pub enum GuestRequest {
    Help,
    Shapes,
    Guest(Box<Options>),
}

impl Options {
    /// Parses the words after `guest`.
    pub fn parse(words: &[String]) -> Result<GuestRequest> {
        let mut options = Self {
            shape: SHAPE.to_owned(),
            memory_mib: None,
            timeout: TIMEOUT,
            files: Vec::new(),
            with: Vec::new(),
            out: None,
            shell: false,
            simulated: false,
            json: None,
            command: Vec::new(),
        };
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{word} needs a value; see --help"));
            match word.as_str() {
                "--" => options.command = rest.by_ref().cloned().collect(),
                "--help" | "-h" => return Ok(GuestRequest::Help),
                "--shape" => options.shape.clone_from(value()?),
                "--memory" => options.memory_mib = Some(number(word, value()?)?),
                "--timeout" => options.timeout = Duration::from_secs(number(word, value()?)?),
                "--file" => options.files.push(extra_file(value()?)?),
                "--with" => options.with.push(value()?.clone()),
                "--out" => options.out = Some(value()?.into()),
                "--json" => options.json = Some(value()?.into()),
                "--shell" => options.shell = true,
                "--sim" => options.simulated = true,
                other if other.starts_with('-') => bail!("no option '{other}'; --help lists the options"),
                other => bail!("'{other}' is not an option; write a command after --: -- {other}"),
            }
        }
        options.checked(words)
    }

    fn checked(self, words: &[String]) -> Result<GuestRequest> {
        if words.is_empty() {
            return Ok(GuestRequest::Shapes);
        }
        if self.command.is_empty() && !self.shell {
            bail!("no command; add '-- CMD ARGS', or --shell for a prompt");
        }
        if self.json.is_some() && !self.simulated {
            bail!("--json without --sim: there would be nothing to write; add --sim");
        }
        Ok(GuestRequest::Guest(Box::new(self)))
    }
}

/// A whole number above 0.
fn number(option: &str, text: &str) -> Result<u64> {
    match text.parse() {
        Ok(0) | Err(_) => bail!("{option} {text}: not a whole number above 0"),
        Ok(number) => Ok(number),
    }
}

fn extra_file(text: &str) -> Result<ExtraFile> {
    let (here, inside) = match text.split_once(":/") {
        Some((here, inside)) => (PathBuf::from(here), Some(format!("/{inside}"))),
        None => (PathBuf::from(text), None),
    };
    if !here.exists() {
        bail!("--file {text}: there is no {}", here.display());
    }
    let name = here.file_name().with_context(|| format!("--file {text}: name the file or folder itself"))?;
    let inside = inside.unwrap_or_else(|| format!("/root/{}", name.to_string_lossy()));
    Ok(ExtraFile { inside, here })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<GuestRequest> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    fn options(line: &str) -> Options {
        match parsed(line).unwrap() {
            GuestRequest::Guest(options) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_are_parsed() {
        let all = options("--shape two --memory 1024 --timeout 9 --sim --json j --out o -- numa topo --json");
        assert_eq!((all.shape.as_str(), all.memory_mib, all.simulated), ("two", Some(1024), true));
        assert_eq!(all.timeout, Duration::from_secs(9));
        assert_eq!(all.command, ["numa", "topo", "--json"]);
        assert_eq!((all.json, all.out), (Some("j".into()), Some("o".into())));
        let plain = options("-- true");
        assert_eq!((plain.shape.as_str(), plain.memory_mib, plain.shell), ("four", None, false));
        assert!(options("--shell").shell);
        assert_eq!(options("--with ls --with ./a -- sh").with, ["ls", "./a"]);
        assert_eq!(parsed("").unwrap(), GuestRequest::Shapes);
        assert_eq!(parsed("--shape two --help").unwrap(), GuestRequest::Help);
    }

    #[test]
    fn files_go_to_root_or_a_given_path() {
        assert_eq!(extra_file("/etc/hosts").unwrap().inside, "/root/hosts");
        let placed = extra_file("/etc/hosts:/out/h").unwrap();
        assert_eq!((placed.here, placed.inside), ("/etc/hosts".into(), "/out/h".to_owned()));
    }

    #[test]
    fn errors_say_the_fix() {
        for (line, expected) in [
            ("--shape", "--shape needs a value; see --help"),
            ("--memory 0 -- true", "--memory 0: not a whole number above 0"),
            ("--timeout 5s -- true", "--timeout 5s: not a whole number above 0"),
            ("--verbose", "no option '--verbose'; --help lists the options"),
            ("numa topo", "'numa' is not an option; write a command after --: -- numa"),
            ("--shape two", "no command; add '-- CMD ARGS', or --shell for a prompt"),
            ("--json x -- true", "--json without --sim: there would be nothing to write; add --sim"),
            ("--file /no/such -- true", "--file /no/such: there is no /no/such"),
        ] {
            assert_eq!(parsed(line).unwrap_err().to_string(), expected, "{line}");
        }
    }
}
