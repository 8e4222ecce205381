//! A database: PostgreSQL, from its first observation to a race of settings.

use super::followed::Place;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder with PostgreSQL's programs: what xtask has unpacked, or what is installed.
fn programs() -> Option<PathBuf> {
    let peers = std::env::var_os("NUMAKIT_DATABASES").map(|peers| PathBuf::from(peers).join("postgresql"));
    let roots = peers.into_iter().chain([PathBuf::from("/")]);
    let versions =
        |root: PathBuf| std::fs::read_dir(root.join("usr/lib/postgresql")).into_iter().flatten().flatten();
    roots
        .flat_map(versions)
        .map(|version| version.path().join("bin"))
        .find(|bin| bin.join("postgres").is_file())
}

/// A script that starts a program of PostgreSQL. It refuses root, who is another user of a user namespace here.
fn script(programs: &Path, name: &str) -> String {
    let mut text = "#!/bin/sh\n".to_owned();
    let libraries = programs.ancestors().nth(3).map(|lib| lib.join("x86_64-linux-gnu"));
    if let Some(libraries) = libraries.filter(|folder| !programs.starts_with("/usr") && folder.is_dir()) {
        writeln!(text, "export LD_LIBRARY_PATH={}", libraries.display()).unwrap();
    }
    let user = "if [ \"$(id -u)\" = 0 ]; then set -- unshare --user --map-user=1000 --map-group=1000";
    let program = programs.join(name);
    writeln!(text, "{user} {0} \"$@\"; else set -- {0} \"$@\"; fi\nexec \"$@\"", program.display()).unwrap();
    text
}

#[test]
#[ignore = "thorough: a page followed from its first command to its last, 4 minutes"]
fn the_recipe_for_a_database_is_followed() {
    let Some(programs) = programs() else {
        return numakit_skips::SERVERS.skip("there is no postgres; 'cargo xtask test' fetches it");
    };
    let allowed = Command::new("unshare").args(["--user", "--map-user=1000", "true"]).status();
    if !allowed.is_ok_and(|status| status.success()) {
        return numakit_skips::PRIVILEGES.skip("PostgreSQL refuses root, and there are no user namespaces");
    }
    let mut place = Place::new("database").unwrap();
    for name in ["initdb", "postgres", "pg_ctl", "pg_isready", "pgbench", "psql"] {
        place.script(name, &script(&programs, name));
    }
    place.before("trap 'pg_ctl -D data -m immediate stop >/dev/null 2>&1 || true' EXIT");
    let blocks = place.follow("database");
    let printed = |command: &str| {
        let block = blocks.iter().find(|block| block.commands.contains(command));
        block.unwrap_or_else(|| panic!("no {command}")).printed.as_str()
    };
    let observed = printed("numa explain --pid");
    assert!(observed.contains("CPU time") && observed.contains("[postgres]"), "{observed}");
    let cached = printed("numa file show");
    assert!(cached.lines().any(|line| line.starts_with("data/base/")), "{cached}");
    let pages: u64 = printed("shared_memory_size_in_huge_pages").trim().parse().unwrap();
    assert!((64..256).contains(&pages), "128 MiB of buffers in pages of 2 MiB: {pages}");
    let raced = printed("numa tune");
    assert!(raced.contains("numa run --memory interleave postgres"), "{raced}");
}
