//! Promises of public types.

/// Asserts at compile time what public types promise, for any contents.
///
/// | word | types are |
/// |---|---|
/// | `sent` | sent to and shared by threads, and printed for debugging |
/// | `owned` | cloned as well |
/// | `value` | compared as well |
/// | `copied` | copied |
/// | `displayed` | displayed |
/// | `defaulted` | made without arguments |
/// | `error` | errors that a thread may hand to another |
/// | `unwinds` | usable after a panic that was caught |
///
/// ```
/// samples::promises! {
///     value: u8, String;
///     sent: std::slice::Iter<'static, u8>;
///     error: std::io::Error;
/// }
/// ```
#[macro_export]
macro_rules! promises {
    ($($promise:ident: $($type:ty),+;)+) => {
        const _: () = {
            $($($crate::promises!(@$promise $type);)+)+
        };
    };
    (@sent $type:ty) => { $crate::promises!(@@ $type: ::core::fmt::Debug + Send + Sync + Unpin + 'static); };
    (@owned $type:ty) => {
        $crate::promises!(@sent $type);
        $crate::promises!(@@ $type: Clone);
    };
    (@value $type:ty) => {
        $crate::promises!(@owned $type);
        $crate::promises!(@@ $type: PartialEq);
    };
    (@copied $type:ty) => { $crate::promises!(@@ $type: Copy); };
    (@displayed $type:ty) => { $crate::promises!(@@ $type: ::core::fmt::Display); };
    (@defaulted $type:ty) => { $crate::promises!(@@ $type: Default); };
    (@error $type:ty) => {
        $crate::promises!(@@ $type: ::core::error::Error + Send + Sync + 'static);
    };
    (@unwinds $type:ty) => {
        $crate::promises!(
            @@ $type: ::core::panic::UnwindSafe + ::core::panic::RefUnwindSafe
        );
    };
    (@@ $type:ty: $($bound:tt)+) => {
        const _: fn() = || {
            fn promised<T: $($bound)+>() {}
            promised::<$type>();
        };
    };
}
