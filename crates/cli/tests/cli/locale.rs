//! Box-drawing characters follow the locale.

use crate::runner::{Done, Folder};

#[test]
fn lines_of_the_tree_are_in_the_characters_of_the_locale() {
    let folder = Folder::new("locale");
    let tree = |set: &[(&str, &str)]| {
        let mut command = folder.numa("topo --synthetic");
        command.arg("package:2 node:2(mem=32G) core:4 pu:2");
        for name in ["LC_ALL", "LC_CTYPE", "LANG"] {
            command.env_remove(name);
        }
        let done = Done::of(command.envs(set.iter().copied()).output().unwrap());
        assert_eq!(done.code, 0, "{}", done.err);
        done.out
    };
    let drawn = tree(&[("LANG", "C.UTF-8")]);
    assert!(drawn.contains("├─ ") && drawn.contains("└─ "), "{drawn}");
    let plain = tree(&[("LANG", "C.UTF-8"), ("LC_ALL", "C")]);
    assert!(plain.is_ascii() && plain.contains("|- ") && plain.contains("`- "), "{plain}");
    let widths = |text: &str| text.lines().map(|line| line.chars().count()).collect::<Vec<_>>();
    assert_eq!(widths(&plain), widths(&drawn));
    assert_eq!(tree(&[("LC_ALL", "POSIX")]), plain);
    assert_eq!(tree(&[("LC_CTYPE", "de_DE.ISO-8859-1"), ("LANG", "C.UTF-8")]), plain);
    assert_eq!(tree(&[]), plain);
    assert_eq!(tree(&[("LC_ALL", ""), ("LC_CTYPE", "en_GB.utf8"), ("LANG", "C")]), drawn);
}

#[test]
fn verbs_print_ascii_in_locale_c() {
    let folder = Folder::new("locale-verbs");
    folder.run("record -i 5ms -e pgfault -o a.arrows -- sleep 0.1").says(0, "samples");
    for line in
        ["topo", "topo --hardware", "plan -c 1 --explain", "ps", "show a.arrows", "doctor", "list", "--help"]
    {
        let done = Done::of(folder.numa(line).env("LC_ALL", "C").output().unwrap());
        assert!(done.out.is_ascii() && !done.out.is_empty(), "{line}: {}", done.out);
    }
}
