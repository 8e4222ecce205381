//! `cargo xtask guest`: runs a command on a simulated NUMA machine.

mod options;

use crate::build;
use anyhow::{Context, Result};
use numakit_guest::programs::{self, Found};
use numakit_guest::{Boot, Failure, Guest, Shape, Simulation, Status, Traffic, place};
use options::{GuestRequest, Options};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The name of the command in messages.
const STEP: &str = "command";
/// Exit status of shells for a missing command.
const NOT_FOUND: u8 = 127;
/// Exit status if guests cannot run here, `EX_UNAVAILABLE` of sysexits.h: tests are then skipped.
const UNAVAILABLE: u8 = 69;

/// Boots a guest, runs the command in it and returns its exit status.
pub fn run(words: &[String]) -> Result<ExitCode> {
    match Options::parse(words)? {
        GuestRequest::Help => {
            print!("{}", options::HELP);
            Ok(ExitCode::SUCCESS)
        }
        GuestRequest::Shapes => list_shapes(),
        GuestRequest::Guest(options) => match start(&options) {
            Err(error) if matches!(error.downcast_ref(), Some(Failure::Unavailable { .. })) => {
                eprintln!("xtask: {error:#}");
                Ok(ExitCode::from(UNAVAILABLE))
            }
            other => other,
        },
    }
}

fn list_shapes() -> Result<ExitCode> {
    println!("{:<12} {:>5} {:>4} {:>8}  ", "shape", "nodes", "CPUs", "memory");
    for shape in Shape::all()? {
        let memory = format!("{} MiB", shape.memory_mib());
        println!(
            "{:<12} {:>5} {:>4} {memory:>8}  {}",
            shape.name,
            shape.nodes.len(),
            shape.cpus(),
            shape.about
        );
    }
    println!("\ncargo xtask guest --shape NAME -- CMD ARGS; --help has more");
    Ok(ExitCode::SUCCESS)
}

fn start(options: &Options) -> Result<ExitCode> {
    if std::env::var_os("NUMAKIT_NUMA").is_none() {
        // It says what is built, and for how long.
        build::numa()?;
    }
    let mut guest = Guest::new(Shape::named(&options.shape)?).timeout(options.timeout);
    if let Some(mib) = options.memory_mib {
        guest = guest.memory_mib(mib);
    }
    if options.simulated {
        guest = guest.simulate(Simulation::new());
    }
    for file in &options.files {
        guest = guest.file(&file.here, &file.inside);
    }
    guest = match with_programs(guest, options) {
        Err(Failure::NotFound(name)) => {
            eprintln!("xtask: {}", Failure::NotFound(name));
            return Ok(ExitCode::from(NOT_FOUND));
        }
        guest => guest?,
    };
    if let Some((name, arguments)) = options.command.split_first() {
        let name = Path::new(name).file_name().unwrap_or_default().to_string_lossy();
        let words: Vec<&str> = std::iter::once(&*name).chain(arguments.iter().map(String::as_str)).collect();
        guest = guest.step(STEP, &words);
    }
    if options.shell {
        guest = guest.shell(&terminal());
    }
    let out = out_folder(options)?;
    let boot = guest.out(&out).stream(!options.shell).boot()?;
    report(options, &boot, &out)
}

/// Adds numa, the program of the command, and others that it may start.
fn with_programs(guest: Guest, options: &Options) -> Result<Guest, Failure> {
    let mut guest = guest.program(&programs::numa()?);
    for name in options.command.first().into_iter().chain(&options.with) {
        match programs::find(name)? {
            Found::Here(path) if !programs::OURS.contains(&name.as_str()) => guest = guest.program(&path),
            Found::Here(_) | Found::Inside => {}
        }
    }
    let named: BTreeSet<&str> = options.command.iter().skip(1).flat_map(|text| words_of(text)).collect();
    for name in programs::all_compiled()? {
        if (options.shell || named.contains(name.as_str()))
            && let Some(path) = programs::compiled(&name)?
        {
            guest = guest.program(&path);
        }
    }
    for name in ["numactl", "numastat"] {
        if (options.shell || named.contains(name))
            && let Some(path) = programs::of_host(name)
        {
            guest = guest.program(&path);
        }
    }
    Ok(guest)
}

/// Words of a text that may be names of programs, such as a shell script.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-')
}

/// The command that sets the size of the guest's terminal to that of ours.
fn terminal() -> String {
    let size = Command::new("stty").arg("size").stdin(Stdio::inherit()).output();
    let text = size.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    match text.split_whitespace().collect::<Vec<_>>().as_slice() {
        [rows, columns] => format!("stty rows {rows} cols {columns} </dev/ttyS1\n"),
        _ => String::new(),
    }
}

/// The folder for files from the guest. The default one is emptied; a given one is only added to.
fn out_folder(options: &Options) -> Result<PathBuf> {
    if let Some(named) = &options.out {
        return Ok(named.clone());
    }
    let out = place::target().join("guest/out");
    if out.exists() {
        fs::remove_dir_all(&out).with_context(|| format!("cannot empty {}", out.display()))?;
    }
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    Ok(out)
}

fn report(options: &Options, boot: &Boot, out: &Path) -> Result<ExitCode> {
    if let Some(traffic) = &boot.traffic {
        let json = options.json.clone().unwrap_or_else(|| out.join("traffic.json"));
        write_json(traffic, &json)?;
        println!("\n{traffic}\n{}", json.display());
    }
    let (start, all) = (boot.boot_time.as_secs_f64(), boot.total_time.as_secs_f64());
    eprintln!("-- guest '{}': started in {start:.1} s, {all:.1} s in all --", options.shape);
    list_files(out)?;
    let Some(step) = boot.steps.get(STEP) else { return Ok(ExitCode::SUCCESS) };
    if let Status::Signal(_) = step.status {
        eprintln!("-- ended by {} --", step.status);
    }
    Ok(ExitCode::from(step.status.code()))
}

fn write_json(traffic: &Traffic, path: &Path) -> Result<()> {
    let text = serde_json::to_string_pretty(traffic)?;
    fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
}

/// Lists the files that the command wrote.
fn list_files(out: &Path) -> Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(out).with_context(|| format!("cannot list {}", out.display()))? {
        let entry = entry?;
        let size = entry.metadata()?.len();
        let name = entry.file_name().to_string_lossy().into_owned();
        names.push(if entry.path().is_dir() {
            format!("  {name}/")
        } else {
            format!("  {name}  {size} bytes")
        });
    }
    if !names.is_empty() {
        names.sort();
        eprintln!("{}:\n{}", out.display(), names.join("\n"));
    }
    Ok(())
}
