//! `numa man`.

use crate::{Examples, GlobalArgs, manual, programs};
use anyhow::{Context, bail};
use clap::Args;
use numakit_sys::stdio::print;
use numakit_sys::tty;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

/// Show a man page, or write all of them into a folder
///
/// On a terminal the page is shown by man(1). Elsewhere its source is printed, so that
/// 'numa man run > numa-run.1' makes a file of it.
///
/// After an installation without man pages: numa man --dir ~/.local/share/man/man1
#[derive(Debug, Args)]
pub struct Man {
    /// A program or a verb: numa, run, numaplace
    #[arg(default_value = "numa")]
    page: String,
    /// Write all pages into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "page")]
    dir: Option<PathBuf>,
}

impl Man {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa man run", "the page of numa run"),
        ("numa man --dir ~/.local/share/man/man1", "writes all pages"),
    ];

    /// Shows a page or writes all pages.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here("man pages are part of this program")?;
        let pages = manual::pages(programs())?;
        if let Some(folder) = &self.dir {
            manual::write(&pages, folder)?;
            print(format_args!("{}: {} pages\n", folder.display(), pages.len()))?;
            return Ok(ExitCode::SUCCESS);
        }
        let page = manual::find(&pages, &self.page)?;
        if tty::is_output() {
            show(page)
        } else {
            print(&page.source)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Shows the page with man(1).
fn show(page: &manual::Page) -> anyhow::Result<ExitCode> {
    let mut child = match Command::new("man").args(["-l", "-"]).stdin(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(
            "the program 'man' is not installed; install it (apt-get install man-db), or read '{} --help'",
            page.name.replace('-', " ")
        ),
        Err(error) => return Err(error).context("cannot start man"),
    };
    if let Some(mut input) = child.stdin.take() {
        // The user may quit the pager early.
        let _ = input.write_all(page.source.as_bytes());
    }
    let status = child.wait().context("cannot wait for man")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
