//! Parses tables of events.

use super::class::{class, classes};
use super::{Condition, EventTable, Feed, Identity, Open, PlatformEvent, Section, Spread};
use crate::glob::Pattern;
use crate::pmu::{Factor, Terms};
use numakit_model::{Confidence, suggest};
use std::ops::{Range, RangeInclusive};
use thiserror::Error;

/// A table that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {wrong}; {fix}")]
pub struct TableError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, with the text.
    pub wrong: String,
    /// What is expected.
    pub fix: String,
}

/// What is wrong, and what is expected.
type Fault = (String, String);

/// Keys of lines with the CPUs of a table.
const CPUS: [&str; 3] = ["cpu", "midr", "pvr"];
const HEAD: &str = "a table starts with the lines 'platform NAME' and 'source TEXT', and may say which CPUs it \
                    is for: 'cpu GenuineIntel-6-8F', 'midr 0x41-0xd0c' or 'pvr 0x0080'";
const TITLE: &str = "write [PMUS per SPREAD], as in [uncore_imc_* per package]; 'once-per-node' or \
     'each-chip', at the end 'where FILE=VALUE' or 'where FILE!=VALUE'";
const LINE: &str = "write NAME | TERMS | CLASSES | CONFIDENCE | DESCRIPTION, as in \
                    'READS | event=0x4,umask=0x3 | dram_read*64 | high | Lines read.'";
const SPREADS: [(&str, Spread); 6] = [
    ("machine", Spread::Machine),
    ("package", Spread::Package),
    ("node", Spread::Node),
    ("link", Spread::Link),
    ("target", Spread::Target),
    ("cpu", Spread::Cpu),
];
/// Maximum number of indices of one line.
const MAX_INDICES: u32 = 1024;

pub(super) fn table(text: &str) -> Result<EventTable, TableError> {
    let mut table = EventTable { platform: String::new(), source: String::new(), sections: Vec::new() };
    let mut last = 1;
    for (at, line) in lines(text) {
        last = at;
        read_line(&mut table, line).map_err(|(wrong, fix)| TableError { line: at, wrong, fix })?;
    }
    let missing = |what: &str| TableError {
        line: last,
        wrong: format!("the table ends without {what}"),
        fix: HEAD.to_owned(),
    };
    match () {
        () if table.platform.is_empty() => Err(missing("the line 'platform NAME'")),
        () if table.source.is_empty() => Err(missing("the line 'source TEXT'")),
        () if table.sections.is_empty() => Err(missing("a section [PMUS per SPREAD]")),
        () => Ok(table),
    }
}

/// Whether a table is for a machine; only parses its first lines and titles of sections.
pub(super) fn fits(text: &str, identity: &Identity, pmus: &[String]) -> bool {
    let head = lines(text).map(|(_, line)| line).take_while(|line| !line.starts_with('['));
    let named: Vec<_> = head.filter_map(word).filter(|(key, _)| CPUS.contains(key)).collect();
    if !named.is_empty() {
        return named.iter().any(|(key, patterns)| identity.is_one_of(key, patterns));
    }
    lines(text).filter(|(_, line)| line.starts_with('[')).any(|(_, line)| {
        let patterns = line.trim_start_matches('[').split(' ').next().unwrap_or_default();
        let mut patterns = patterns.split(',').map(Pattern::new);
        patterns.any(|pattern| pmus.iter().any(|pmu| pattern.fits(pmu)))
    })
}

/// Lines that are not empty, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

fn word(line: &str) -> Option<(&str, &str)> {
    let (word, rest) = line.split_once(' ')?;
    Some((word, rest.trim()))
}

fn read_line(table: &mut EventTable, line: &str) -> Result<(), Fault> {
    if let Some(title) = line.strip_prefix('[') {
        table.sections.push(
            title
                .strip_suffix(']')
                .and_then(section)
                .ok_or_else(|| (format!("'{line}' is not the title of a section"), TITLE.to_owned()))?,
        );
        return Ok(());
    }
    if let Some(section) = table.sections.last_mut() {
        let event = event(line)?;
        if section.events.iter().any(|other| other.name == event.name) {
            return Err((
                format!("'{}' is in this section twice", event.name),
                "leave one of them out".into(),
            ));
        }
        section.events.push(event);
        return Ok(());
    }
    match word(line) {
        Some(("platform", name)) => table.platform = name.to_owned(),
        Some(("source", text)) => table.source = text.to_owned(),
        Some((key, _)) if CPUS.contains(&key) => {}
        _ => return Err((format!("'{line}' is before the first section"), HEAD.to_owned())),
    }
    Ok(())
}

fn section(title: &str) -> Option<Section> {
    let mut words = title.split_whitespace();
    let pmus: Vec<String> = words.next()?.split(',').map(str::to_owned).collect();
    let (open, per) = match words.next()? {
        "once-per-node" => (Open::OncePerNode, words.next()?),
        "each-chip" => (Open::EachChip, words.next()?),
        per => (Open::Everywhere, per),
    };
    let spread = words.next()?;
    let spread = SPREADS.iter().find(|(name, _)| *name == spread)?.1;
    let condition = match words.next() {
        Some("where") => Some(condition(words.next()?)?),
        Some(_) => return None,
        None => None,
    };
    let whole = per == "per" && words.next().is_none() && !pmus.iter().any(String::is_empty);
    whole.then_some(Section { pmus, open, spread, condition, events: Vec::new() })
}

fn condition(text: &str) -> Option<Condition> {
    let (file, value) = text.split_once('=')?;
    let (file, equal) = file.strip_suffix('!').map_or((file, true), |file| (file, false));
    let sound = !file.is_empty() && !value.is_empty() && !file.contains(['/', '.']);
    sound.then(|| Condition { file: file.to_owned(), value: value.to_owned(), equal })
}

fn event(line: &str) -> Result<PlatformEvent, Fault> {
    let columns: Vec<&str> = line.splitn(5, '|').map(str::trim).collect();
    let [name, terms, feeds, confidence, help] = columns.as_slice() else {
        return Err((format!("'{line}' has {} of 5 columns", columns.len()), LINE.to_owned()));
    };
    let (name, at) = name_and_number(name)?;
    let indices = indices(name)?;
    let (known, terms) = read_terms(terms)?;
    let feeds = feeds.split_whitespace().map(feed).collect::<Result<Vec<_>, _>>()?;
    if feeds.is_empty() {
        return Err((format!("'{name}' has no class"), LINE.to_owned()));
    }
    let confidence = [Confidence::High, Confidence::Medium].into_iter().find(|c| c.name() == *confidence);
    let confidence = confidence.ok_or_else(|| {
        (format!("'{}' is not a confidence", columns[3]), "write 'high' or 'medium'".to_owned())
    })?;
    Ok(PlatformEvent {
        name: name.to_owned(),
        indices,
        at,
        known,
        terms,
        feeds,
        confidence,
        help: (*help).to_owned(),
    })
}

fn name_and_number(text: &str) -> Result<(&str, Option<u32>), Fault> {
    let fault = || {
        let wrong = format!("'{text}' is not a name of an event");
        (wrong, "write letters, digits and _ . -, with [0-11] for an index and @3 for a number".to_owned())
    };
    let (name, number) = match text.split_once('@') {
        Some((name, number)) => (name, Some(number.parse::<u16>().map_err(|_| fault())?.into())),
        None => (text, None),
    };
    let sound = |c: char| c.is_ascii_alphanumeric() || "_.-[]".contains(c);
    if name.is_empty() || !name.chars().all(sound) { Err(fault()) } else { Ok((name, number)) }
}

fn indices(name: &str) -> Result<RangeInclusive<u32>, Fault> {
    let Some((_, range)) = index_of(name) else { return Ok(0..=0) };
    if range.start() > range.end() || *range.end() >= MAX_INDICES {
        let wrong = format!("'{name}' has the indices {} to {}", range.start(), range.end());
        return Err((wrong, format!("write [FIRST-LAST], with LAST from FIRST to {}", MAX_INDICES - 1)));
    }
    Ok(range)
}

/// The position of the index range in a name, and the range.
pub(crate) fn index_of(name: &str) -> Option<(Range<usize>, RangeInclusive<u32>)> {
    let start = name.find('[')?;
    let end = start + name[start..].find(']')?;
    let (first, last) = name[start + 1..end].split_once('-')?;
    Some((start..end + 1, first.parse().ok()?..=last.parse().ok()?))
}

type KnownAndTerms = (Option<String>, Option<Terms>);

fn read_terms(text: &str) -> Result<KnownAndTerms, Fault> {
    let (known, rest) = match text.strip_prefix("sysfs:") {
        Some(rest) => {
            let (name, terms) = rest.split_once(',').map_or((rest, None), |(name, t)| (name, Some(t)));
            (Some(name.to_owned()), terms)
        }
        None => (None, Some(text)),
    };
    if known.as_ref().is_some_and(String::is_empty) {
        return Err((
            format!("'{text}' has no event"),
            "write sysfs:NAME, as in 'sysfs:mem_access'".to_owned(),
        ));
    }
    let parse = |text| {
        Terms::parse(text).map_err(|e| (format!("'{text}' are not the terms of an event"), e.to_string()))
    };
    Ok((known, rest.map(parse).transpose()?))
}

fn feed(text: &str) -> Result<Feed, Fault> {
    let (name, factor) = text.split_once('*').map_or((text, None), |(name, f)| (name, Some(f)));
    let class = class(name).ok_or_else(|| {
        let known = classes().iter().map(|c| c.name).filter(|_| name.len() < 64);
        let fix = match suggest::nearest(name, known, 1).first() {
            Some(near) => format!("did you mean '{near}'?"),
            None => "the classes are in docs/guide/counters.md".to_owned(),
        };
        (format!("there is no class '{name}'"), fix)
    })?;
    let fault = || {
        let wrong = format!("'{text}' has an invalid factor");
        (wrong, "write CLASS, CLASS*NUMBER or CLASS*NUMBER/NUMBER, as in 'link_data_out*64/9'".to_owned())
    };
    let factor = factor.map(|f| read_factor(f).ok_or_else(fault)).transpose()?;
    Ok(Feed { class, factor })
}

/// Each part is below 2^32, so that a 64-bit count times a factor has at most 96 bits.
fn read_factor(text: &str) -> Option<Factor> {
    let (times, over) = text.split_once('/').unwrap_or((text, "1"));
    let whole = |text: &str| {
        let digits = text.starts_with(|c: char| c.is_ascii_digit());
        text.parse::<u32>().ok().filter(|&n| digits && n > 0).map(u64::from)
    };
    Some(Factor { times: whole(times)?, over: whole(over)? })
}
