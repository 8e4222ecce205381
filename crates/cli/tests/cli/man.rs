//! Man pages and completions after `cargo install`.

use crate::runner::Folder;
use std::fs;

#[test]
fn man_pages_are_printed_and_written() {
    let folder = Folder::new("man");
    let written = folder.run("man --dir share/man/man1");
    assert_eq!(written.code, 0, "{}", written.err);
    let pages = fs::read_dir(folder.path("share/man/man1")).unwrap().count();
    assert_eq!(written.out, format!("share/man/man1: {pages} pages\n"));
    for (name, file) in [("numa", "numa.1"), ("run", "numa-run.1"), ("numaplace", "numaplace.1")] {
        let page = folder.run(&format!("man {name}"));
        assert!(page.code == 0 && page.out.contains(".SH SYNOPSIS"), "{name}: {}", page.err);
        assert_eq!(page.out, fs::read_to_string(folder.path("share/man/man1").join(file)).unwrap());
    }
    assert_eq!(folder.run("man").out, folder.run("man numa").out);
    assert_eq!(folder.run("man numakit").out, folder.run("man numa").out);
    let link = fs::read_to_string(folder.path("share/man/man1/numakit.1")).unwrap();
    assert_eq!(link, ".so man1/numa.1\n");
}

#[test]
fn names_without_page_or_completions_are_refused_with_the_known_ones() {
    let folder = Folder::new("man-wrong");
    folder.run("man rnu").says(2, "there is no man page 'rnu'; there are: numa, numa-explain, ");
    folder.run("man run --dir x").says(2, "cannot be used with");
    folder
        .run("completions bash numa-run")
        .says(2, "no completions for 'numa-run'; there are: numakit, numa, numascope, numaplace");
    folder.run("completions tcsh").says(2, "bash, elvish, fish, powershell, zsh");
    fs::write(folder.path("file"), "").unwrap();
    folder.run("man --dir file/man1").says(2, "cannot create the folder file/man1");
}

#[test]
fn every_shell_has_completions_of_every_program() {
    let folder = Folder::new("completions");
    for shell in ["bash", "zsh", "fish"] {
        for program in ["numa", "numakit", "numaplace"] {
            let script = folder.run(&format!("completions {shell} {program}"));
            assert!(script.code == 0 && script.out.contains(program), "{shell}: {}", script.err);
        }
    }
}
