//! Hosts of an engine, fetched to be shown.

use crate::push_to::{self, EngineArgs};
use crate::verbs::fetch::{HostRange, from_until, time};
use anyhow::{Context, bail};
use clap::Args;
use numakit_push::{PushTarget, hosts, listed};
use numakit_sys::stdio::note;
use numakit_sys::{SysRoot, cache, proc};
use std::fs;
use std::path::{Path, PathBuf};

/// Which rows of an engine are shown.
#[derive(Debug, Args)]
pub(super) struct ShownHostsArgs {
    /// A host of the engine that URL names; may be repeated [default: the only host that there is]
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// The start of what is fetched: 2026-11-28T18:00 (UTC), or a length before now [default: 1h]
    #[arg(long, value_name = "TIME", value_parser = time)]
    from: Option<u64>,
    /// The end, in the same form [default: now]
    #[arg(long, value_name = "TIME", value_parser = time)]
    to: Option<u64>,
    #[command(flatten)]
    access: EngineArgs,
}

/// A directory for what was fetched, removed at the end.
pub(super) struct FetchedFolder(PathBuf);

impl ShownHostsArgs {
    /// Fetches the hosts if an engine is to be shown, and replaces the engine by their recordings. These exist as long as what is returned.
    pub(super) fn fetch(&self, shown: &mut Vec<PathBuf>) -> anyhow::Result<Option<FetchedFolder>> {
        let Some(target) = engine(shown)? else {
            if !self.host.is_empty() || self.from.is_some() || self.to.is_some() || self.access.is_given() {
                bail!(
                    "--host, --from, --to and the credentials are of an engine; give its URL instead of a file, or omit them"
                );
            }
            return Ok(None);
        };
        let from = self.from.map_or_else(|| time("1h"), Ok)?;
        let range = from_until(from, self.to)?;
        let target = self.access.complete(target)?;
        let names = match self.host.is_empty() {
            true => vec![the_only_host(&target)?],
            false => self.host.clone(),
        };
        let folder = FetchedFolder::create()?;
        shown.clear();
        for (at, host) in names.iter().enumerate() {
            let path = folder.0.join(file_name(at, host));
            let fetched = HostRange { target: &target, host, range }.fetch(&path, false)?;
            note(format_args!("{host}: {} samples of {} series", fetched.samples, fetched.series));
            fetched.missing.iter().for_each(|missing| note(format_args!("{host}: missing: {missing}")));
            shown.push(path);
        }
        Ok(Some(folder))
    }
}

/// The engine that stands where files do, if one does.
fn engine(shown: &[PathBuf]) -> anyhow::Result<Option<PushTarget>> {
    let target = |path: &PathBuf| match path.exists() {
        true => None,
        false => path.to_str().filter(|text| PushTarget::has_scheme(text)).map(push_to::target),
    };
    match (shown.iter().find_map(target).transpose()?, shown.len()) {
        (Some(target), 2..) => {
            bail!("{} stands beside other files; give it alone, with a --host for each host", target.text)
        }
        (target, _) => Ok(target),
    }
}

fn the_only_host(target: &PushTarget) -> anyhow::Result<String> {
    let mut all = hosts(target)?;
    match (all.len(), all.pop()) {
        (1, Some(host)) => Ok(host),
        (count, last) => {
            all.extend(last);
            bail!("{count} hosts have rows there; choose with --host NAME: {}", listed(&all))
        }
    }
}

/// A name for the page, which is a file too: a host names what it likes.
fn file_name(at: usize, host: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let plain: String = host.chars().filter(is_plain).skip_while(|c| *c == '.').take(100).collect();
    match at {
        0 => format!("{plain}.arrows"),
        _ => format!("{plain}-{}.arrows", at + 1),
    }
}

impl FetchedFolder {
    /// Creates one, and removes those of processes that were killed.
    fn create() -> anyhow::Result<Self> {
        let state = cache::state_folder().context("there is no directory for what is fetched; set HOME")?;
        let all = state.join("fetched");
        fs::create_dir_all(&all).with_context(|| format!("cannot create {}", all.display()))?;
        remove_left(&all);
        let own = all.join(std::process::id().to_string());
        fs::create_dir(&own).with_context(|| format!("cannot create {}", own.display()))?;
        Ok(Self(own))
    }
}

fn remove_left(all: &Path) {
    let running = proc::processes(&SysRoot::host()).unwrap_or_default();
    for entry in fs::read_dir(all).into_iter().flatten().filter_map(Result::ok) {
        let of = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        if of.is_some_and(|process| process == std::process::id() || !running.contains(&process)) {
            // What cannot be removed stays, and is tried again by the next one.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for FetchedFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_files_in_the_directory_whatever_they_are_called() {
        assert_eq!(file_name(0, "node17.cluster"), "node17.cluster.arrows");
        assert_eq!(file_name(1, "../../etc/passwd"), "etcpasswd-2.arrows");
        assert_eq!(file_name(0, "\u{1b}[31m\n"), "31m.arrows");
    }
}
