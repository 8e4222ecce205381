//! Counts of recovered operands by rule.

use numakit_sampling::operand::{Operand, RecoveryRule};
use std::collections::BTreeMap;

/// Counts of one rule.
#[derive(Debug, Default, Clone, Copy)]
pub struct Count {
    pub samples: u64,
    pub exact: u64,
    pub page: u64,
    pub object: u64,
}

/// Counts of one program.
#[derive(Debug, Default, Clone)]
pub struct Table {
    pub steps: u64,
    pub by_rule: BTreeMap<RecoveryRule, Count>,
    /// Accesses whose address stayed unknown, and those taken for computing.
    pub unknown: u64,
    pub missed: u64,
    /// Instructions without memory, by whether they are jumps: all, and those taken for accesses.
    pub plain: [u64; 2],
    pub plain_as_memory: [u64; 2],
}

/// What was true of a sample.
#[derive(Clone)]
pub struct Expected {
    pub addresses: Vec<u64>,
    pub jump: bool,
}

impl Table {
    pub fn add(&mut self, expected: &Expected, found: &Operand, object: &dyn Fn(u64) -> Option<u64>) -> bool {
        let Some(&first) = expected.addresses.first() else {
            let kind = usize::from(expected.jump);
            self.plain[kind] += 1;
            self.plain_as_memory[kind] += u64::from(*found != Operand::Computing);
            return *found == Operand::Computing;
        };
        let (rule, address) = match *found {
            Operand::Memory(access) => (access.rule, access.address),
            Operand::Object { base, .. } => (RecoveryRule::Object, base),
            Operand::Unknown { .. } | Operand::ThreadLocal { .. } => {
                self.unknown += 1;
                return false;
            }
            Operand::Computing => {
                self.missed += 1;
                return false;
            }
        };
        let count = self.by_rule.entry(rule).or_default();
        count.samples += 1;
        let exact = expected.addresses.contains(&address);
        let page = expected.addresses.iter().any(|e| e >> 12 == address >> 12);
        let same = object(first).is_some() && object(first) == object(address);
        count.exact += u64::from(exact);
        count.page += u64::from(page);
        count.object += u64::from(same);
        if rule.is_exact() { exact } else { same }
    }

    /// Samples of accesses.
    pub fn accesses(&self) -> u64 {
        self.by_rule.values().map(|c| c.samples).sum::<u64>() + self.unknown + self.missed
    }

    /// Shares of all accesses: as exact as the rule promises, and on the right page or, where only the object is
    /// promised, in it.
    pub fn exact(&self) -> f64 {
        let right = |(rule, c): (&RecoveryRule, &Count)| if rule.is_exact() { c.exact } else { c.object };
        share(self.by_rule.iter().map(right).sum(), self.accesses())
    }

    pub fn page(&self) -> f64 {
        let right = |(rule, c): (&RecoveryRule, &Count)| if rule.is_exact() { c.page } else { c.object };
        share(self.by_rule.iter().map(right).sum(), self.accesses())
    }

    pub fn unknown(&self) -> f64 {
        share(self.unknown, self.accesses())
    }

    /// The share of accesses with the true address, whatever the rule promises.
    pub fn strictly_exact(&self) -> f64 {
        share(self.by_rule.values().map(|c| c.exact).sum(), self.accesses())
    }

    pub fn head() -> String {
        let rules: String = RecoveryRule::ALL.iter().map(|r| format!(" {:>15}", r.word())).collect();
        format!(
            "{:<8} {:>7} {:>7} {:>6} {:>6} {:>6} {:>6} {:>6} {:>5} {:>5} |{rules}",
            "", "steps", "access", "right", "page", "addr", "unkn", "missed", "plain", "jump"
        )
    }

    pub fn line(&self, name: &str) -> String {
        let rule = |rule: &RecoveryRule| {
            let Some(c) = self.by_rule.get(rule) else { return format!(" {:>15}", "") };
            let right = if rule.is_exact() { c.exact } else { c.object };
            format!(" {:>7.2} ({:>5.1})", share(c.samples, self.accesses()), share(right, c.samples))
        };
        let rules: String = RecoveryRule::ALL.iter().map(rule).collect();
        format!(
            "{name:<8} {:>7} {:>7} {:>6.2} {:>6.2} {:>6.2} {:>6.2} {:>6.2} {:>5.2} {:>5.2} |{rules}",
            self.steps,
            self.accesses(),
            self.exact(),
            self.page(),
            self.strictly_exact(),
            self.unknown(),
            share(self.missed, self.accesses()),
            share(self.plain_as_memory[0], self.plain[0]),
            share(self.plain_as_memory[1], self.plain[1]),
        )
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}
