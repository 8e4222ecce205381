//! One card: orders to it, and its counters.

use super::registers::{BITS, CONTROL, RUN, Registers, STATUS, STOP};

/// A card whose counters are read.
#[derive(Debug)]
pub struct Card {
    /// As in `@card2`.
    pub number: u32,
    registers: Box<dyn Registers>,
    /// It tells which order it has served; orders take time there. Others act at once: the
    /// order and the reads that follow reach the card one after the other.
    acknowledges: bool,
    /// Registers to read, and where their values go.
    slots: Vec<(usize, usize)>,
    state: State,
    /// We have stopped it and not told it to run yet.
    stopped: bool,
    /// Samples for which it did not answer in time.
    late: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The answer to an order is awaited.
    Asked,
    /// It has done as it was told.
    Answered,
    /// It was not given an order, because it did not answer the one before.
    LeftAlone,
}

impl Card {
    /// A card; `acknowledges` if it has a status word.
    pub fn new(number: u32, registers: Box<dyn Registers>, acknowledges: bool) -> Self {
        let state = State::Answered;
        Self { number, registers, acknowledges, slots: Vec::new(), state, stopped: false, late: 0 }
    }

    /// Reads this counter, too.
    pub fn wants(&mut self, register: usize, slot: usize) {
        self.slots.push((register, slot));
    }

    /// Gives the counters their new slots. False when none is left.
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

    /// Before a sample: a card that still has to serve the last order to run is waited for. One
    /// that somebody stopped and left so is told to run.
    pub fn begin(&mut self) {
        self.state = State::Answered;
        if self.acknowledges && self.served() != Some(RUN) {
            if self.registers.read32(CONTROL) != Some(RUN) {
                self.registers.write32(CONTROL, RUN);
            }
            self.state = State::Asked;
        }
    }

    /// Orders the counters to stand still.
    pub fn stop(&mut self) {
        if !self.registers.takes_orders() {
            return;
        }
        if self.state == State::Asked {
            // An order on top of one that was not served would not be seen as one.
            self.state = State::LeftAlone;
            return;
        }
        self.registers.write32(CONTROL, STOP);
        self.stopped = true;
        if self.acknowledges {
            self.state = State::Asked;
        }
    }

    /// Whether the order was served, or none is awaited.
    pub fn answers(&mut self, order: u32) -> bool {
        if self.state == State::Asked && self.served() == Some(order) {
            self.state = State::Answered;
        }
        self.state != State::Asked
    }

    fn served(&self) -> Option<u32> {
        self.registers.read32(STATUS).map(|status| status & 0xff)
    }

    /// The counters, if they stand still.
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

    /// Orders the counters to go on.
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
            format!("card {} did not serve an order within 30 ms, {count}{times} so far", self.number)
        })
    }
}

/// No card is left stopped.
impl Drop for Card {
    fn drop(&mut self) {
        self.run();
    }
}
