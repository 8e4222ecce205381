//! The tables of criteria and of rules, for documents.

use super::bottlenecks::RULES;
use super::criteria::CRITERIA;
use crate::units::grouped;

/// The criteria as Markdown.
pub fn guide() -> String {
    let mut text = String::from(
        "| what | share | minimum events | from | word | meaning |\n|---|---|---|---|---|---|\n",
    );
    for criterion in CRITERIA {
        let formula = format!("`{}`", criterion.share);
        let minimum = if criterion.events.is_some() { grouped(criterion.minimum) } else { String::new() };
        for (at, (threshold, word, meaning)) in criterion.steps.iter().filter(|s| !s.1.is_empty()).enumerate()
        {
            let [what, share, minimum] = match at {
                0 => [criterion.name, &formula, &minimum],
                _ => ["", "", ""],
            };
            text.push_str(&format!(
                "| {what} | {share} | {minimum} | {threshold} % | {word} | {meaning} |\n"
            ));
        }
    }
    text
}

/// The rules as Markdown.
pub fn rules_guide() -> String {
    let mut text =
        String::from("| formula | per | from | minimum | what it means |\n|---|---|---|---|---|\n");
    for rule in RULES {
        let scopes: Vec<&str> = rule.scopes.iter().map(|scope| scope.name()).collect();
        let (formula, threshold, does) = (rule.formula, rule.threshold, rule.does);
        let scopes = scopes.join(", else ");
        let minimum = rule.minimum.map_or_else(String::new, |(name, value)| format!("`{name}` of {value}"));
        text.push_str(&format!("| `{formula}` | {scopes} | {threshold} % | {minimum} | {does} |\n"));
    }
    text
}
