//! `numa capture`.

use crate::Global;
use anyhow::{Context, bail};
use clap::Args;
use numakit_sensors::{Probe, Scene};
use numakit_sys::stdio::print;
use numakit_topology::capture::Capture as Taken;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Put this machine's topology and counters into a file
///
/// The file holds what numa reads of /sys and /proc and nothing else: no names of people,
/// machines or networks and no serial numbers. Every verb that reads takes it with --sysroot.
#[derive(Debug, Args)]
pub struct Capture {
    /// The file, a tar archive packed with zstd
    #[arg(short, long, value_name = "FILE", default_value = "capture.tar.zst")]
    output: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    force: bool,
}

impl Capture {
    /// Takes the files and says what they are.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let root = global.root()?;
        let capture = Taken::take(&root, |root, topology| drop(Probe::new(&Scene::new(root, topology))))
            .context("the machine cannot be read")?;
        let file = self.create()?;
        if let Err(error) = capture.write(&file).and_then(|()| file.sync_all()) {
            // Half an archive is of no use to anybody.
            let _ = std::fs::remove_file(&self.output);
            return Err(error).with_context(|| format!("{} cannot be written", self.output.display()));
        }
        report(&self.output, &file, &capture)?;
        Ok(ExitCode::SUCCESS)
    }

    fn create(&self) -> anyhow::Result<File> {
        let mut options = File::options();
        options.write(true).truncate(self.force).create(self.force).create_new(!self.force);
        let path = self.output.display();
        match options.open(&self.output) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                bail!("{path} is there already; name another file with -o, or replace it with --force")
            }
            result => result.with_context(|| {
                format!("{path} cannot be written; name a file in a folder that you may write to")
            }),
        }
    }
}

fn report(path: &Path, file: &File, capture: &Taken) -> anyhow::Result<()> {
    let contents = capture.contents();
    let files: usize = contents.iter().map(|c| c.files).sum();
    let topology = capture.topology();
    let mut text = format!("{}: {} bytes, {files} files\n", path.display(), file.metadata()?.len());
    for content in &contents {
        text += &format!("  {:>7} files {:>10} bytes  {}\n", content.files, content.bytes, content.place);
    }
    text += &format!(
        "{} nodes, {} CPUs; see it with: numa topo --sysroot {}\n",
        topology.nodes.len(),
        topology.online.len(),
        path.display()
    );
    Ok(print(text)?)
}
