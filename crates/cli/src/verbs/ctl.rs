//! `numa ctl`.

use crate::Global;
use clap::Args;
use numakit_session::{Order, client};
use numakit_sys::stdio::print;
use std::process::ExitCode;

/// Give an order to a running 'numa stat', 'numa record' or 'numa live'
#[derive(Debug, Args)]
#[command(after_help = orders_help())]
pub struct Ctl {
    /// The process; not needed when only one runs
    #[arg(long, value_name = "P")]
    pid: Option<u32>,
    /// The order and its argument
    #[arg(required = true, value_name = "ORDER")]
    order: Vec<String>,
}

fn orders_help() -> String {
    let lines: Vec<String> = numakit_session::order::ORDERS
        .iter()
        .map(|(name, argument, help)| format!("  {:<15} {help}", format!("{name} {argument}")))
        .collect();
    format!("Orders:\n{}", lines.join("\n"))
}

impl Ctl {
    /// Sends the order and prints the answer.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        global.only_here("orders go to a numa that runs on this machine")?;
        let mut line = self.order.join(" ");
        // The file is meant from where the order is given, not from where the recorder runs.
        if let Order::Record(path) = Order::parse(line.as_bytes())? {
            line = format!("record {}", std::path::absolute(path)?.display());
        }
        let answer = client::send(self.pid, &line)?;
        if !answer.is_empty() {
            print(format_args!("{answer}\n"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
