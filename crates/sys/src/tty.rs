//! The terminals that standard output and standard error go to.

/// Its width in columns; `None` where standard output is no terminal or does not say.
pub fn columns() -> Option<usize> {
    size().map(|(columns, _)| columns).filter(|&n| n > 0)
}

/// Its height in rows; `None` as above.
pub fn rows() -> Option<usize> {
    size().map(|(_, rows)| rows).filter(|&n| n > 0)
}

/// Whether standard output is a terminal.
pub fn is_output() -> bool {
    is_terminal(libc::STDOUT_FILENO)
}

/// Whether standard error is a terminal.
pub fn is_error() -> bool {
    is_terminal(libc::STDERR_FILENO)
}

fn is_terminal(fd: i32) -> bool {
    // SAFETY: asks about a descriptor, whether it is open or not.
    unsafe { libc::isatty(fd) == 1 }
}

fn size() -> Option<(usize, usize)> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the structure is what this request fills in, and outlives the call.
    let result = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &mut size) };
    (result == 0).then_some((usize::from(size.ws_col), usize::from(size.ws_row)))
}
