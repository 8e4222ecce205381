//! The C libraries that programs preload, carried in the binary.
