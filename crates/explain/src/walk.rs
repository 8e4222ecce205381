//! How instructions walk through memory: in steps, at random, along a chain, or not at all; and how much of each step they
//! use. From what a thread is about to do next.

use numakit_sampling::operand::{AccessKind, MemoryAccess, RecoveryRule};
use std::collections::BTreeMap;

/// Larger steps are jumps: neither lines nor pages follow one another.
const MAX_STEP: u64 = 4096;
/// Bytes in which use is counted.
const WORD: u64 = 8;
/// Different steps that are kept, and different jumps.
const MAX_STEPS: usize = 16;
/// With fewer looks than this, a walk says nothing.
const MIN_LOOKS: u64 = 8;

/// What was found by looking where an instruction, or all instructions that access an object, went next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryWalk {
    /// Looks that found the instruction's next execution.
    pub looks: u64,
    /// Looks that found the same address again, unchanged by this thread, as when it waits for another thread's write.
    pub same: u64,
    /// Looks that found the next address at most a page away.
    pub steps: u64,
    /// Looks that found the next address farther away.
    pub jumps: u64,
    /// The distances of these jumps with how often each was found, at least: of many different ones only the most frequent are
    /// kept.
    by_jump: BTreeMap<u64, u64>,
    /// Looks at a chain: the next address is a value that the instruction itself, or one at the same place, loads before.
    pub chained: u64,
    /// For each step in bytes, how often it was found and which words of it are used.
    by_step: BTreeMap<u64, StepUse>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct StepUse {
    looks: u64,
    words: BTreeMap<u64, u64>,
}

/// A step through an array of structures, and how much of it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineUse {
    /// The step, in bytes.
    pub step: u64,
    /// The bytes of it that are used.
    pub used: u64,
}

impl MemoryWalk {
    /// Notes that a thread accessed `address` by this instruction, and is about to make the accesses `ahead`. `rule` says
    /// how the address was found.
    pub fn look(&mut self, instruction: u64, address: u64, rule: RecoveryRule, ahead: &[MemoryAccess]) {
        // What a function keeps on its stack is there at each call.
        if rule == RecoveryRule::Stack {
            return;
        }
        if rule == RecoveryRule::Chain {
            self.chained += 1;
            self.looks += 1;
            return;
        }
        let mut again = ahead.iter().enumerate().filter(|(_, access)| access.instruction == instruction);
        let Some((first, next)) = again.next() else { return };
        let second = again.next();
        let end = second.map_or(ahead.len(), |(second, _)| second);
        // The address of another execution of the instruction tells no step: that one may be among those ahead. Their own
        // distance does.
        let (from, next) = match (rule.is_exact(), second) {
            (true, _) => (address, next),
            (false, Some((_, second))) => (next.address, second),
            (false, None) => return,
        };
        let step = next.address.abs_diff(from);
        // A thread that changes it, as a count of references, waits for nobody. Locks are taken by atomic instructions.
        let changes = |access: &MemoryAccess| {
            access.address == from && matches!(access.kind, AccessKind::Store | AccessKind::Update)
        };
        self.looks += 1;
        match step {
            0 if changes(next) || ahead[..end].iter().any(changes) => {}
            0 => self.same += 1,
            step if step <= MAX_STEP => {
                self.steps += 1;
                if self.by_step.len() < MAX_STEPS || self.by_step.contains_key(&step) {
                    self.by_step.entry(step).or_default().add(step, ahead[first].address, &ahead[first..end]);
                }
            }
            _ if next.rule == RecoveryRule::Chain => self.chained += 1,
            step => {
                self.jumps += 1;
                self.add_jump(step, 1);
            }
        }
    }

    /// Counts a jump. Where there is no room for another distance, one jump of each that is kept makes up for it, so that what is
    /// most of the jumps stays.
    fn add_jump(&mut self, distance: u64, count: u64) {
        if self.by_jump.len() < MAX_STEPS || self.by_jump.contains_key(&distance) {
            *self.by_jump.entry(distance).or_default() += count;
            return;
        }
        self.by_jump.retain(|_, kept| {
            *kept = kept.saturating_sub(count);
            *kept > 0
        });
    }

    /// Adds the walk of another instruction.
    pub fn add(&mut self, other: &Self) {
        self.looks += other.looks;
        self.same += other.same;
        self.steps += other.steps;
        self.jumps += other.jumps;
        self.chained += other.chained;
        other.by_jump.iter().for_each(|(distance, count)| self.add_jump(*distance, *count));
        for (step, used) in &other.by_step {
            let sum = self.by_step.entry(*step).or_default();
            sum.looks += used.looks;
            used.words.iter().for_each(|(word, count)| *sum.words.entry(*word).or_default() += count);
        }
    }

    fn share(&self, count: u64) -> Option<f64> {
        (self.looks >= MIN_LOOKS).then(|| count as f64 / self.looks as f64)
    }

    /// The share of looks that found a jump to an address that is known without waiting for this access.
    pub fn random(&self) -> Option<f64> {
        self.share(self.jumps)
    }

    /// The share of looks that found the next address elsewhere, whether it was known before or had to be loaded: each of
    /// these accesses needs another page.
    pub fn scattered(&self) -> Option<f64> {
        self.share(self.jumps + self.chained)
    }

    /// The distance of most looks, in bytes, if that is more than a page: a column of a matrix that is stored by rows.
    pub fn stride(&self) -> Option<u64> {
        let (distance, count) = self.by_jump.iter().max_by_key(|(_, count)| **count)?;
        (self.looks >= MIN_LOOKS && count * 2 >= self.looks).then_some(*distance)
    }

    /// The share of looks at chains.
    pub fn chain(&self) -> Option<f64> {
        self.share(self.chained)
    }

    /// The share of looks that found the same address again.
    pub fn waiting(&self) -> Option<f64> {
        self.share(self.same)
    }

    /// The most frequent step, if it is that of most steps.
    pub fn line_use(&self) -> Option<LineUse> {
        let (step, used) = self.by_step.iter().max_by_key(|(_, used)| used.looks)?;
        let is_most = used.looks >= MIN_LOOKS && used.looks * 2 > self.looks;
        is_most.then(|| LineUse { step: *step, used: (used.words.len() as u64 * WORD).min(*step) })
    }
}

impl StepUse {
    /// Adds the accesses that were found during one step. Their distances from `first` are counted modulo the step.
    fn add(&mut self, step: u64, first: u64, accesses: &[MemoryAccess]) {
        self.looks += 1;
        // Instructions that come earlier in the loop are already in the next step.
        for access in accesses.iter().filter(|access| access.address.abs_diff(first) < 2 * step) {
            let at = access.address.wrapping_sub(first).wrapping_add(2 * step) % step;
            let end = at + u64::from(access.size.max(1));
            for word in at / WORD..end.div_ceil(WORD) {
                *self.words.entry(word % step.div_ceil(WORD)).or_default() += 1;
            }
        }
    }
}

impl LineUse {
    /// The used share of the lines that are fetched for a step.
    pub fn share(&self, line: u64) -> f64 {
        match self.step >= line {
            // The lines that hold the used bytes are fetched in any case.
            true => self.used as f64 / (self.used.div_ceil(line) * line) as f64,
            false => self.used as f64 / self.step as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(instruction: u64, address: u64, size: u32) -> MemoryAccess {
        MemoryAccess { instruction, address, size, kind: AccessKind::Load, rule: RecoveryRule::Direct }
    }

    fn walked(ahead: impl Fn(u64) -> Vec<MemoryAccess>, rule: RecoveryRule) -> MemoryWalk {
        let mut walk = MemoryWalk::default();
        (0..20).for_each(|n| walk.look(0x400, 0x10_0000 + n * 0x9000, rule, &ahead(0x10_0000 + n * 0x9000)));
        walk
    }

    #[test]
    fn a_field_of_a_structure_is_a_part_of_each_step() {
        let walk = walked(
            |at| {
                vec![
                    access(0x410, at + 104, 8),
                    access(0x400, at + 96, 8),
                    access(0x410, at + 200, 8),
                    access(0x400, at + 192, 8),
                ]
            },
            RecoveryRule::Direct,
        );
        let used = walk.line_use().unwrap();
        assert_eq!(used, LineUse { step: 96, used: 16 });
        assert_eq!((used.share(64), walk.random(), walk.chain()), (0.25, Some(0.0), Some(0.0)));
    }

    #[test]
    fn a_stream_uses_all_of_its_lines() {
        let walk = walked(|at| (1..5).map(|n| access(0x400, at + n * 8, 8)).collect(), RecoveryRule::Slice);
        assert_eq!(walk.line_use().unwrap().share(64), 1.0);
    }

    #[test]
    fn jumps_chains_and_waiting_are_told_apart() {
        let far = walked(|at| vec![access(0x400, at + (5 << 20), 8)], RecoveryRule::Direct);
        assert_eq!((far.random(), far.line_use(), far.stride()), (Some(1.0), None, Some(5 << 20)));
        let stack = walked(|at| vec![access(0x400, at, 8)], RecoveryRule::Stack);
        assert_eq!((stack.looks, stack.waiting()), (0, None), "a function's own stack is not waited for");
        let chain = walked(|_| Vec::new(), RecoveryRule::Chain);
        assert_eq!((chain.chain(), chain.random()), (Some(1.0), Some(0.0)));
        assert_eq!((chain.scattered(), far.scattered()), (Some(1.0), Some(1.0)));
        let spin = walked(|at| vec![access(0x400, at, 4)], RecoveryRule::Fused);
        assert_eq!(spin.waiting(), Some(1.0));
        let count =
            |kind| walked(|at| vec![MemoryAccess { kind, ..access(0x400, at, 8) }], RecoveryRule::Direct);
        assert_eq!(
            [AccessKind::Update, AccessKind::Atomic].map(|kind| count(kind).waiting()),
            [Some(0.0), Some(1.0)]
        );
        let stores =
            |at| vec![MemoryAccess { kind: AccessKind::Store, ..access(0x404, at, 8) }, access(0x400, at, 8)];
        assert_eq!(walked(stores, RecoveryRule::Direct).waiting(), Some(0.0), "a count in two instructions");
        // Where no next execution is found, nothing is known.
        assert_eq!(walked(|_| Vec::new(), RecoveryRule::Direct).random(), None);
    }

    /// The registers of a load that overwrites them tell another execution, as that of a bucket in `p = table[hash]`.
    #[test]
    fn two_executions_ahead_tell_a_step_where_the_sampled_one_is_gone() {
        let table =
            |at: u64| vec![access(0x400, at, 8), access(0x408, at, 8), access(0x400, at + (9 << 20), 8)];
        let far = walked(table, RecoveryRule::Next);
        assert_eq!((far.random(), far.looks), (Some(1.0), 20));
        let stream = walked(|at| vec![access(0x400, at, 8), access(0x400, at + 8, 8)], RecoveryRule::Next);
        assert_eq!((stream.random(), stream.line_use().map(|used| used.step)), (Some(0.0), Some(8)));
        assert_eq!(walked(|at| vec![access(0x400, at, 8)], RecoveryRule::Next).looks, 0);
    }

    #[test]
    fn a_field_beside_the_link_is_of_the_chain() {
        let link = |at: u64, distance: u64| {
            let next = access(0x400, at + distance, 8);
            vec![access(0x404, at, 8), MemoryAccess { rule: RecoveryRule::Chain, ..next }]
        };
        let far = walked(|at| link(at, 5 << 20), RecoveryRule::Direct);
        assert_eq!((far.chain(), far.random()), (Some(1.0), Some(0.0)));
        // In order, the next one is there before it is asked for.
        let near = walked(|at| link(at, 64), RecoveryRule::Direct);
        assert_eq!((near.chain(), near.random()), (Some(0.0), Some(0.0)));
    }

    #[test]
    fn a_stride_is_most_of_many_jumps() {
        let mut random = 88_172_645_463_325_252u64;
        let mut walked = |strided: u64| {
            let mut walk = MemoryWalk::default();
            for n in 0..300 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let next = if n % 10 < strided { 46_336 } else { 8192 + random % (1 << 30) };
                walk.look(0x400, 1 << 40, RecoveryRule::Direct, &[access(0x400, (1 << 40) + next, 8)]);
            }
            walk
        };
        let strides = [0, 3, 7, 10].map(|strided| walked(strided).stride());
        assert_eq!(strides, [None, None, Some(46_336), Some(46_336)]);
        let mut sum = walked(10);
        sum.add(&walked(8));
        assert_eq!(sum.stride(), Some(46_336));
    }

    #[test]
    fn walks_add_up() {
        let mut sum = walked(|at| vec![access(0x400, at + 128, 8)], RecoveryRule::Direct);
        sum.add(&sum.clone());
        assert_eq!((sum.looks, sum.steps, sum.line_use()), (40, 40, Some(LineUse { step: 128, used: 8 })));
    }
}
