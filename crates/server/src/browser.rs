//! Opens the page in a browser.

use numakit_observation::run_directory;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A file that redirects a browser to the page. A command line would show the token to all users.
#[derive(Debug)]
pub struct BrowserFile(PathBuf);

impl BrowserFile {
    /// Opens a browser if there is a display and `xdg-open` starts.
    pub fn open(url: &str) -> Option<Self> {
        let screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
        if !screen {
            return None;
        }
        let path = run_directory::launcher(&run_directory::open().ok()?, std::process::id());
        let opened = Self::write(path, url).ok()?;
        let mut open = Command::new("xdg-open");
        open.arg(&opened.0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        open.spawn().ok().map(|_| opened)
    }

    fn write(path: PathBuf, url: &str) -> io::Result<Self> {
        let mut content = File::options().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        let file = Self(path);
        content.write_all(
            format!("<!doctype html><meta http-equiv=\"refresh\" content=\"0;url={url}\">\n").as_bytes(),
        )?;
        Ok(file)
    }
}

impl Drop for BrowserFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_file_with_the_token_is_private_and_is_removed() {
        let path = std::env::temp_dir().join(format!("numakit-launcher-{}.html", std::process::id()));
        let file = BrowserFile::write(path.clone(), "http://127.0.0.1:1/#t=x").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        drop(file);
        assert!(text.contains("0;url=http://127.0.0.1:1/#t=x\""), "{text}");
        assert_eq!((mode & 0o777, path.exists()), (0o600, false));
    }
}
