//! The machine and its findings, live in the terminal.

pub mod draw;
pub mod follow;
pub mod keys;
pub mod machine;
pub mod playback;
pub mod replay;
pub mod screen;
pub mod show;
pub mod table;
#[cfg(test)]
mod testing;
pub mod theme;
pub mod view;
pub mod watch;
