//! The queue of messages to one client. If the client is too slow, the oldest frames are dropped;
//! nothing waits for it.

use crate::frame::Frame;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Maximum number of frames.
const FRAMES: usize = 64;
/// Maximum size of all frames in bytes; the newest is always kept.
const BYTES: usize = 8 << 20;
/// Maximum number of waiting texts; a client with more is disconnected.
const TEXTS: usize = 1024;

/// What waits to be sent to one client.
#[derive(Debug, Default)]
pub struct Queue {
    inner: Mutex<Inner>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    texts: VecDeque<String>,
    frames: VecDeque<Frame>,
    bytes: usize,
    seq: u64,
    dropped: u64,
    closed: Option<String>,
    ping: Option<Ping>,
}

/// A ping without an answer yet.
#[derive(Debug)]
struct Ping {
    since: Instant,
    sent: bool,
}

/// Something to send.
#[derive(Debug, PartialEq)]
pub enum Outgoing {
    /// A ping, which WebSocket clients answer automatically.
    Ping,
    /// A message.
    Text(String),
    /// A frame.
    Binary(Vec<u8>),
    /// The last message, with the reason.
    End(String),
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message. A client with too many unread ones is disconnected.
    pub fn text(&self, text: String) {
        let mut inner = self.lock();
        if inner.texts.len() >= TEXTS {
            inner.closed.get_or_insert_with(|| format!("this client did not read {TEXTS} messages"));
        } else {
            inner.texts.push_back(text);
        }
        self.news.notify_one();
    }

    /// Adds a frame, and drops old ones beyond the limits.
    pub fn frame(&self, frame: Frame) {
        let mut inner = self.lock();
        inner.bytes += frame.len();
        inner.frames.push_back(frame);
        while inner.frames.len() > FRAMES || (inner.bytes > BYTES && inner.frames.len() > 1) {
            let Some(old) = inner.frames.pop_front() else { break };
            inner.bytes -= old.len();
            inner.dropped += 1;
        }
        self.news.notify_one();
    }

    /// Closes the connection after the messages before were sent.
    pub fn close(&self, reason: &str) {
        self.lock().closed.get_or_insert_with(|| reason.to_owned());
        self.news.notify_one();
    }

    /// Pings the client, unless an answer is outstanding.
    pub fn ping(&self) {
        self.lock().ping.get_or_insert_with(|| Ping { since: Instant::now(), sent: false });
        self.news.notify_one();
    }

    /// The client sent something.
    pub fn answered(&self) {
        self.lock().ping = None;
    }

    /// How long the current ping has been unanswered.
    pub fn silence(&self) -> Duration {
        self.lock().ping.as_ref().map_or(Duration::ZERO, |ping| ping.since.elapsed())
    }

    /// Whether it was closed.
    pub fn closed(&self) -> bool {
        self.lock().closed.is_some()
    }

    /// Whether messages wait.
    pub fn has_texts(&self) -> bool {
        !self.lock().texts.is_empty()
    }

    /// Number of waiting frames.
    pub fn waiting(&self) -> usize {
        self.lock().frames.len()
    }

    /// The next thing to send: messages before pings before frames.
    pub async fn next(&self) -> Outgoing {
        loop {
            if let Some(next) = self.take() {
                return next;
            }
            self.news.notified().await;
        }
    }

    /// The next thing to send, if there is one.
    pub(crate) fn take(&self) -> Option<Outgoing> {
        let mut inner = self.lock();
        if let Some(text) = inner.texts.pop_front() {
            return Some(Outgoing::Text(text));
        }
        if let Some(ping) = inner.ping.as_mut().filter(|ping| !ping.sent) {
            ping.sent = true;
            return Some(Outgoing::Ping);
        }
        if let Some(reason) = &inner.closed {
            return Some(Outgoing::End(reason.clone()));
        }
        let frame = inner.frames.pop_front()?;
        inner.bytes -= frame.len();
        inner.seq += 1;
        let (seq, dropped) = (inner.seq + inner.dropped, inner.dropped);
        drop(inner);
        Some(Outgoing::Binary(frame.bytes(seq, dropped)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_history::Raw;

    fn frame(rows: usize) -> Frame {
        let raw = Raw { times: vec![0; rows], columns: Vec::new() };
        Frame::of_rows(1, 0, &[], 0, &raw)
    }

    #[test]
    fn the_oldest_frames_are_dropped_and_counted() {
        let queue = Queue::default();
        (0..FRAMES + 3).for_each(|_| queue.frame(frame(1)));
        let Some(Outgoing::Binary(bytes)) = queue.take() else { panic!("no frame") };
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains(r#""seq":4,"dropped":3"#), "{text}");
    }

    #[test]
    fn a_silent_client_is_pinged_once() {
        let queue = Queue::default();
        assert_eq!(queue.silence(), Duration::ZERO);
        (0..3).for_each(|_| queue.ping());
        assert_eq!((queue.take(), queue.take()), (Some(Outgoing::Ping), None));
        std::thread::sleep(Duration::from_millis(2));
        queue.ping();
        assert!(queue.silence() >= Duration::from_millis(2) && queue.take().is_none());
        queue.answered();
        assert_eq!(queue.silence(), Duration::ZERO);
        queue.ping();
        assert_eq!(queue.take(), Some(Outgoing::Ping));
    }

    #[test]
    fn large_frames_are_limited_but_one_is_always_kept() {
        let queue = Queue::default();
        (0..4).for_each(|_| queue.frame(frame(BYTES / 8)));
        let inner = queue.lock();
        assert_eq!((inner.frames.len(), inner.dropped), (1, 3));
    }

    #[test]
    fn a_client_that_reads_no_messages_is_disconnected() {
        let queue = Queue::default();
        (0..TEXTS + 10).for_each(|n| queue.text(n.to_string()));
        assert!(queue.closed());
        let texts = std::iter::from_fn(|| match queue.take() {
            Some(Outgoing::Text(text)) => Some(text),
            _ => None,
        });
        assert_eq!(texts.count(), TEXTS);
        assert!(matches!(queue.take(), Some(Outgoing::End(_))));
    }
}
