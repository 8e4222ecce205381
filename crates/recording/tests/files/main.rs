//! Recordings as files.

#![allow(clippy::unwrap_used)]

mod damaged;
mod fixture;
mod outputs;
mod schema;
mod written;
