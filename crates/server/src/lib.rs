//! The other end of the web page: HTTP, WebSocket, and who may do what.
//!
//! A [`Listener`] takes the address and makes the secrets, a [`Server`] serves one [`Hub`] of
//! sources to any number of clients. Clients are data to it: whatever they send is answered or
//! refused in words, and none of them can hold up sampling or the others.

mod access;
mod asked;
mod browser;
mod client;
pub mod csv;
mod frame;
pub mod front;
mod http;
mod hub;
pub mod keeper;
mod layout;
pub mod page;
mod places;
mod queue;
pub mod recordings;
mod refusals;
mod rows;
mod server;
mod source;
pub mod standalone;
#[cfg(test)]
mod testing;
pub mod tls;
mod upload;
mod watch;
pub mod wire;

pub use access::{AccessKeys, same_origin};
pub use asked::AskError;
pub use browser::BrowserFile;
pub use front::Front;
pub use hub::{Hub, Orders};
pub use server::{Listener, Server, ServerError, Urls};
