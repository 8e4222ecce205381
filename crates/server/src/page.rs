//! The files of the web page, which are embedded in the program.

use std::fmt;
use std::sync::LazyLock;

/// An embedded file.
#[derive(Debug)]
pub struct File {
    /// Its name.
    pub name: &'static str,
    /// For `Content-Type`.
    pub kind: &'static str,
    /// Its bytes.
    pub content: &'static [u8],
}

/// Why this program has no page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPage {
    /// What failed at build time.
    pub reason: &'static str,
    /// How to get a program with the page.
    pub fix: &'static str,
}

impl fmt::Display for NoPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this program was built without its web page: {}; {}", self.reason, self.fix)
    }
}

static FILES: Result<&[File], NoPage> = include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// The page that is served if the real one is missing.
static PLACEHOLDER: LazyLock<Option<File>> = LazyLock::new(|| FILES.err().map(placeholder));

fn placeholder(missing: NoPage) -> File {
    let text = missing.to_string().replace('&', "&amp;").replace('<', "&lt;");
    let content = format!(
        "<!doctype html><html lang=\"en\"><title>numa</title><h1>numa runs without its page</h1>\n\
         <p>{text}.</p>\n<p><code>numa stat</code> shows the same metrics in a terminal.</p></html>\n"
    );
    File { name: "index.html", kind: "text/html; charset=utf-8", content: content.leak().as_bytes() }
}

/// All files of the page, or why this program has none.
pub fn files() -> Result<&'static [File], NoPage> {
    FILES
}

/// The file with this path.
pub fn file(path: &str) -> Option<&'static File> {
    let name = if path == "/" { "index.html" } else { path.strip_prefix('/')? };
    FILES.unwrap_or_default().iter().chain(PLACEHOLDER.as_ref()).find(|file| file.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_always_a_page() {
        assert!(file("/").is_some_and(|f| f.kind.starts_with("text/html") && !f.content.is_empty()));
        for bad in ["", "/x", "//", "/../Cargo.toml", "index.html/"] {
            assert!(file(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_missing_page_says_what_failed_and_what_to_do() {
        let page = placeholder(NoPage { reason: "'npm <ci>' failed", fix: "install npm" });
        let text = std::str::from_utf8(page.content).unwrap();
        assert!(text.contains("without its web page: 'npm &lt;ci>' failed; install npm."), "{text}");
        assert_eq!(page.name, "index.html");
    }
}
