//! The server of the web page: HTTP, WebSocket, access.
//!
//! A [`Listener`] binds the address and generates the secrets; a [`Server`] serves the sources of one
//! [`Hub`] to its clients. Every request is answered or refused with a message, and no client
//! delays sampling or other clients.

mod accept;
mod access;
mod browser;
mod client;
mod client_request_error;
mod comparer;
mod connections;
pub mod csv;
mod examiner;
mod frame;
mod http;
mod hub;
pub mod ingest;
pub mod key_file;
mod layout;
pub mod listen_options;
pub mod opening;
pub mod page;
mod process_list;
mod processes;
mod queue;
pub mod recordings;
mod refusal_log;
pub mod results;
mod rows;
pub mod scraping;
mod server;
mod source;
pub mod standalone;
#[cfg(test)]
mod testing;
pub mod tls;
mod upload;
mod urls;
mod watch;
pub mod wire;

pub use access::{AccessKeys, same_origin};
pub use browser::BrowserFile;
pub use client_request_error::ClientRequestError;
pub use comparer::HeaderAddition;
pub use hub::{ControlSender, Hub};
pub use listen_options::ListenOptions;
pub use process_list::process_surveyor;
pub use processes::{ProcessMeter, ProcessSurveyor};
pub use server::{Listener, Server, ServerError};
pub use urls::{Urls, from_elsewhere};
