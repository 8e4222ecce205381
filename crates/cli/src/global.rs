//! Options that every verb takes, and the machine that they choose.

use anyhow::Context;
use clap::{Args, ValueEnum};
use numakit_sys::SysRoot;
use numakit_sys::tty;
use std::path::PathBuf;

/// Options that every verb takes.
#[derive(Debug, Args)]
pub struct Global {
    /// Read another machine's /sys and /proc: a directory, or a capture
    #[arg(long, global = true, value_name = "DIR|ARCHIVE")]
    sysroot: Option<PathBuf>,
    /// When to colour the output
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: Color,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Global {
    /// This machine, with the defaults.
    pub fn host() -> Self {
        Self { sysroot: None, color: Color::Auto }
    }

    /// The place that /sys and /proc are read from.
    pub fn root(&self) -> anyhow::Result<SysRoot> {
        match &self.sysroot {
            None => Ok(SysRoot::host()),
            Some(path) => SysRoot::open(path).with_context(|| {
                format!("--sysroot {} cannot be read; give a directory that holds sys and proc, or a capture made by 'numa capture'", path.display())
            }),
        }
    }

    /// Whether standard output gets colours.
    pub fn color(&self) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => tty::is_output() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
        }
    }
}
