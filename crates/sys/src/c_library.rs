//! The C library that this process runs with.

/// Its version where it is glibc, as in (2, 36).
pub fn glibc() -> Option<(u32, u32)> {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: it takes nothing and returns a text that stays.
        let text = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
        let (major, minor) = text.to_str().ok()?.split_once('.')?;
        let minor = minor.split('.').next()?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    }
    #[cfg(not(target_env = "gnu"))]
    None
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_env = "gnu")]
    fn the_version_has_two_numbers() {
        let (major, minor) = super::glibc().unwrap();
        assert!(major == 2 && minor >= 17, "{major}.{minor}");
    }
}
