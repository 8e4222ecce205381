//! Known names that are similar to an unknown one.

/// Up to `max` of the known names, nearest first; names that share too little are left out.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>, max: usize) -> Vec<&'a str> {
    let mut ranked: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|candidate| {
            let distance = distance(name, candidate);
            let contained = !name.is_empty() && (candidate.contains(name) || name.contains(candidate));
            let limit = name.len().max(candidate.len()) / 2;
            (contained || distance <= limit)
                .then_some((if contained { distance / 4 } else { distance }, candidate))
        })
        .collect();
    ranked.sort();
    ranked.dedup_by(|a, b| a.1 == b.1);
    ranked.into_iter().take(max).map(|(_, candidate)| candidate).collect()
}

/// Levenshtein distance in bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(x != y)).min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_found() {
        let known = ["pgfault", "pgmajfault", "numa_hit", "numa_miss"];
        assert_eq!(nearest("pgfalt", known, 2), ["pgfault", "pgmajfault"]);
        assert_eq!(nearest("numahit", known, 1), ["numa_hit"]);
        assert!(nearest("zzzzzzzzzzzz", known, 3).is_empty());
    }
}
