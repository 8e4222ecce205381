//! The options by which several verbs choose running processes.

use anyhow::bail;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use numakit_processes::{ChosenProcesses, NamePattern, ProcessChoice};
use numakit_sys::SysRoot;
use numakit_sys::command::quoted;
use numakit_sys::stdio::note;

/// The number of a process.
fn pid(word: &str) -> Result<u32, String> {
    word.parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| format!("give the number of a process, or programs by their name: --name {word}"))
}

/// Running processes. At most one of the options is given, and no command beside it.
#[derive(Debug, Clone, Args)]
pub struct ProcessArgs {
    /// Observe these processes with all their descendants, and those that they start
    #[arg(short, long = "pid", value_name = "PID,...", value_delimiter = ',', group = "observed", value_parser = pid)]
    pids: Vec<u32>,
    /// Observe all processes of a control group and of those below it: a folder below /sys/fs/cgroup, or a path as in
    /// /proc/PID/cgroup
    #[arg(long, value_name = "PATH", value_parser = NonEmptyStringValueParser::new(), group = "observed")]
    cgroup: Option<String>,
    /// Observe all processes of a unit of systemd, such as nginx.service
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new(), group = "observed")]
    unit: Option<String>,
    /// Observe all processes of a container of Docker, Podman, containerd, CRI-O or LXC, by at least 6 digits of its number or by
    /// its name
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new(), group = "observed")]
    container: Option<String>,
    /// Observe all programs whose name contains this; with . * + ? | ^ $ as in 'pgrep'
    #[arg(long, value_name = "PATTERN", group = "observed")]
    name: Option<NamePattern>,
}

impl ProcessArgs {
    /// The processes that are chosen, which a message names unless their numbers were given; `None` without any of the options.
    pub fn find(&self, root: &SysRoot) -> anyhow::Result<Option<ChosenProcesses>> {
        let Some(choice) = self.choice() else { return Ok(None) };
        let chosen = ChosenProcesses::find(&choice, root)?;
        if chosen.may_grow() {
            note(format_args!("observes {chosen}"));
        }
        Ok(Some(chosen))
    }

    /// The processes that were given by their numbers, whether there are any such or not.
    pub fn numbers(&self) -> &[u32] {
        &self.pids
    }

    /// Refuses a call that names nothing to observe.
    pub fn check(&self, has_command: bool) -> anyhow::Result<()> {
        if self.choice().is_none() && !has_command {
            bail!(
                "nothing to observe is given: name a command, as in 'numa explain ./app', or running processes with --pid, \
                 --cgroup, --unit, --container or --name"
            );
        }
        Ok(())
    }

    /// The option as it is typed, of those that choose the processes; empty without any.
    pub fn words(&self) -> String {
        let Self { pids, cgroup, unit, container, name } = self;
        let numbers: Vec<String> = pids.iter().map(u32::to_string).collect();
        let numbers = (!numbers.is_empty()).then(|| numbers.join(","));
        let options = [
            ("--pid", numbers),
            ("--cgroup", cgroup.clone()),
            ("--unit", unit.clone()),
            ("--container", container.clone()),
            ("--name", name.as_ref().map(|name| name.text().to_owned())),
        ];
        let given = options.into_iter().find_map(|(option, value)| Some([option.to_owned(), value?]));
        given.map(|words| quoted(&words)).unwrap_or_default()
    }

    fn choice(&self) -> Option<ProcessChoice> {
        let Self { pids, cgroup, unit, container, name } = self;
        let numbers = (!pids.is_empty()).then(|| ProcessChoice::Numbers(pids.clone()));
        let group = cgroup.clone().map(ProcessChoice::ControlGroup);
        let unit = unit.clone().map(ProcessChoice::Unit);
        let container = container.clone().map(ProcessChoice::Container);
        numbers.or(group).or(unit).or(container).or(name.clone().map(ProcessChoice::Name))
    }
}
