//! Global options, and the machine that they select.

use anyhow::{Context, bail};
use clap::{ArgAction, Args, ValueEnum};
use numakit_sys::SysRoot;
use numakit_sys::tty;
use std::path::PathBuf;

/// Why verbs that read recordings refuse --sysroot.
pub const OF_A_RECORDING: &str = "a recording contains what it needs of its machine";

/// Global options.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// Read /sys and /proc of another machine from a directory or a capture
    #[arg(long, global = true, value_name = "DIR|CAPTURE")]
    sysroot: Option<PathBuf>,
    /// Use colours: auto (on a terminal, if NO_COLOR is not set), always or never [default: auto]
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true,
        hide_possible_values = true
    )]
    color: Color,
    /// Print help ('-h' prints a summary)
    #[arg(short, long, global = true, action = ArgAction::Help)]
    help: Option<bool>,
    /// Print version
    #[arg(short = 'V', long, action = ArgAction::Version)]
    version: Option<bool>,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// If standard output is a terminal and NO_COLOR is not set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl GlobalArgs {
    /// The directory or capture that contains /sys and /proc.
    pub fn root(&self) -> anyhow::Result<SysRoot> {
        match &self.sysroot {
            None => Ok(SysRoot::host()),
            Some(path) => SysRoot::open(path).with_context(|| {
                format!(
                    "--sysroot {} cannot be read; give a directory that contains sys and proc, or a file that \
                     'numa capture' wrote",
                    path.display()
                )
            }),
        }
    }

    /// Refuses --sysroot for a verb that does not read /sys or /proc.
    pub fn only_here(&self, why: &str) -> anyhow::Result<()> {
        match &self.sysroot {
            None => Ok(()),
            Some(path) => bail!("--sysroot {}: {why}; omit --sysroot", path.display()),
        }
    }

    /// Whether the locale is a Unicode one, so that box-drawing characters can be used.
    pub fn unicode(&self) -> bool {
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        unicode(["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).as_deref())
    }

    /// Whether to use colours on standard output.
    pub fn color(&self) -> bool {
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => tty::is_output() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
        }
    }
}

/// The character set follows the dot in a locale's name; the default is that of C.
fn unicode(locale: Option<&str>) -> bool {
    let characters =
        locale.and_then(|name| name.split('@').next()?.split_once('.')).map_or("", |(_, set)| set);
    characters.eq_ignore_ascii_case("UTF-8") || characters.eq_ignore_ascii_case("UTF8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_decides_whether_box_drawing_characters_are_used() {
        for name in ["C.UTF-8", "en_GB.utf8", "de_DE.UTF-8@euro", "ja_JP.Utf-8"] {
            assert!(unicode(Some(name)), "{name}");
        }
        for name in ["C", "POSIX", "en_US", "de_DE@euro", "de_DE.ISO-8859-15@euro", "ja_JP.eucJP", "UTF-8"] {
            assert!(!unicode(Some(name)), "{name}");
        }
        assert!(!unicode(None));
    }
}
