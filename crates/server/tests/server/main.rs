//! The server with pages, proxies, floods and unauthorised clients.

#![allow(clippy::unwrap_used)]

mod bench;
mod pages;
mod proxies;
mod storms;
mod strangers;
