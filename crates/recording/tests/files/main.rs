//! Recordings as files.

#![allow(clippy::unwrap_used)]

mod damaged;
mod fixture;
mod outputs;
mod rewritten;
mod schema;
mod written;
