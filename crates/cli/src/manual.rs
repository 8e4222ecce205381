//! The man pages of each program, each verb and each task of a verb, generated from the definitions of their command lines.

use crate::{SECOND_NAME, help};
use anyhow::Context;
use clap::Command;
use clap_mangen::Man;
use std::fs;
use std::path::Path;

/// A man page.
#[derive(Debug)]
pub struct Page {
    /// Its name, as for `man`: `numa`, `numa-run`.
    pub name: String,
    /// The name of its file: `numa-run.1`.
    pub file: String,
    /// Its roff source.
    pub source: String,
}

/// All pages of these programs: that of a program, then those of its verbs, each with its tasks.
pub fn pages(programs: Vec<Command>) -> anyhow::Result<Vec<Page>> {
    let mut pages = Vec::new();
    for program in programs {
        // A page of 'numa help' is not useful.
        let mut program = program.disable_help_subcommand(true);
        program.build();
        let verbs = program.get_subcommands().filter(|verb| !verb.is_hide_set());
        let with_tasks = verbs.flat_map(|verb| std::iter::once(verb).chain(verb.get_subcommands()));
        for command in std::iter::once(&program).chain(with_tasks) {
            pages.push(page(command.clone())?);
        }
    }
    pages.push(second_name());
    Ok(pages)
}

/// A page that man(1) replaces by that of `numa`.
fn second_name() -> Page {
    let name = SECOND_NAME.to_owned();
    Page { file: format!("{name}.1"), name, source: ".so man1/numa.1\n".to_owned() }
}

fn page(command: Command) -> anyhow::Result<Page> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let man =
        Man::new(command.clone()).manual("numakit").source(concat!("numakit ", env!("CARGO_PKG_VERSION")));
    let mut source = Vec::new();
    help::render(&man, &command, &mut source)?;
    Ok(Page { name, file: man.get_filename(), source: String::from_utf8(source)? })
}

/// The page with this name, or of this verb.
pub fn find<'a>(pages: &'a [Page], name: &str) -> anyhow::Result<&'a Page> {
    let name = if name == SECOND_NAME { "numa" } else { name };
    let page = pages.iter().find(|page| page.name == name || page.name.strip_prefix("numa-") == Some(name));
    page.with_context(|| {
        let names: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
        format!("there is no man page '{name}'; there are: {}", names.join(", "))
    })
}

/// Writes all pages into a folder, which is created if it does not exist.
pub fn write(pages: &[Page], folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
    for page in pages {
        let path = folder.join(&page.file);
        fs::write(&path, &page.source).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs;

    #[test]
    fn every_program_and_every_verb_has_a_page() {
        let pages = pages(programs()).unwrap();
        for program in programs() {
            let name = program.get_name().to_owned();
            assert!(pages.iter().any(|page| page.name == name), "{name}");
            for verb in program.get_subcommands().filter(|verb| !verb.is_hide_set()) {
                let page = find(&pages, verb.get_name()).unwrap();
                assert_eq!(page.file, format!("{name}-{}.1", verb.get_name()));
                assert!(page.source.contains(".SH SYNOPSIS"), "{}", page.source);
            }
        }
        let run = find(&pages, "numa-run").unwrap();
        assert!(
            run.source.contains(".TH numa-run 1") && run.source.contains("\\-\\-policy"),
            "{}",
            run.source
        );
        assert!(run.source.contains(".SH \"SEE ALSO\"\n\\fBnuma help guide run"), "{}", run.source);
        let missing = find(&pages, "runn").unwrap_err().to_string();
        assert!(missing.contains("'runn'; there are: numa, numa-"), "{missing}");
    }
}
