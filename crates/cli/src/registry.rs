//! `--registry`: where cores are reserved.

use clap::Args;
use numakit_registry::location;
use std::path::PathBuf;

/// Where cores are reserved.
#[derive(Debug, Args)]
pub struct RegistryArgs {
    /// Reserve cores in this folder, which several containers mount; also $NUMAKIT_REGISTRY
    #[arg(long, value_name = "DIR")]
    registry: Option<PathBuf>,
}

impl RegistryArgs {
    /// Makes it the registry of this process.
    pub fn apply(&self) -> anyhow::Result<()> {
        self.registry.as_deref().map_or(Ok(()), location::use_folder).map_err(Into::into)
    }
}
