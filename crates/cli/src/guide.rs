//! The guide: the list of its pages, a page on the terminal, and all of it in a browser.

use crate::{page, pager};
use anyhow::Context;
use clap::builder::Styles;
use numakit_formulas::Catalog;
use numakit_guide::text::{self, Layout};
use numakit_guide::{Document, site, topics};
use numakit_model::CpuSet;
use numakit_server::{BrowserFile, ListenOptions, Listener, ServerError, from_elsewhere};
use numakit_sys::signal::{self, Signals};
use numakit_sys::stdio::print;
use numakit_sys::{SysRoot, poll, tty};
use std::fmt::Write;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::Arc;

/// Maximum width of a line, and its width where standard output is no terminal.
const WIDTH: usize = 100;
/// Memory for samples, of which the guide has none.
const NO_HISTORY: usize = 0;

/// The list of all pages, by section.
pub fn listed(styles: &Styles) -> String {
    let (heading, literal) = (styles.get_header(), styles.get_literal());
    let width = topics::topics().map(|topic| topic.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for section in topics::sections() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n{heading}{}:{heading:#}", section.heading);
        for topic in &section.topics {
            let about = topic.about.replace('`', "'");
            let _ = writeln!(text, "  {literal}{:<width$}{literal:#}  {}: {about}", topic.name, topic.title);
        }
    }
    text.push_str("\n'numa help guide PAGE' shows a page, 'numa help --web' all of them in a browser.\n");
    text
}

/// Shows a page on the terminal, or prints it.
pub fn show(document: &Document, is_styled: bool) -> anyhow::Result<ExitCode> {
    let width = tty::columns().map_or(WIDTH, |columns| columns.min(WIDTH));
    pager::show(&text::of(document, Layout { width, is_styled }))?;
    Ok(ExitCode::SUCCESS)
}

/// Serves the guide until a signal arrives, and opens this page of it, or the first one.
pub fn serve(page: Option<&Document>, address: Option<&str>, is_opened: bool) -> anyhow::Result<()> {
    let host = page::host_name(&SysRoot::host())?;
    let listener = listener(address, &host)?;
    let signals = Signals::collect(&[signal::INTERRUPT, signal::TERMINATE, signal::HANGUP])
        .context("cannot collect signals")?;
    signal::ignore_broken_pipe();
    let urls = listener.urls();
    let formulas = Arc::new(Catalog::built_in().clone());
    let _server = listener.start(None, formulas, NO_HISTORY, CpuSet::new())?;
    let url = format!("{}{}", urls.guide, page.map_or_else(|| site::FIRST.to_owned(), site::path_of));
    print(format_args!("guide  {url}\n{}", from_elsewhere(urls.listen, &host)))?;
    let _opened = if is_opened { BrowserFile::open(&url) } else { None };
    while signals.next().is_none() {
        poll::readable(&[signals.as_fd()], None).context("cannot wait")?;
    }
    Ok(())
}

fn listener(address: Option<&str>, host: &str) -> Result<Listener, ServerError> {
    match address {
        Some(address) => Listener::bind(address, host, ListenOptions::default()),
        None => Listener::bind_free(host, ListenOptions::default()),
    }
}
