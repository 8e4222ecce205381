use super::*;
use std::collections::{BTreeMap, BTreeSet};

/// What stands in this attribute of a page.
fn values<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
    let start = format!(" {attribute}=\"");
    page.split(start.as_str()).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// The path that a link of the page at `from` leads to.
fn target(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => assert!(parts.pop().is_some(), "{from}: {link} leads out of the site"),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn pages() -> BTreeMap<String, String> {
    let pages = files().into_iter().filter(|file| file.kind.starts_with("text/html"));
    pages.map(|file| (file.path, String::from_utf8(file.content).unwrap())).collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading_of_the_site() {
    let pages = pages();
    let paths: BTreeSet<String> = files().into_iter().map(|file| file.path).collect();
    let (mut inside, mut headings) = (0, 0);
    for (path, page) in &pages {
        for link in values(page, "href").into_iter().chain(values(page, "src")) {
            if link.contains("://") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { target(path, file) };
            assert!(paths.contains(&target), "{path} links to {link}: there is no {target}");
            if !heading.is_empty() {
                let there = values(&pages[&target], "id").contains(&heading);
                assert!(there, "{path} links to {link}: {target} has no such heading");
                headings += 1;
            }
            inside += 1;
        }
    }
    assert!(inside > 1000 && headings > 20, "{inside} links, {headings} to headings");
}

#[test]
fn every_page_has_a_title_its_text_and_the_list_of_pages() {
    let pages = pages();
    for document in documents().iter().filter(|document| document.is_page()) {
        let page = &pages[&path_of(document)];
        assert!(page.contains("<title>") && !page.contains("<title> - "), "{}", document.path);
        assert_eq!(page.matches("<h1").count(), 1, "{}", document.path);
        let below_heading = |line: &&str| {
            line.contains("--") && line.contains('|') && line.bytes().all(|b| b"|-: ".contains(&b))
        };
        let tables = document.markdown().lines().filter(below_heading).count();
        assert_eq!(page.matches("<table").count(), tables, "{}", document.path);
        let listed = page.split_once("</nav>").unwrap().0.matches("<li>").count();
        assert_eq!(listed, topics::topics().count(), "{}", document.path);
        let here = topics::topics().filter(|topic| topic.path == document.path).count();
        assert_eq!(page.matches("aria-current").count(), here, "{}", document.path);
        // The server's policy allows neither.
        assert!(!page.contains("<script") && !page.contains(" style="), "{}", document.path);
    }
}

#[test]
fn a_file_is_found_by_its_path_and_nothing_else_is() {
    for known in files() {
        let found = file(&known.path).unwrap();
        assert_eq!((found.kind, found.content == known.content), (known.kind, true), "{}", known.path);
    }
    assert_eq!(file("images/live.png").unwrap().kind, "image/png");
    for unknown in ["", "/", "docs/README.md", "explain", "../Cargo.toml", "explain.md"] {
        assert!(file(unknown).is_none(), "{unknown}");
    }
    let index = String::from_utf8(file(FIRST).unwrap().content).unwrap();
    assert!(index.contains("href=\"explain.html\"") && index.contains("href=\"decisions/0001-"), "{index}");
}
