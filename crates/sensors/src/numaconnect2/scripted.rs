//! A card that a test plays.

use super::registers::{CONTROL, IDENTITY, LENGTH, RUN, Registers, STATUS, STOP};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// What somebody did to a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// A load of 32 bits: card and offset.
    Read(u32, usize),
    /// A store: card, offset and value.
    Write(u32, usize, u32),
}

/// What was done to all cards, in its order.
pub type Diary = Arc<Mutex<Vec<Act>>>;

/// A card with a register file in memory.
#[derive(Debug, Clone)]
pub struct Scripted {
    pub number: u32,
    pub diary: Diary,
    pub words: Arc<Mutex<BTreeMap<usize, u32>>>,
    /// Looks at the status word until an order is served; `None`: never.
    pub patience: Arc<Mutex<Option<u32>>>,
    pub takes_orders: bool,
}

impl Scripted {
    pub fn new(number: u32, diary: &Diary) -> Self {
        let words = BTreeMap::from([(0, IDENTITY), (CONTROL, RUN), (STATUS, RUN)]);
        Self {
            number,
            diary: Arc::clone(diary),
            words: Arc::new(Mutex::new(words)),
            patience: Arc::new(Mutex::new(Some(0))),
            takes_orders: true,
        }
    }

    pub fn set(&self, offset: usize, value: u32) {
        self.words.lock().unwrap().insert(offset, value);
    }

    pub fn count(&self, register: usize, value: u64) {
        self.set(register, value as u32);
        self.set(register + 4, (value >> 32) as u32);
    }

    pub fn answers_after(&self, looks: Option<u32>) {
        *self.patience.lock().unwrap() = looks;
    }

    fn word(&self, offset: usize) -> u32 {
        self.words.lock().unwrap().get(&offset).copied().unwrap_or(0)
    }

    /// As the simulator: an order that is the one served last is none.
    fn serve(&self) {
        let (order, status) = (self.word(CONTROL), self.word(STATUS));
        if order == status & 0xff {
            return;
        }
        let mut patience = self.patience.lock().unwrap();
        match &mut *patience {
            None => {}
            Some(0) => self.set(STATUS, ((status >> 8) + 1) << 8 | order),
            Some(looks) => *looks -= 1,
        }
    }
}

impl Registers for Scripted {
    fn read32(&self, offset: usize) -> Option<u32> {
        assert!(offset.is_multiple_of(4) && offset < LENGTH, "{offset:#x}");
        if offset == STATUS {
            self.serve();
        }
        self.diary.lock().unwrap().push(Act::Read(self.number, offset));
        Some(self.word(offset))
    }

    fn write32(&self, offset: usize, value: u32) {
        assert_eq!(offset, CONTROL, "nothing but the control register is written");
        assert!(value == RUN || value == STOP, "no card is ever reset");
        self.diary.lock().unwrap().push(Act::Write(self.number, offset, value));
        self.set(offset, value);
    }

    fn takes_orders(&self) -> bool {
        self.takes_orders
    }
}
