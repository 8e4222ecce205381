//! `cargo xtask docs`: the guide as a web site.

use crate::workspace;
use anyhow::{Context, Result, bail};
use numakit_guide::site;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Writes the site, and prints where it begins.
pub fn run(words: &[String]) -> Result<ExitCode> {
    let folder = match words {
        [] => workspace::target().join("site"),
        [option, folder] if option == "--out" => PathBuf::from(folder),
        _ => bail!("docs takes --out DIR only, got '{}'", words.join(" ")),
    };
    let (files, bytes) = write(&folder)?;
    println!("{} ({files} files, {:.1} MB)", folder.join(site::FIRST).display(), bytes as f64 / 1e6);
    Ok(ExitCode::SUCCESS)
}

/// Writes the site into a folder, which is created if it does not exist; returns the number of files and of their bytes.
pub fn write(folder: &Path) -> Result<(usize, usize)> {
    let files = site::files();
    for file in &files {
        let path = folder.join(&file.path);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent)
            .with_context(|| format!("cannot create the folder {}", parent.display()))?;
        fs::write(&path, &file.content).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok((files.len(), files.iter().map(|file| file.content.len()).sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_site_is_a_folder_of_modest_size() {
        let folder = std::env::temp_dir().join(format!("numakit-site-{}", std::process::id()));
        let (files, bytes) = write(&folder).unwrap();
        let index = fs::read_to_string(folder.join(site::FIRST)).unwrap();
        let picture = folder.join("images/live.png").metadata().unwrap().len();
        fs::remove_dir_all(&folder).unwrap();
        assert!(index.contains("href=\"explain.html\"") && picture > 100_000, "{picture}: {index}");
        // It is in the packages.
        assert!(files > 60 && bytes < 1_750_000, "{files} files, {bytes} bytes");
        assert!(run(&["--serve".to_owned()]).unwrap_err().to_string().contains("--serve"));
    }
}
