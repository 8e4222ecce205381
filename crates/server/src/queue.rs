//! What waits to be sent to one client. Frames are dropped, the oldest first, when it is too
//! slow; nobody ever waits for it.

use crate::frame::Frame;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Frames beyond these are dropped.
const FRAMES: usize = 64;
/// Bytes of frames beyond these too, but the newest is always kept.
const BYTES: usize = 8 << 20;
/// A client with more text than this waiting does not read.
const TEXTS: usize = 1024;

/// The queue.
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
    asked: Option<Asked>,
}

/// A question whether the client is there.
#[derive(Debug)]
struct Asked {
    since: Instant,
    sent: bool,
}

/// Something to send.
#[derive(Debug, PartialEq)]
pub enum Outgoing {
    /// A question that every client answers by itself.
    Ping,
    /// A message.
    Text(String),
    /// A frame.
    Binary(Vec<u8>),
    /// Nothing more, for this reason.
    End(String),
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message. A client that left too many unread is let go.
    pub fn text(&self, text: String) {
        let mut inner = self.lock();
        if inner.texts.len() >= TEXTS {
            inner.closed.get_or_insert_with(|| format!("this client did not read {TEXTS} messages"));
        } else {
            inner.texts.push_back(text);
        }
        self.news.notify_one();
    }

    /// Adds a frame, and drops old ones where it has to.
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

    /// Ends the connection once the messages before were sent.
    pub fn close(&self, reason: &str) {
        self.lock().closed.get_or_insert_with(|| reason.to_owned());
        self.news.notify_one();
    }

    /// Asks whether the client is there, unless it was asked before and did not answer.
    pub fn ask(&self) {
        self.lock().asked.get_or_insert_with(|| Asked { since: Instant::now(), sent: false });
        self.news.notify_one();
    }

    /// Something came from the client.
    pub fn heard(&self) {
        self.lock().asked = None;
    }

    /// How long the client has not answered.
    pub fn silence(&self) -> Duration {
        self.lock().asked.as_ref().map_or(Duration::ZERO, |asked| asked.since.elapsed())
    }

    /// Whether it was closed.
    pub fn closed(&self) -> bool {
        self.lock().closed.is_some()
    }

    /// Frames that wait.
    pub fn waiting(&self) -> usize {
        self.lock().frames.len()
    }

    /// The next thing to send: messages before questions, and these before frames.
    pub async fn next(&self) -> Outgoing {
        loop {
            if let Some(next) = self.take() {
                return next;
            }
            self.news.notified().await;
        }
    }

    fn take(&self) -> Option<Outgoing> {
        let mut inner = self.lock();
        if let Some(text) = inner.texts.pop_front() {
            return Some(Outgoing::Text(text));
        }
        if let Some(asked) = inner.asked.as_mut().filter(|asked| !asked.sent) {
            asked.sent = true;
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
    fn the_oldest_frames_go_and_are_counted() {
        let queue = Queue::default();
        (0..FRAMES + 3).for_each(|_| queue.frame(frame(1)));
        let Some(Outgoing::Binary(bytes)) = queue.take() else { panic!("no frame") };
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains(r#""seq":4,"dropped":3"#), "{text}");
    }

    #[test]
    fn who_does_not_answer_is_asked_once_and_known() {
        let queue = Queue::default();
        assert_eq!(queue.silence(), Duration::ZERO);
        (0..3).for_each(|_| queue.ask());
        assert_eq!((queue.take(), queue.take()), (Some(Outgoing::Ping), None));
        std::thread::sleep(Duration::from_millis(2));
        queue.ask();
        assert!(queue.silence() >= Duration::from_millis(2) && queue.take().is_none());
        queue.heard();
        assert_eq!(queue.silence(), Duration::ZERO);
        queue.ask();
        assert_eq!(queue.take(), Some(Outgoing::Ping));
    }

    #[test]
    fn few_large_frames_are_kept_and_one_always() {
        let queue = Queue::default();
        (0..4).for_each(|_| queue.frame(frame(BYTES / 8)));
        let inner = queue.lock();
        assert_eq!((inner.frames.len(), inner.dropped), (1, 3));
    }

    #[test]
    fn a_client_that_reads_no_messages_is_let_go() {
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
