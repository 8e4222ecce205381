//! Nothing but features: see `Cargo.toml`.
