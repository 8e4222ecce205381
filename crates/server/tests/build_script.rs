//! What the build script says if it cannot build the page.
#![allow(dead_code, clippy::unwrap_used)]

#[path = "../build.rs"]
mod script;

use script::Missing;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    let path =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("build-script-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// The result with these shell scripts instead of Node.js and npm.
fn missing(name: &str, [node, npm]: [&str; 2]) -> Missing {
    let folder = folder(name);
    let program = |name: &str, script: &str| {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let programs = [program("node", node), program("npm", npm)];
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
    let missing =
        script::build(&web, &folder.join("web"), [&programs[0], &programs[1]]).unwrap().unwrap_err();
    fs::remove_dir_all(folder).unwrap();
    missing
}

#[test]
fn what_is_missing_is_named_with_its_fix() {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
    let folder = folder("none");
    let none = script::build(&web, &folder, ["no-such-node", "npm"]).unwrap().unwrap_err();
    fs::remove_dir_all(folder).unwrap();
    assert!(none.reason.starts_with("'no-such-node --version' could not be started"), "{none:?}");
    let old = missing("old", ["echo v12.22.9", "exit 0"]);
    assert!(old.reason.ends_with("node --version' says v12.22.9"), "{old:?}");
    let no_npm = missing("no-npm", ["echo v20.1.0", "echo broken >&2; exit 3"]);
    assert!(no_npm.reason.ends_with("npm --version' failed (exit status: 3): broken"), "{no_npm:?}");
    for found in [none, old, no_npm] {
        assert!(found.fix.contains("install Node.js 18.17"), "{found:?}");
    }
    let offline = missing("offline", ["echo v18.17.0", "case $1 in ci) echo no network >&2; exit 1; esac"]);
    assert!(offline.reason.contains("npm ci ") && offline.reason.ends_with(": no network"), "{offline:?}");
    assert!(offline.fix.contains("registry"), "{offline:?}");
}

#[test]
fn an_incomplete_page_is_refused() {
    let dist = folder("dist");
    for name in ["index.html", "app.js", "app.css"] {
        fs::write(dist.join(name), name).unwrap();
    }
    let error = script::embed(&dist).unwrap_err().to_string();
    assert!(error.starts_with("there is no ") && error.ends_with("icon.svg"), "{error}");
    fs::write(dist.join("icon.svg"), "").unwrap();
    let code = script::embed(&dist).unwrap();
    assert!(code.starts_with("Ok(&[") && code.matches("include_bytes!").count() == 4, "{code}");
    fs::remove_dir_all(dist).unwrap();
}

#[test]
fn why_there_is_no_page_is_an_expression_of_the_type_in_the_sources() {
    let missing = Missing { reason: "no \"npm\"".into(), fix: "install".into() };
    let expression = missing.expression();
    assert_eq!(expression, r#"Err(NoPage { reason: "no \"npm\"", fix: "install" })"#);
    let name = expression.split(['(', ' ']).nth(1).unwrap();
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/page.rs")).unwrap();
    let fields = "    /// What failed at build time.\n    pub reason: &'static str,";
    assert!(page.contains(&format!("pub struct {name} {{\n{fields}")), "{name}");
}
