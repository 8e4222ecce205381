//! Programs of other projects that ours are tried with or measured against. They are unpacked, not installed: installing
//! would start servers.

use crate::{process, workspace};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian packages of servers that exports are tested with, 52 MiB together.
const SERVERS: [&str; 5] =
    ["influxdb", "prometheus", "prometheus-node-exporter", "victoria-metrics", "nginx"];

/// Databases that run with the allocator or that samples are pushed to, and their Debian packages with the libraries that a
/// system may lack, 40 MiB.
const DATABASES: [(&str, &[&str]); 3] = [
    ("redis", &["redis-server", "redis-tools", "liblzf1", "libjemalloc2"]),
    ("mariadb", &["mariadb-server-core", "libaio1", "liburing2", "libnuma1", "libpcre2-8-0"]),
    (
        "postgresql",
        &[
            "postgresql-15",
            "postgresql-client-15",
            "libgssapi-krb5-2",
            "libicu72",
            "libk5crypto3",
            "libkeyutils1",
            "libkrb5-3",
            "libkrb5support0",
            "libldap-2.5-0",
            "libpq5",
            "libsasl2-2",
            "libxml2",
        ],
    ),
];

/// The folder with the servers; fetched on first use.
pub fn folder() -> Result<PathBuf> {
    let dir = workspace::target().join("peers");
    let programs = dir.join("usr/bin");
    unpacked(&SERVERS, &dir)?;
    if !programs.join("promtool").exists() {
        bail!("the packages have no promtool");
    }
    Ok(programs)
}

/// The folder with a folder for each database; fetched on first use.
pub fn databases() -> Result<PathBuf> {
    for (name, _) in DATABASES {
        database(name)?;
    }
    Ok(workspace::target().join("peers"))
}

/// The folder with a database, and those of its libraries.
pub fn database(name: &str) -> Result<(PathBuf, Vec<PathBuf>)> {
    let (_, packages) =
        DATABASES.iter().find(|known| known.0 == name).with_context(|| format!("no database {name}"))?;
    let dir = workspace::target().join("peers").join(name);
    unpacked(packages, &dir)?;
    let libraries = libraries(&dir)?;
    Ok((dir, libraries))
}

/// Where unpacked packages have their libraries.
pub fn libraries(dir: &Path) -> Result<Vec<PathBuf>> {
    fs::read_dir(dir.join("usr/lib"))?.map(|folder| Ok(folder?.path())).collect()
}

/// Debian packages, unpacked into a folder on first use. Returns their versions.
pub fn unpacked(packages: &[&str], dir: &Path) -> Result<Vec<String>> {
    let complete = dir.join("complete");
    let known = fs::read_to_string(&complete).unwrap_or_default();
    let (names, versions): (Vec<&str>, Vec<String>) =
        known.lines().filter_map(|line| line.split_once(' ')).map(|(name, v)| (name, v.to_owned())).unzip();
    if names == packages {
        return Ok(versions);
    }
    println!("fetching {} into {}", packages.join(", "), dir.display());
    fs::create_dir_all(dir)?;
    process::read(Command::new("apt-get").args(["--quiet", "download"]).args(packages).current_dir(dir))
        .context("no such packages; 'sudo apt-get update' may help")?;
    let mut files = Vec::new();
    for file in fs::read_dir(dir)? {
        files.extend(Some(file?.path()).filter(|path| path.extension().is_some_and(|e| e == "deb")));
    }
    let mut versions = Vec::new();
    for package in packages {
        let is_its = |name: &str| name.split('_').next() == Some(package);
        let path = files.iter().find(|path| path.file_name().and_then(|n| n.to_str()).is_some_and(is_its));
        let path = path.with_context(|| format!("apt-get downloaded no {package}"))?;
        let field = process::read(Command::new("dpkg-deb").arg("--field").arg(path).arg("Version"))?;
        versions.push(field.trim().to_owned());
        process::run(Command::new("dpkg-deb").arg("--extract").arg(path).arg(dir))?;
        fs::remove_file(path)?;
    }
    let lines = packages.iter().zip(&versions).map(|(name, version)| format!("{name} {version}\n"));
    fs::write(complete, lines.collect::<String>())?;
    Ok(versions)
}
