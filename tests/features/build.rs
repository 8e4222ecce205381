//! Nothing: without a build script Cargo leaves the features of build dependencies out.
fn main() {}
