//! The guide in the program: the folder `docs` and what it links to, embedded.
//!
//! A page is shown as text for a terminal ([`text`]), or as a page of a web site ([`site`]). Both come from the same Markdown.
//! The list of topics is the index `docs/README.md` ([`topics`]).

mod links;
pub mod site;
pub mod text;
pub mod topics;

pub use topics::{Topic, TopicSection};

use flate2::read::DeflateDecoder;
use std::io::Read;

/// The path of the index.
pub const INDEX: &str = "docs/README.md";

/// An embedded file.
#[derive(Debug)]
pub struct Document {
    /// Its path in the repository, such as `docs/guide/run.md`.
    pub path: &'static str,
    packed: &'static [u8],
}

static DOCUMENTS: &[Document] = &include!(concat!(env!("OUT_DIR"), "/documents.rs"));

/// All embedded files, by path.
pub fn documents() -> &'static [Document] {
    DOCUMENTS
}

/// The file with this path in the repository.
pub fn document(path: &str) -> Option<&'static Document> {
    DOCUMENTS.iter().find(|document| document.path == path)
}

impl Document {
    /// Whether it is a page, and no picture or example.
    pub fn is_page(&self) -> bool {
        self.path.ends_with(".md")
    }

    /// Its content.
    pub fn content(&self) -> Vec<u8> {
        let mut content = Vec::new();
        // The build packed it, so it can be unpacked; the tests unpack all.
        let _ = DeflateDecoder::new(self.packed).read_to_end(&mut content);
        content
    }

    /// Its content as text; what is no text is replaced.
    pub fn markdown(&self) -> String {
        String::from_utf8_lossy(&self.content()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_document_is_embedded_as_it_is() {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for document in documents() {
            assert_eq!(
                document.content(),
                std::fs::read(top.join(document.path)).unwrap(),
                "{}",
                document.path
            );
        }
        let guide =
            std::fs::read_dir(top.join("docs/guide")).unwrap().map(|entry| entry.unwrap().file_name());
        let pages: Vec<_> = guide.filter(|name| name.to_string_lossy().ends_with(".md")).collect();
        assert!(pages.len() > 25, "{pages:?}");
        for name in pages {
            assert!(document(&format!("docs/guide/{}", name.display())).is_some(), "{}", name.display());
        }
    }
}
