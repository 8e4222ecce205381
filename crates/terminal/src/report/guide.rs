//! The tables of criteria and of harms for the documents.

use super::criteria::CRITERIA;
use super::sufferers::HARMS;
use crate::units::grouped;

/// The criteria as Markdown, from the one table there is.
pub fn guide() -> String {
    let mut text =
        String::from("| what | share | least events | from | word | meaning |\n|---|---|---|---|---|---|\n");
    for criterion in CRITERIA {
        let formula = format!("`{}`", criterion.share);
        let minimum = if criterion.events.is_some() { grouped(criterion.minimum) } else { String::new() };
        for (at, (threshold, word, meaning)) in criterion.steps.iter().filter(|s| !s.1.is_empty()).enumerate()
        {
            let [what, share, least] = match at {
                0 => [criterion.name, &formula, &minimum],
                _ => ["", "", ""],
            };
            text.push_str(&format!("| {what} | {share} | {least} | {threshold} % | {word} | {meaning} |\n"));
        }
    }
    text
}

/// What is watched over time as Markdown, from the one table there is.
pub fn harms_guide() -> String {
    let mut text = String::from(
        "| formula | looked at | from | while at least | what it means |\n|---|---|---|---|---|\n",
    );
    for harm in HARMS {
        let scopes: Vec<&str> = harm.scopes.iter().map(|scope| scope.name()).collect();
        let (formula, threshold, does) = (harm.formula, harm.threshold, harm.does);
        let scopes = scopes.join(", else ");
        let least = harm.least.map_or_else(String::new, |(name, least)| format!("`{name}` is {least}"));
        text.push_str(&format!("| `{formula}` | {scopes} | {threshold} % | {least} | {does} |\n"));
    }
    text
}
