//! Takes the page into the program, where it was built before: `cargo xtask build` does.
#![allow(clippy::print_stdout)]

use std::fmt::Write;
use std::path::Path;

/// The files of the page and their kinds.
const FILES: [(&str, &str); 4] = [
    ("index.html", "text/html; charset=utf-8"),
    ("app.js", "text/javascript; charset=utf-8"),
    ("app.css", "text/css; charset=utf-8"),
    ("icon.svg", "image/svg+xml"),
];

fn main() -> std::io::Result<()> {
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/dist");
    println!("cargo::rerun-if-changed={}", dist.display());
    let whole = FILES.iter().all(|(name, _)| dist.join(name).is_file());
    let mut code = String::from("&[\n");
    for (name, kind) in FILES.iter().filter(|_| whole) {
        let path = dist.join(name).canonicalize()?;
        let _ =
            writeln!(code, "File {{ name: {name:?}, kind: {kind:?}, content: include_bytes!({path:?}) }},");
    }
    code.push(']');
    let out = std::env::var_os("OUT_DIR").unwrap_or_default();
    std::fs::write(Path::new(&out).join("page.rs"), code)
}
