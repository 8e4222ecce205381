//! Commands and arguments.

use numakit_model::label::{MAX_BYTES, RecorderEvent};
use numakit_observation::{ControlCommand, LineBuffer};
use numakit_sensors::Selection;

/// The control pipe: chunks of bytes, then lines, then commands. The first byte is the length of
/// the chunks.
pub fn lines(input: &[u8]) -> bool {
    let Some((&chunk, bytes)) = input.split_first() else { return false };
    let mut lines = LineBuffer::default();
    let mut accepted = false;
    let mut parse = |line: &[u8]| {
        assert!(line.len() <= MAX_BYTES + 1);
        let command = ControlCommand::parse(line);
        accepted |= command.is_ok();
        if let Ok(ControlCommand::Label(text)) = command {
            assert_eq!(RecorderEvent::parse(&text), None, "a label of the recorder comes from a user");
        }
    };
    for part in bytes.chunks(usize::from(chunk).max(1)) {
        lines.push(part, &mut parse);
    }
    lines.flush(&mut parse);
    accepted
}

/// `5ms`: a parsed interval is printed so that it parses to the same.
pub fn interval(input: &[u8]) -> bool {
    use numakit_observation::interval::{format, parse};
    let Ok(interval) = parse(&String::from_utf8_lossy(input)) else { return false };
    assert_eq!(parse(&format(interval)), Ok(interval));
    true
}

/// The list of `-e`.
pub fn events(input: &[u8]) -> bool {
    let Ok(selection) = String::from_utf8_lossy(input).parse::<Selection>() else { return false };
    assert_eq!(selection.to_string().parse(), Ok(selection));
    true
}
