use serde::{Deserialize, Serialize};
use std::fmt;

/// What makes an absent value available. Code depends on the variant, never on its text, which
/// only this file words.
///
/// Recordings and JSON hold the text, which is read back as [`Fix::AsWorded`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum Fix {
    /// Run any one of these commands.
    Commands(Vec<String>),
    /// Run numa as root, or run a command.
    Root {
        /// The command.
        or: Option<String>,
    },
    /// Load a driver that may be a module of the running kernel.
    Driver {
        /// The module.
        module: String,
        /// The build option of kernels that have the driver.
        option: String,
    },
    /// Boot with a parameter on the kernel's command line.
    KernelParameter {
        /// The parameter with its value.
        parameter: String,
        /// The build option of kernels that know it.
        option: Option<String>,
    },
    /// Boot a kernel that is built with an option.
    BuildOption(String),
    /// Boot another kernel; the text says which and follows "boot a kernel".
    OtherKernel(String),
    /// Use another machine; the text says which and follows "run on".
    OtherMachine(String),
    /// Change the command line of numa, or a file that it names.
    CommandLine(String),
    /// Run numa at another time; the text says which and follows "run numa again when".
    Later(String),
    /// Capture the machine again: the capture lacks this path.
    Capture(String),
    /// Do something else on this machine.
    Step(String),
    /// Read from a recording or from JSON, which hold only the text.
    AsWorded(String),
}

impl Fix {
    /// One command.
    pub fn command(command: impl Into<String>) -> Self {
        Self::Commands(vec![command.into()])
    }

    /// Whether it can be done on this machine with the running kernel, or by a kernel parameter.
    /// Another kernel, another machine, another time or another command line of numa cannot.
    pub fn is_possible_here(&self) -> bool {
        match self {
            Self::Commands(_)
            | Self::Root { .. }
            | Self::Driver { .. }
            | Self::KernelParameter { .. }
            | Self::Capture(_)
            | Self::Step(_)
            | Self::AsWorded(_) => true,
            Self::BuildOption(_)
            | Self::OtherKernel(_)
            | Self::OtherMachine(_)
            | Self::Later(_)
            | Self::CommandLine(_) => false,
        }
    }

    /// The same for root, who needs no `sudo`.
    pub fn as_root(self) -> Self {
        let plain = |command: String| command.replace("sudo ", "");
        match self {
            Self::Commands(commands) => Self::Commands(commands.into_iter().map(plain).collect()),
            Self::Root { or } => Self::Root { or: or.map(plain) },
            other => other,
        }
    }

    /// Whether it is this command, or a choice of commands that includes it. The text of a single
    /// command is the command, so this also works for a fix that was read from a recording.
    pub fn is_command(&self, command: &str) -> bool {
        match self {
            Self::Commands(commands) => commands.iter().any(|c| c == command),
            Self::AsWorded(text) => text == command,
            _ => false,
        }
    }
}

impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Commands(commands) => f.write_str(&commands.join(", or ")),
            Self::Root { or: None } => f.write_str("run numa as root"),
            Self::Root { or: Some(command) } => write!(f, "run numa as root, or {command}"),
            Self::Driver { module, option } => {
                write!(f, "modprobe {module}, or boot a kernel that is built with {option}")
            }
            Self::KernelParameter { parameter, option } => {
                write!(f, "add {parameter} to the kernel's command line and boot again")?;
                option.as_ref().map_or(Ok(()), |option| write!(f, " (the kernel needs {option})"))
            }
            Self::BuildOption(option) => write!(f, "boot a kernel that is built with {option}"),
            Self::OtherKernel(which) => write!(f, "boot a kernel {which}"),
            Self::OtherMachine(which) => write!(f, "run on {which}"),
            Self::Later(when) => write!(f, "run numa again when {when}"),
            Self::Capture(path) => {
                write!(f, "make the capture of that machine again with 'numa capture', or add {path} to it")
            }
            Self::CommandLine(text) | Self::Step(text) | Self::AsWorded(text) => f.write_str(text),
        }
    }
}

impl From<Fix> for String {
    fn from(fix: Fix) -> Self {
        fix.to_string()
    }
}

impl From<String> for Fix {
    fn from(text: String) -> Self {
        Self::AsWorded(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unavailable;

    const NUMA_STAT: &str = "sysctl vm.numa_stat=1";

    /// Every kind with its text and whether it is possible on this machine.
    fn kinds() -> Vec<(Fix, &'static str, bool)> {
        let text = |text: &str| text.to_owned();
        let parameter = |option: Option<&str>| Fix::KernelParameter {
            parameter: text("psi=1"),
            option: option.map(text),
        };
        vec![
            (Fix::command(NUMA_STAT), NUMA_STAT, true),
            (Fix::Later(text("memory is free")), "run numa again when memory is free", false),
            (Fix::Commands(vec![text("one"), text("two")]), "one, or two", true),
            (Fix::Root { or: None }, "run numa as root", true),
            (Fix::Root { or: Some(text("mount it")) }, "run numa as root, or mount it", true),
            (
                Fix::Driver { module: text("m"), option: text("CONFIG_M") },
                "modprobe m, or boot a kernel that is built with CONFIG_M",
                true,
            ),
            (parameter(None), "add psi=1 to the kernel's command line and boot again", true),
            (
                parameter(Some("CONFIG_PSI")),
                "add psi=1 to the kernel's command line and boot again (the kernel needs CONFIG_PSI)",
                true,
            ),
            (Fix::BuildOption(text("CONFIG_NUMA")), "boot a kernel that is built with CONFIG_NUMA", false),
            (Fix::OtherKernel(text("4.14 or newer")), "boot a kernel 4.14 or newer", false),
            (Fix::OtherMachine(text("bare metal")), "run on bare metal", false),
            (Fix::CommandLine(text("give --pid PID")), "give --pid PID", false),
            (
                Fix::Capture(text("/proc/stat")),
                "make the capture of that machine again with 'numa capture', or add /proc/stat to it",
                true,
            ),
            (Fix::Step(text("run it again")), "run it again", true),
            // Worded like another machine, but nothing depends on that.
            (Fix::AsWorded(text("run on bare metal")), "run on bare metal", true),
        ]
    }

    #[test]
    fn every_kind_is_worded_and_says_whether_it_is_possible_here() {
        for (fix, text, possible) in kinds() {
            assert_eq!((fix.to_string().as_str(), fix.is_possible_here()), (text, possible), "{fix:?}");
        }
    }

    #[test]
    fn root_needs_no_sudo() {
        let of = |command: &str| Fix::command(command).as_root().to_string();
        assert_eq!(of("sudo mount -t tracefs"), "mount -t tracefs");
        assert_eq!(of("echo 1 | sudo tee online"), "echo 1 | tee online");
        assert_eq!(Fix::Step("use sudo or su".to_owned()).as_root().to_string(), "use sudo or su");
    }

    #[test]
    fn json_holds_the_text_and_gives_it_back_as_worded() {
        for (fix, text, _) in kinds() {
            let json = serde_json::to_value(Unavailable::new("what", "seen", fix)).unwrap();
            assert_eq!(json, serde_json::json!({"missing": "what", "seen": "seen", "fix": text}));
            let back: Unavailable = serde_json::from_value(json).unwrap();
            assert_eq!(back, Unavailable::new("what", "seen", Fix::AsWorded(text.to_owned())));
        }
    }

    #[test]
    fn a_command_is_known_live_and_from_a_recording() {
        let worded = |text: &str| Fix::AsWorded(text.to_owned());
        assert!(Fix::Commands(vec!["reboot".to_owned(), NUMA_STAT.to_owned()]).is_command(NUMA_STAT));
        assert!(worded(NUMA_STAT).is_command(NUMA_STAT));
        assert!(!Fix::Step(NUMA_STAT.to_owned()).is_command(NUMA_STAT));
        assert!(!worded("sysctl vm.numa_stat=1 or so").is_command(NUMA_STAT));
    }
}
