//! Compares names of machines.

/// Words that do not distinguish machines: vendors, families whose models have numbers of their own, and what `lscpu`
/// prints around a model.
const IGNORED: [&str; 32] = [
    "amd",
    "ampere",
    "amazon",
    "arm",
    "aws",
    "cavium",
    "fujitsu",
    "huawei",
    "ibm",
    "intel",
    "marvell",
    "nvidia",
    "r",
    "tm",
    "c",
    "cpu",
    "cpus",
    "processor",
    "processors",
    "server",
    "core",
    "cores",
    "socket",
    "sockets",
    "with",
    "xeon",
    "epyc",
    "opteron",
    "threadripper",
    "ryzen",
    "platinum",
    "gold",
];
/// Letters that belong to the number behind them.
const PREFIXES: [&str; 4] = ["x", "nps", "snc", "v"];
/// A machine has fewer packages, and models have larger numbers.
const MAX_COUNT: u32 = 64;

/// What a name says, in any order: `2x AMD EPYC 7763, NPS 4` and `EPYC 7763 x2 NPS4` have the same pieces.
pub fn pieces(name: &str) -> Vec<String> {
    let name = name.to_lowercase().replace('×', "x");
    let words = name.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | '/' | '@'));
    // A number of cores and a frequency say nothing beside the model.
    let words = words.filter(|word| !word.ends_with("-core") && !word.ends_with("hz"));
    let runs: Vec<String> = words.flat_map(runs).collect();
    let mut pieces = joined(&runs);
    pieces.retain(|piece| !IGNORED.contains(&piece.as_str()) && piece != "x1");
    for (word, count) in [("single", None), ("dual", Some("x2")), ("quad", Some("x4"))] {
        if let Some(at) = pieces.iter().position(|piece| piece == word) {
            pieces.remove(at);
            pieces.extend(count.map(str::to_owned));
        }
    }
    pieces.sort();
    pieces
}

/// The runs of letters and of digits in a word.
fn runs(word: &str) -> Vec<String> {
    let mut runs: Vec<String> = Vec::new();
    let kind = |c: char| (c.is_ascii_digit(), c == '+', c.is_alphanumeric());
    let mut last = None;
    for c in word.chars() {
        let now = (c.is_alphanumeric() || c == '+').then(|| kind(c));
        match (now, runs.last_mut()) {
            (Some(_), Some(run)) if now == last => run.push(c),
            (Some(_), _) => runs.push(c.to_string()),
            (None, _) => {}
        }
        last = now;
    }
    runs
}

/// Joins letters with the number that they belong to: `x 2` and `2 x` become `x2`.
fn joined(runs: &[String]) -> Vec<String> {
    let is_count =
        |at: usize| runs.get(at).and_then(|run| run.parse().ok()).is_some_and(|n: u32| n <= MAX_COUNT);
    let mut pieces: Vec<String> = Vec::new();
    let mut at = 0;
    while at < runs.len() {
        let run = &runs[at];
        if PREFIXES.contains(&run.as_str()) && is_count(at + 1) {
            pieces.push(format!("{run}{}", runs[at + 1]));
            at += 1;
        } else if run == "x" && at > 0 && is_count(at - 1) {
            let count = pieces.pop().unwrap_or_default();
            pieces.push(format!("x{count}"));
        } else {
            pieces.push(run.clone());
        }
        at += 1;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn spellings_of_a_machine() {
        let same = |a: &str, b: &str| assert_eq!(pieces(a), pieces(b), "{a}, {b}");
        same("EPYC 9755 x2", "2 x AMD EPYC 9755 128-Core Processor");
        same("EPYC 9755 x2", "2x epyc-9755");
        same("EPYC 9755 x2", "dual EPYC 9755");
        same("EPYC 9755 x2", "AMD EPYC(TM) 9755 × 2");
        same("EPYC 7763 x2 NPS4", "nps 4 EPYC 7763 x2");
        same("Xeon E5-2680 v4 x2", "Intel(R) Xeon(R) CPU E5-2680v4 @ 2.40GHz x2");
        same("Xeon Platinum 8480+ x2", "Xeon 8480+ x2");
        same("Graviton3", "AWS Graviton 3");
        same("Threadripper 2990WX", "1x AMD Ryzen Threadripper 2990WX 32-Core Processor");
        let differ = |a: &str, b: &str| assert_ne!(pieces(a), pieces(b), "{a}, {b}");
        differ("EPYC 7763 x2 NPS4", "EPYC 7763 x4 NPS2");
        differ("EPYC 7763 x2", "EPYC 7763");
        differ("EPYC 7763 x2", "EPYC 7763 x2 NPS4");
        differ("Xeon 8480+", "Xeon 8480");
    }
}
