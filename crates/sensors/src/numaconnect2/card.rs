//! One card: its commands and its counters.

use super::registers::{BITS, CONTROL, RUN, Registers, STATUS, STOP};

/// A card whose counters are read.
#[derive(Debug)]
pub struct Card {
    /// As in `@card2`.
    pub number: u32,
    registers: Box<dyn Registers>,
    /// It has a status word with the last executed command, since execution takes time. Other cards
    /// act at once: the command and the reads after it reach them in order.
    acknowledges: bool,
    /// Registers to read, and the slots of their values.
    slots: Vec<(usize, usize)>,
    state: State,
    /// We have stopped it and not started it again.
    stopped: bool,
    /// Number of samples for which it was too slow.
    late: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It has not executed the last command yet.
    Asked,
    /// It has executed the last command.
    Answered,
    /// It got no command, because it had not executed the one before.
    LeftAlone,
}

impl Card {
    /// A card; `acknowledges` if it has a status word.
    pub fn new(number: u32, registers: Box<dyn Registers>, acknowledges: bool) -> Self {
        let state = State::Answered;
        Self { number, registers, acknowledges, slots: Vec::new(), state, stopped: false, late: 0 }
    }

    /// Also reads this counter.
    pub fn add(&mut self, register: usize, slot: usize) {
        self.slots.push((register, slot));
    }

    /// Moves the counters to their new slots. False if none is left.
    pub fn keep(&mut self, successors: &[Option<usize>]) -> bool {
        self.slots.retain_mut(|(_, slot)| match successors[*slot] {
            Some(new) => {
                *slot = new;
                true
            }
            None => false,
        });
        !self.slots.is_empty()
    }

    /// Before a sample: waits for a card that still has to execute the last start. Starts a card that
    /// another program left stopped.
    pub fn begin(&mut self) {
        self.state = State::Answered;
        if self.acknowledges && self.last_executed() != Some(RUN) {
            if self.registers.read32(CONTROL) != Some(RUN) {
                self.registers.write32(CONTROL, RUN);
            }
            self.state = State::Asked;
        }
    }

    /// Stops the counters.
    pub fn stop(&mut self) {
        if !self.registers.takes_commands() {
            return;
        }
        if self.state == State::Asked {
            // The card would not notice a command while it has not executed the one before.
            self.state = State::LeftAlone;
            return;
        }
        self.registers.write32(CONTROL, STOP);
        self.stopped = true;
        if self.acknowledges {
            self.state = State::Asked;
        }
    }

    /// Whether the command was executed, or there is none.
    pub fn has_executed(&mut self, command: u32) -> bool {
        if self.state == State::Asked && self.last_executed() == Some(command) {
            self.state = State::Answered;
        }
        self.state != State::Asked
    }

    fn last_executed(&self) -> Option<u32> {
        self.registers.read32(STATUS).map(|status| status & 0xff)
    }

    /// Reads the counters, if they are stopped.
    pub fn read(&mut self, out: &mut [Option<u64>]) {
        if self.state != State::Answered {
            self.late += 1;
            return;
        }
        for (register, slot) in &self.slots {
            if let Some(slot) = out.get_mut(*slot) {
                *slot = self.counter(*register);
            }
        }
    }

    fn counter(&self, register: usize) -> Option<u64> {
        let low = self.registers.read32(register)?;
        let high = self.registers.read32(register + 4)?;
        Some((u64::from(high) << 32 | u64::from(low)) & ((1 << BITS) - 1))
    }

    /// Starts the counters.
    pub fn run(&mut self) {
        if std::mem::take(&mut self.stopped) {
            self.registers.write32(CONTROL, RUN);
        }
    }

    /// Why the last sample has no values.
    pub fn failure(&self) -> Option<String> {
        (self.state != State::Answered).then(|| {
            let times = if self.late == 1 { "once" } else { "times" };
            let count = if self.late == 1 { String::new() } else { format!("{} ", self.late) };
            format!("card {} did not execute a command within 30 ms, {count}{times} so far", self.number)
        })
    }
}

/// Leaves no card stopped.
impl Drop for Card {
    fn drop(&mut self) {
        self.run();
    }
}
