//! Messages as lines of JSON on standard input and output. The transport of rmcp ignores a line that is not JSON, and sends no
//! identifier with an error of one that is no message: a client would wait for an answer, or not recognise it.

use rmcp::RoleServer;
use rmcp::model::ErrorData;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Serialize;
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

/// Longer lines are refused, and not kept in memory.
const MAX_LINE: usize = 16 << 20;

type Message = RxJsonRpcMessage<RoleServer>;

/// A stream of lines in, and one out.
pub(crate) struct Lines<R, W> {
    input: BufReader<R>,
    /// What was read of the next line.
    line: Vec<u8>,
    /// The line was too long, and its rest is skipped.
    skips: bool,
    output: Arc<Mutex<W>>,
    /// The answer to a line that is no message, while it is written: a call of `receive` may be given up before its end.
    refusal: Option<JoinHandle<io::Result<()>>>,
}

/// What was read.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Whole,
    TooLong,
    End,
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> Lines<R, W> {
    pub(crate) fn new(input: R, output: W) -> Self {
        let output = Arc::new(Mutex::new(output));
        Self { input: BufReader::new(input), line: Vec::new(), skips: false, output, refusal: None }
    }

    /// Reads on until the end of a line.
    async fn read_line(&mut self) -> io::Result<Line> {
        loop {
            let room = (MAX_LINE - self.line.len()) as u64;
            let count = (&mut self.input).take(room).read_until(b'\n', &mut self.line).await?;
            let ends = count == 0 || self.line.ends_with(b"\n");
            match () {
                () if !ends && self.line.len() < MAX_LINE => {}
                () if !ends => {
                    self.line.clear();
                    self.skips = true;
                }
                () if self.skips => {
                    self.line.clear();
                    self.skips = false;
                    return Ok(Line::TooLong);
                }
                () if self.line.is_empty() => return Ok(Line::End),
                () => return Ok(Line::Whole),
            }
        }
    }

    /// Writes a message as one line, in a task of its own: a part of a line must not be the last that is written.
    fn write(&self, message: &impl Serialize) -> JoinHandle<io::Result<()>> {
        let line = serde_json::to_vec(message);
        let output = Arc::clone(&self.output);
        tokio::spawn(async move {
            let mut line = line?;
            line.push(b'\n');
            let mut output = output.lock().await;
            output.write_all(&line).await?;
            output.flush().await
        })
    }
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> Transport<RoleServer>
    for Lines<R, W>
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let written = self.write(&message);
        async move { written.await.map_err(io::Error::other)? }
    }

    async fn receive(&mut self) -> Option<Message> {
        loop {
            if let Some(refusal) = &mut self.refusal {
                let written = refusal.await;
                self.refusal = None;
                written.ok()?.ok()?;
            }
            let refusal = match self.read_line().await.ok()? {
                Line::End => return None,
                Line::TooLong => {
                    let limit = MAX_LINE >> 20;
                    let why = format!("a line has more than {limit} MiB; send shorter messages");
                    refusal(Value::Null, &ErrorData::parse_error(why, None))
                }
                Line::Whole => match parse(&std::mem::take(&mut self.line)) {
                    Ok(Some(message)) => return Some(message),
                    Ok(None) => continue,
                    Err(refusal) => refusal,
                },
            };
            self.refusal = Some(self.write(&refusal));
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The message of a line; none if it is empty or an unknown notification, which nobody answers; else the answer.
fn parse(line: &[u8]) -> Result<Option<Message>, Value> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    let no_message = match serde_json::from_slice(line) {
        Ok(message) => return Ok(Some(message)),
        Err(error) => error,
    };
    let value: Value = serde_json::from_slice(line).map_err(|error| {
        let why = format!("a line is not JSON ({error}); send each message as one line of JSON");
        refusal(Value::Null, &ErrorData::parse_error(why, None))
    })?;
    let identifier = value.get("id").filter(|id| id.is_string() || id.is_number());
    if value.get("method").is_some_and(Value::is_string) && value.get("id").is_none() {
        return Ok(None);
    }
    let why = format!(
        "a line is no message of JSON-RPC 2.0 ({no_message}); send objects with jsonrpc, id and method"
    );
    Err(refusal(identifier.cloned().unwrap_or_default(), &ErrorData::invalid_request(why, None)))
}

fn refusal(id: Value, error: &ErrorData) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The codes and identifiers of the answers to what a client sends, and the methods of what is received.
    fn talk(input: &[u8]) -> (Vec<(i64, Value)>, Vec<String>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut methods = Vec::new();
        let written = runtime.block_on(async {
            let (mut out, end) = tokio::io::duplex(1 << 16);
            let mut lines = Lines::new(input, end);
            while let Some(message) = lines.receive().await {
                methods.push(serde_json::to_value(&message).unwrap()["method"].as_str().unwrap().to_owned());
            }
            drop(lines);
            let mut text = String::new();
            out.read_to_string(&mut text).await.unwrap();
            text
        });
        let answers = written.lines().map(|line| {
            let answer: Value = serde_json::from_str(line).unwrap();
            assert_eq!(answer["jsonrpc"], "2.0");
            (answer["error"]["code"].as_i64().unwrap(), answer["id"].clone())
        });
        (answers.collect(), methods)
    }

    const PING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;

    #[test]
    fn what_is_not_json_is_answered_and_the_next_message_is_received() {
        for broken in ["{", "nonsense", "{\"jsonrpc\":\"2.0\",", "\u{fffd}", "[1,"] {
            let (answers, methods) = talk(format!("{broken}\n{PING}\n").as_bytes());
            assert_eq!(
                (answers, methods),
                (vec![(-32700, Value::Null)], vec!["ping".to_owned()]),
                "{broken}"
            );
        }
        assert_eq!(talk(b"\xff\xfe\n").0, [(-32700, Value::Null)]);
        assert_eq!(talk(b"{ without an end of line").0, [(-32700, Value::Null)]);
    }

    #[test]
    fn json_that_is_no_message_is_answered_with_its_identifier() {
        assert_eq!(
            talk(b"{\"id\":5}\n[]\n3\n").0,
            [(-32600, json!(5)), (-32600, Value::Null), (-32600, Value::Null)]
        );
    }

    #[test]
    fn empty_lines_and_unknown_notifications_are_not_answered() {
        let quiet = format!("\n\r\n{{\"jsonrpc\":\"2.0\",\"method\":\"window/unknown\"}}\n{PING}\r\n");
        let (answers, methods) = talk(quiet.as_bytes());
        assert!(answers.is_empty() && methods.contains(&"ping".to_owned()), "{answers:?} {methods:?}");
    }

    #[test]
    fn a_line_that_is_too_long_is_answered_once() {
        let mut input = vec![b' '; 2 * MAX_LINE + 3];
        input.extend_from_slice(format!("\n{PING}\n").as_bytes());
        assert_eq!(talk(&input), (vec![(-32700, Value::Null)], vec!["ping".to_owned()]));
    }
}
