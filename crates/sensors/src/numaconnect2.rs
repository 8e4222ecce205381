//! `numaconnect2`: counters of the interconnect cards of a NumaConnect2 machine.
//!
//! A sample is coherent: all cards are stopped, then read, then started again. Nothing is reset, so
//! counters only grow, and other programs that read the cards are not disturbed.

mod card;
pub(crate) mod find;
pub(crate) mod registers;
#[cfg(test)]
mod scripted;
pub mod table;
#[cfg(test)]
mod tests;

use crate::Scene;
use crate::sensor::{Probed, Sensor, SensorEntry, Tick, narrow};
use card::Card;
use numakit_model::{Instance, Metric, Series};
use std::sync::Arc;
use std::time::Duration;
use table::{COUNTERS, Counter};

/// Line of the table of sensors.
pub const ENTRY: SensorEntry = SensorEntry {
    name: "numaconnect2",
    help: "NumaConnect2 interconnect cards: data sent and received, cache, waiting time.",
    default: by_default,
    known: || COUNTERS.iter().map(Counter::metric).collect(),
    probe,
};

/// Reading a register of a card is slow, so most are only read on request.
fn by_default(metric: &Metric) -> bool {
    table::counter(metric.bare()).is_some_and(|counter| counter.default)
}

/// How long a card may take to execute a command: number of pauses, and length of one.
const PAUSES: u32 = 60;
const PAUSE: Duration = Duration::from_micros(500);

#[derive(Debug)]
struct NumaConnect2 {
    series: Vec<Series>,
    cards: Vec<Card>,
}

fn probe(scene: &Scene<'_>) -> Probed {
    Ok(Box::new(NumaConnect2::of(find::cards(scene.root)?)))
}

impl NumaConnect2 {
    fn of(mut cards: Vec<Card>) -> Self {
        let mut series = Vec::new();
        for counter in COUNTERS.iter() {
            let metric = Arc::new(counter.metric());
            for card in &mut cards {
                card.add(counter.register, series.len());
                series.push(Series::new(&metric, Instance::Device(card.number)));
            }
        }
        Self { series, cards }
    }

    /// Waits until every card has executed the command or the pauses are used up.
    fn settle(&mut self, command: u32, pauses: &mut u32) {
        // Not short-circuited: each card stores its own state.
        while self.cards.iter_mut().fold(false, |waiting, card| !card.has_executed(command) | waiting) {
            if *pauses == 0 {
                return;
            }
            *pauses -= 1;
            std::thread::sleep(PAUSE);
        }
    }
}

impl Sensor for NumaConnect2 {
    fn series(&self) -> &[Series] {
        &self.series
    }

    fn keep(&mut self, wanted: &dyn Fn(&Series) -> bool) {
        let successors = narrow(&mut self.series, wanted);
        self.cards.retain_mut(|card| card.keep(&successors));
    }

    /// Every card has a mapping, and those in files a descriptor.
    fn files(&self) -> usize {
        self.cards.len()
    }

    fn read(&mut self, _: &Tick, out: &mut [Option<u64>]) {
        let mut pauses = PAUSES;
        self.cards.iter_mut().for_each(Card::begin);
        self.settle(registers::RUN, &mut pauses);
        self.cards.iter_mut().for_each(Card::stop);
        self.settle(registers::STOP, &mut pauses);
        self.cards.iter_mut().for_each(|card| card.read(out));
        self.cards.iter_mut().for_each(Card::run);
    }

    fn failure(&self) -> Option<String> {
        self.cards.iter().find_map(Card::failure)
    }
}
