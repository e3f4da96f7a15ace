//! States that cannot be.

/// Marks a state that cannot be, and returns the text of an error for it: a test or a fuzz target stops here, a release
/// goes on with the error.
///
/// ```
/// # use std::io;
/// fn last(levels: &mut Vec<u32>) -> io::Result<&mut u32> {
///     levels.last_mut().ok_or_else(|| io::Error::other(byte_parts::internal!("no level")))
/// }
/// # assert_eq!(*last(&mut vec![1])?, 1);
/// # Ok::<(), io::Error>(())
/// ```
#[macro_export]
macro_rules! internal {
    ($text:literal) => {{
        debug_assert!(false, "internal error: {}", $text);
        concat!("internal error: ", $text)
    }};
}
