//! A card that a test controls.

use super::registers::{CONTROL, IDENTITY, LENGTH, RUN, Registers, STATUS, STOP};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// An access to a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardAccess {
    /// A 32-bit load: card and offset.
    Read(u32, usize),
    /// A 32-bit store: card, offset and value.
    Write(u32, usize, u32),
}

/// The accesses to all cards, in order.
pub type AccessLog = Arc<Mutex<Vec<CardAccess>>>;

/// A card with a register file in memory.
#[derive(Debug, Clone)]
pub struct Scripted {
    pub number: u32,
    pub log: AccessLog,
    pub words: Arc<Mutex<BTreeMap<usize, u32>>>,
    /// Reads of the status word until a command is executed; `None`: never.
    pub patience: Arc<Mutex<Option<u32>>>,
    pub takes_commands: bool,
}

impl Scripted {
    pub fn new(number: u32, log: &AccessLog) -> Self {
        let words = BTreeMap::from([(0, IDENTITY), (CONTROL, RUN), (STATUS, RUN)]);
        Self {
            number,
            log: Arc::clone(log),
            words: Arc::new(Mutex::new(words)),
            patience: Arc::new(Mutex::new(Some(0))),
            takes_commands: true,
        }
    }

    pub fn set(&self, offset: usize, value: u32) {
        self.words.lock().unwrap().insert(offset, value);
    }

    pub fn count(&self, register: usize, value: u64) {
        self.set(register, value as u32);
        self.set(register + 4, (value >> 32) as u32);
    }

    pub fn answers_after(&self, reads: Option<u32>) {
        *self.patience.lock().unwrap() = reads;
    }

    fn word(&self, offset: usize) -> u32 {
        self.words.lock().unwrap().get(&offset).copied().unwrap_or(0)
    }

    /// Like the simulator: a command equal to the last executed one is ignored.
    fn execute(&self) {
        let (command, status) = (self.word(CONTROL), self.word(STATUS));
        if command == status & 0xff {
            return;
        }
        let mut patience = self.patience.lock().unwrap();
        match &mut *patience {
            None => {}
            Some(0) => self.set(STATUS, ((status >> 8) + 1) << 8 | command),
            Some(reads) => *reads -= 1,
        }
    }
}

impl Registers for Scripted {
    fn read32(&self, offset: usize) -> Option<u32> {
        assert!(offset.is_multiple_of(4) && offset < LENGTH, "{offset:#x}");
        if offset == STATUS {
            self.execute();
        }
        self.log.lock().unwrap().push(CardAccess::Read(self.number, offset));
        Some(self.word(offset))
    }

    fn write32(&self, offset: usize, value: u32) {
        assert_eq!(offset, CONTROL, "nothing but the control register is written");
        assert!(value == RUN || value == STOP, "no card is ever reset");
        self.log.lock().unwrap().push(CardAccess::Write(self.number, offset, value));
        self.set(offset, value);
    }

    fn takes_commands(&self) -> bool {
        self.takes_commands
    }
}
