//! The files of the page, which are part of the program.

/// A file.
#[derive(Debug)]
pub struct File {
    /// Its name.
    pub name: &'static str,
    /// For `Content-Type`.
    pub kind: &'static str,
    /// Its bytes.
    pub content: &'static [u8],
}

static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

static INSTEAD: File = File {
    name: "index.html",
    kind: "text/html; charset=utf-8",
    content: b"<!doctype html><html lang=\"en\"><title>numa</title><h1>numa runs without its page</h1>\n\
        <p>This program was built without Node.js, so it does not contain the page. \
        Install Node.js 20 or later and run <code>cargo xtask build</code> again.</p>\n\
        <p><code>numa stat</code> shows the same metrics in a terminal.</p></html>\n",
};

/// Whether the page is part of this program.
pub fn is_there() -> bool {
    !FILES.is_empty()
}

/// How to get a program with the page.
pub const FIX: &str = "install Node.js 20 or later, then build again with 'cargo xtask build'";

/// The file of that path.
pub fn file(path: &str) -> Option<&'static File> {
    let name = if path == "/" { "index.html" } else { path.strip_prefix('/')? };
    let instead = (!is_there() && name == INSTEAD.name).then_some(&INSTEAD);
    FILES.iter().find(|f| f.name == name).or(instead)
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
}
