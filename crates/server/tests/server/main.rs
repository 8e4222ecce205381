//! The server as pages and as strangers meet it.

#![allow(clippy::unwrap_used)]

mod bench;
mod pages;
mod proxies;
mod storms;
mod strangers;
