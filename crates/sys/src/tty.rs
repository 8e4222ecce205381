//! The terminals of the standard streams.

use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{isatty, tcgetwinsize};

/// The width in columns of the terminal of standard output; `None` if that is no terminal or its size is unknown.
pub fn columns() -> Option<usize> {
    size().map(|(columns, _)| columns).filter(|&n| n > 0)
}

/// The width in columns of the terminal of standard error; `None` if that is no terminal or its size is unknown.
pub fn error_columns() -> Option<usize> {
    tcgetwinsize(stderr()).ok().map(|size| usize::from(size.ws_col)).filter(|&n| n > 0)
}

/// The height in rows of the terminal of standard output; `None` if that is no terminal or its size is unknown.
pub fn rows() -> Option<usize> {
    size().map(|(_, rows)| rows).filter(|&n| n > 0)
}

/// Whether standard output is a terminal.
pub fn is_output() -> bool {
    isatty(stdout())
}

/// Whether standard input is a terminal.
pub fn is_input() -> bool {
    isatty(stdin())
}

/// Whether standard error is a terminal.
pub fn is_error() -> bool {
    isatty(stderr())
}

fn size() -> Option<(usize, usize)> {
    let size = tcgetwinsize(stdout()).ok()?;
    Some((usize::from(size.ws_col), usize::from(size.ws_row)))
}
