//! The HTML text, with the data in elements that are not executed.

use crate::page::{self, NoPage};
use data_encoding::BASE64;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::io::Write;

/// Tags around a block of data. Browsers do not execute a script element of this type.
const OPEN: &str = "<script type=\"application/octet-stream\">";
/// The same around results of `numa explain`.
const OPEN_RESULT: &str = "<script type=\"application/x-numa-results\">";
const CLOSE: &str = "</script>\n";

/// Everything except the data.
pub struct Shell<'a> {
    head: String,
    script: &'a str,
}

impl<'a> Shell<'a> {
    /// From the embedded page.
    pub fn of_page() -> Result<Self, NoPage> {
        let files = page::files()?;
        // The build embeds all of them or none.
        let content =
            |name| files.iter().find(|file| file.name == name).map_or(&b""[..], |file| file.content);
        let text = |name| std::str::from_utf8(content(name)).unwrap_or_default();
        Ok(Self::new(text("app.js"), text("app.css"), content("icon.svg")))
    }

    /// From this script, style and icon. The policy allows only them, by their hashes.
    pub fn new(script: &'a str, style: &str, icon: &[u8]) -> Self {
        let policy = format!(
            "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'",
            hash(script),
            hash(style)
        );
        let icon = BASE64.encode(icon);
        let head = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>numakit</title>\n\
             <link rel=\"icon\" type=\"image/svg+xml\" href=\"data:image/svg+xml;base64,{icon}\">\n\
             <style>{style}</style>\n</head>\n<body>\n\
             <noscript>This page needs JavaScript.</noscript>\n"
        );
        Self { head, script }
    }

    /// Its size.
    pub fn len(&self) -> u64 {
        self.html(std::iter::empty()).len() as u64
    }

    /// The file with these blocks.
    pub fn html<'b>(&self, blocks: impl Iterator<Item = &'b str>) -> Vec<u8> {
        let mut html = self.head.clone().into_bytes();
        for block in blocks {
            html.extend_from_slice(block.as_bytes());
        }
        for part in ["<script>", self.script, "</script>\n</body>\n</html>\n"] {
            html.extend_from_slice(part.as_bytes());
        }
        html
    }
}

/// Bytes as a block: compressed, and in Base64.
pub fn block(bytes: &[u8]) -> String {
    packed(OPEN, bytes)
}

/// Results of `numa explain` as a block.
pub fn result_block(bytes: &[u8]) -> String {
    packed(OPEN_RESULT, bytes)
}

fn packed(open: &str, bytes: &[u8]) -> String {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory cannot fail.
    let packed = packer.write_all(bytes).and_then(|()| packer.finish()).unwrap_or_default();
    let mut text = String::with_capacity(open.len() + packed.len() / 3 * 4 + 4 + CLOSE.len());
    text.push_str(open);
    BASE64.encode_append(&packed, &mut text);
    text.push_str(CLOSE);
    text
}

fn hash(text: &str) -> String {
    format!("'sha256-{}'", BASE64.encode(&Sha256::digest(text.as_bytes())))
}
