//! Options that every verb takes, and the machine that they choose.

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use numakit_sys::SysRoot;
use numakit_sys::tty;
use std::path::PathBuf;

/// Why verbs that read recordings refuse --sysroot.
pub const OF_A_RECORDING: &str = "a recording holds all that is shown of its machine";

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

    /// Refuses --sysroot for a verb that reads nothing below it, and says why.
    pub fn only_here(&self, why: &str) -> anyhow::Result<()> {
        match &self.sysroot {
            None => Ok(()),
            Some(path) => bail!("--sysroot {}: {why}; leave --sysroot out", path.display()),
        }
    }

    /// Whether the characters of the locale are those of Unicode, so that lines can be drawn.
    pub fn unicode(&self) -> bool {
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        unicode(["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).as_deref())
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

/// What stands behind the point of a locale's name are its characters; no locale is that of C.
fn unicode(locale: Option<&str>) -> bool {
    let characters =
        locale.and_then(|name| name.split('@').next()?.split_once('.')).map_or("", |(_, set)| set);
    characters.eq_ignore_ascii_case("UTF-8") || characters.eq_ignore_ascii_case("UTF8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locales_say_whether_lines_can_be_drawn() {
        for name in ["C.UTF-8", "en_GB.utf8", "de_DE.UTF-8@euro", "ja_JP.Utf-8"] {
            assert!(unicode(Some(name)), "{name}");
        }
        for name in ["C", "POSIX", "en_US", "de_DE@euro", "de_DE.ISO-8859-15@euro", "ja_JP.eucJP", "UTF-8"] {
            assert!(!unicode(Some(name)), "{name}");
        }
        assert!(!unicode(None));
    }
}
