//! docs/guide/counters.md: its tables are generated from the classes and events.
#![allow(clippy::unwrap_used)]

use numakit_model::Confidence;
use numakit_sensors::events::{Class, EventTable, Feed, PlatformEvent, Section, TABLES, class};
use std::collections::BTreeMap;
use std::fmt::Write;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/counters.md");
const CLASSES: &str = include_str!("../data/classes.txt");

/// PMU, factor, confidence and the names of the events of one class on one platform.
type Rows = BTreeMap<(String, String, &'static str), Vec<String>>;

fn all() -> Vec<EventTable> {
    TABLES.iter().map(|(_, text)| EventTable::parse(text).unwrap()).collect()
}

fn platforms(tables: &[EventTable]) -> String {
    let mut text = "## Platforms\n\n| platform | events | less sure | from |\n|---|---|---|---|\n".to_owned();
    for table in tables {
        let count = |wanted: &dyn Fn(&PlatformEvent) -> bool| -> usize {
            table.events().filter(|(_, e)| wanted(e)).map(|(_, e)| e.indices.clone().count()).sum()
        };
        let unsure = count(&|e| e.confidence == Confidence::Medium);
        _ = writeln!(text, "| {} | {} | {unsure} | {} |", table.platform, count(&|_| true), table.source);
    }
    text
}

fn factor(feed: &Feed) -> String {
    match feed.factor {
        None => "not added".to_owned(),
        Some(f) if f.over == 1 => f.times.to_string(),
        Some(f) => format!("{}/{}", f.times, f.over),
    }
}

fn pmus(section: &Section) -> String {
    let condition = section.condition.as_ref().map_or(String::new(), |c| {
        format!(" where {}{}{}", c.file, if c.equal { "=" } else { "!=" }, c.value)
    });
    format!("`{}`{condition}", section.pmus.join(","))
}

fn rows(table: &EventTable, class: &Class) -> Rows {
    let mut rows = Rows::new();
    for (section, event) in table.events() {
        for feed in event.feeds.iter().filter(|f| f.class == class) {
            let key = (pmus(section), factor(feed), event.confidence.name());
            rows.entry(key).or_default().push(format!("`{}`", event.name));
        }
    }
    rows
}

/// A class; platforms that count it in the same way share a row.
fn describe(class: &Class, tables: &[EventTable]) -> String {
    let default = if class.default { ", default" } else { "" };
    let mean = if class.mean { ", mean" } else { "" };
    let mut text = format!("### {}\n\n{} ({}{default}{mean})\n\n", class.name, class.help, class.unit);
    text.push_str("| platforms | PMU | events | factor | confidence |\n|---|---|---|---|---|\n");
    let mut alike: Vec<(Rows, Vec<&str>)> = Vec::new();
    for table in tables {
        let rows = rows(table, class);
        match alike.iter_mut().find(|(known, _)| *known == rows) {
            _ if rows.is_empty() => {}
            Some((_, platforms)) => platforms.push(&table.platform),
            None => alike.push((rows, vec![&table.platform])),
        }
    }
    for (rows, platforms) in alike {
        for ((pmus, factor, confidence), events) in rows {
            let (platforms, events) = (platforms.join(", "), events.join(" "));
            _ = writeln!(text, "| {platforms} | {pmus} | {events} | {factor} | {confidence} |");
        }
    }
    text
}

/// Every class under the title of its part of the list.
fn described(tables: &[EventTable]) -> String {
    let lines: Vec<&str> = CLASSES.lines().collect();
    let mut text = String::new();
    for (line, next) in lines.iter().zip(lines.iter().skip(1).chain([&""])) {
        let is_class = |line: &str| line.split(' ').next().and_then(class);
        if let Some(title) = line.strip_prefix("# ").filter(|_| is_class(next).is_some()) {
            _ = write!(text, "{}## {title}\n\n", if text.is_empty() { "" } else { "\n" });
        } else if let Some(class) = is_class(line) {
            let gap = if text.ends_with("\n\n") { "" } else { "\n" };
            _ = write!(text, "{gap}{}", describe(class, tables));
        }
    }
    text
}

fn filled(page: &str) -> String {
    let tables = all();
    let mut text = page.to_owned();
    for (name, content) in [("platforms", platforms(&tables)), ("classes", described(&tables))] {
        let (start, end) = (format!("<!-- {name} -->\n"), "<!-- end -->\n");
        let from = text.find(&start).unwrap_or_else(|| panic!("no place for {name}")) + start.len();
        let to = from + text[from..].find(end).unwrap_or_else(|| panic!("no end of {name}"));
        text.replace_range(from..to, &content);
    }
    text
}

#[test]
fn the_page_of_counters_is_up_to_date() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let wanted = filled(&page);
    if page != wanted {
        assert!(std::env::var_os("UPDATE").is_some(), "docs/guide/counters.md is stale; run with UPDATE=1");
        std::fs::write(PAGE, wanted).unwrap();
    }
}

#[test]
fn every_class_is_on_the_page() {
    let page = described(&all());
    let classes = numakit_sensors::events::classes();
    assert!(classes.iter().all(|c| page.contains(&format!("### {}\n", c.name))));
    assert_eq!(page.matches("\n### ").count(), classes.len());
}
