//! `numa ctl`.

use crate::{Examples, GlobalArgs};
use clap::Args;
use numakit_observation::{ControlCommand, client};
use numakit_sys::stdio::print;
use std::process::ExitCode;

/// Control a running 'numa stat', 'numa record' or 'numa live'
#[derive(Debug, Args)]
#[command(after_help = orders_help())]
pub struct CtlArgs {
    /// Its process ID; not needed if only one is running
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// The command and its argument
    #[arg(required = true, value_name = "COMMAND")]
    order: Vec<String>,
}

fn orders_help() -> String {
    let lines: Vec<String> = numakit_observation::control_command::CONTROL_COMMANDS
        .iter()
        .map(|(name, argument, help)| format!("  {:<15} {help}", format!("{name} {argument}")))
        .collect();
    format!("Commands:\n{}", lines.join("\n"))
}

impl CtlArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa ctl status", "what the running recorder does"),
        ("numa ctl label 'second phase'", "a label in the recording"),
    ];

    /// Sends the command and prints the answer.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here("commands go to a numa that runs on this machine")?;
        let mut line = self.order.join(" ");
        // A relative path is relative to this directory, not to that of the recorder.
        if let ControlCommand::Record(path) = ControlCommand::parse(line.as_bytes())? {
            line = format!("record {}", std::path::absolute(path)?.display());
        }
        let answer = client::send(self.pid, &line)?;
        if !answer.is_empty() {
            print(format_args!("{answer}\n"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
