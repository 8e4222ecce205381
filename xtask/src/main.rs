//! The tasks of this repository. `cargo xtask` lists them.
#![allow(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout)]

mod bench;
mod build;
mod dashboards;
mod docs;
mod engines;
mod fuzz;
mod guest;
mod install;
mod mpis;
mod package;
mod peers;
mod process;
mod python;
mod run;
mod sciences;
mod test;
mod web;
mod workspace;

use anyhow::{Result, bail};
use std::process::ExitCode;

struct Task {
    name: &'static str,
    arguments: &'static str,
    help: &'static str,
    run: fn(&[String]) -> Result<ExitCode>,
}

const TASKS: &[Task] = &[
    Task {
        name: "run",
        arguments: "[-- VERB ...]",
        help: "build everything, then start numa with that verb (default: stat)",
        run: run::run,
    },
    Task {
        name: "build",
        arguments: "",
        help: "release build with man pages and shell completions",
        run: build::run,
    },
    Task {
        name: "dashboards",
        arguments: "",
        help: "the dashboards of Grafana from their table",
        run: dashboards::run,
    },
    Task {
        name: "docs",
        arguments: "[--out DIR]",
        help: "the guide as a web site, for any server or none",
        run: docs::run,
    },
    Task {
        name: "package",
        arguments: "[--target T] [--out DIR]",
        help: "tarball, .deb, .rpm, image of containers, sources with all crates, recipes",
        run: package::run,
    },
    Task {
        name: "test",
        arguments: "[--thorough] [OPTIONS]",
        help: "format, lints, all tests; --package NAMES, --require KINDS, --without-measuring, --only-measuring",
        run: test::run,
    },
    Task {
        name: "bench",
        arguments: "[NAME...]",
        help: "measure against floors and peers, print ratios (default: all but 'tune [PROGRAM...]')",
        run: bench::run,
    },
    Task {
        name: "guest",
        arguments: "[OPTIONS] [-- CMD ...]",
        help: "a command on a NUMA machine in QEMU (no CMD: list the machines)",
        run: guest::run,
    },
    Task {
        name: "fuzz",
        arguments: "[TARGET...] [--seconds N]",
        help: "fuzz each target for N seconds (default: all, 60)",
        run: fuzz::run,
    },
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match start(&words) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn start(words: &[String]) -> Result<ExitCode> {
    let Some((name, arguments)) = words.split_first() else {
        print_tasks();
        return Ok(ExitCode::SUCCESS);
    };
    if ["help", "--help", "-h"].contains(&name.as_str()) {
        print_tasks();
        return Ok(ExitCode::SUCCESS);
    }
    match TASKS.iter().find(|task| task.name == name) {
        Some(task) => (task.run)(arguments),
        None => bail!("no task '{name}'; 'cargo xtask' lists the tasks"),
    }
}

fn print_tasks() {
    println!("Usage: cargo xtask TASK\n");
    for task in TASKS {
        let call = format!("{} {}", task.name, task.arguments);
        println!("  {call:<31} {}", task.help);
    }
}
