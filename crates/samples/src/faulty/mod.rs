//! Streams that fail, and bytes at odd addresses: for the tests of whatever reads or writes. No crate that is published
//! depends on it.
//!
//! All streams of one operation share a [`Rig`], which counts their calls. So an operation can be run as it should go,
//! and then once more for every call that it made, with that call going wrong:
//!
//! ```
//! use std::io::{self, ErrorKind, Read, Write};
//! use samples::faulty::{Fault, Rig, at_each_call};
//!
//! let copy = |rig: &Rig| io::copy(&mut rig.stream(b"abc"), &mut rig.stream(b""));
//! at_each_call(&Fault::Error(ErrorKind::StorageFull), copy, |call, result| {
//!     assert_eq!(result.unwrap_err().kind(), ErrorKind::StorageFull, "call {call}");
//! });
//! ```
//!
//! A fault strikes once, and the stream works again: what swallows an error looks as if it had succeeded. [`check`] asks
//! for everything that is promised of any operation.

mod memory;
mod stream;
mod time;

use std::fmt::Debug;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub use memory::at_each_address;
pub use stream::Stream;
pub use time::within;

/// Kinds of errors that have nothing to do with what a file holds, and that no library makes up.
pub const KINDS: [ErrorKind; 3] =
    [ErrorKind::ConnectionReset, ErrorKind::WouldBlock, ErrorKind::StorageFull];

/// A fault of a stream.
#[derive(Clone, Debug)]
pub enum Fault {
    /// One call fails with an error of this kind.
    Error(ErrorKind),
    /// From a call on, the stream that it was made on ends where it stands, although its length is what it was.
    End,
    /// From a call on, streams that were made with the first contents have the second, of whatever length.
    Change(Arc<[u8]>, Arc<[u8]>),
}

/// The state that all streams of one operation share.
#[derive(Clone, Debug, Default)]
pub struct Rig(Arc<State>);

#[derive(Debug, Default)]
struct State {
    calls: AtomicU64,
    /// The fault, and the number of the call from 0.
    fault: Option<(u64, Fault)>,
    /// For numbers that look random, if few bytes are to be moved at a time.
    short: Option<AtomicU64>,
}

/// The outcome of a call.
enum Verdict {
    Works,
    Fails(ErrorKind),
    Ends,
}

impl Rig {
    /// Creates a rig without faults.
    #[must_use]
    pub fn sound() -> Self {
        Rig::default()
    }

    /// Creates a rig in which the call with this number, from 0, fails.
    #[must_use]
    pub fn failing(call: u64, fault: Fault) -> Self {
        Rig(Arc::new(State { fault: Some((call, fault)), ..State::default() }))
    }

    /// Creates a rig in which every call moves few bytes, often one, and every third is interrupted, as with a pipe
    /// and a signal handler.
    #[must_use]
    pub fn short(seed: u64) -> Self {
        Rig(Arc::new(State { short: Some(AtomicU64::new(seed)), ..State::default() }))
    }

    /// Returns a stream with these contents, at its start.
    #[must_use]
    pub fn stream(&self, contents: &[u8]) -> Stream {
        Stream::new(self.clone(), contents)
    }

    /// Returns the number of calls of its streams.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.0.calls.load(Relaxed)
    }

    /// Counts a call.
    fn call(&self) -> Verdict {
        let call = self.0.calls.fetch_add(1, Relaxed);
        match &self.0.fault {
            Some((at, Fault::Error(kind))) if *at == call => Verdict::Fails(*kind),
            Some((at, Fault::End)) if *at == call => Verdict::Ends,
            _ => Verdict::Works,
        }
    }

    /// Returns whether a stream with these contents is one that changes.
    fn changes(&self, contents: &[u8]) -> bool {
        matches!(&self.0.fault, Some((_, Fault::Change(from, _))) if **from == *contents)
    }

    /// Returns the contents that it has by now, if it has changed.
    fn changed(&self) -> Option<&[u8]> {
        match &self.0.fault {
            Some((at, Fault::Change(_, to))) if *at < self.0.calls.load(Relaxed) => Some(to),
            _ => None,
        }
    }

    /// Returns the number of `len` bytes that a call moves; `None` if it is interrupted.
    fn moves(&self, len: usize) -> Option<usize> {
        let Some(state) = &self.0.short else { return Some(len) };
        // Knuth's generator; its low bits are not random enough.
        let next = state.load(Relaxed).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.store(next, Relaxed);
        match next >> 60 {
            0..5 => None,
            5..11 => Some(len.min(1)),
            wide => Some(len.min(usize::try_from(wide).unwrap_or(1) * 13)),
        }
    }
}

/// Returns whether tests take their time, to try far more: `THOROUGH=1`.
pub fn is_thorough() -> bool {
    std::env::var_os("THOROUGH").is_some_and(|value| value != "0")
}

/// Returns numbers below `len`: all of them if there are at most `most`, or else about `most`. One half are the first
/// ones, and the others are spread evenly over the rest. Eighty times as many if tests are [thorough](is_thorough).
pub fn places(len: u64, most: u64) -> impl Iterator<Item = u64> {
    let most = if is_thorough() { 80 * most } else { most };
    let first = if len <= most { len } else { most / 2 };
    let spread = (len - first).div_ceil(most.div_ceil(2)).max(1);
    (0..first).chain((first..len).rev().step_by(usize::try_from(spread).unwrap_or(usize::MAX)))
}

/// About how many calls of an operation fail, one in each run.
const MOST_CALLS: u64 = 8;

/// Runs an operation once as it should go, and once for every call that it made, with that call going wrong, or
/// for some of the calls if there are very many ([`places`]). `judge` gets the number of the call with what came of it.
/// Returns how many calls there were.
pub fn at_each_call<T>(
    fault: &Fault,
    mut operation: impl FnMut(&Rig) -> T,
    mut judge: impl FnMut(u64, T),
) -> u64 {
    let sound = Rig::sound();
    operation(&sound);
    for call in places(sound.calls(), MOST_CALLS) {
        judge(call, operation(&Rig::failing(call, fault.clone())));
    }
    sound.calls()
}

/// Holds an operation to what every one of ours promises:
///
/// - short and interrupted calls change nothing;
/// - the error of any call is what it returns, of the same kind;
/// - where a stream ends before its length it returns an error, unless all that it needs was read.
///
/// # Panics
///
/// If it does not keep this.
pub fn check<T: Debug + PartialEq>(operation: impl FnMut(&Rig) -> io::Result<T>) {
    check_with(false, operation);
}

/// As [`check`], for what reads ahead: an error of reading may go unnoticed where the result is right without what was
/// to be read.
///
/// # Panics
///
/// As [`check`].
pub fn check_ahead<T: Debug + PartialEq>(operation: impl FnMut(&Rig) -> io::Result<T>) {
    check_with(true, operation);
}

/// [`check`]s what writes these bytes, to a stream and to a buffer before one: what that still holds is to be written
/// before all is said to be well.
///
/// # Panics
///
/// As [`check`], or if other bytes are written.
pub fn check_writing(
    expected: &[u8],
    mut write: impl FnMut(&Rig, &mut dyn Write) -> io::Result<()>,
) {
    check(|rig| {
        let mut out = rig.stream(b"");
        write(rig, &mut out).inspect(|()| assert_eq!(out.contents(), expected))
    });
    check(|rig| {
        let mut out = rig.stream(b"");
        let mut buffer = BufWriter::new(&mut out);
        let written = write(rig, &mut buffer);
        // Without what `drop` would write.
        let _ = buffer.into_parts();
        written.inspect(|()| assert_eq!(out.contents(), expected))
    });
}

fn check_with<T: Debug + PartialEq>(ahead: bool, mut operation: impl FnMut(&Rig) -> io::Result<T>) {
    let right = match operation(&Rig::sound()) {
        Ok(right) => right,
        Err(error) => panic!("fails without a fault: {error}"),
    };
    for seed in 0..5 {
        match operation(&Rig::short(seed)) {
            Ok(result) => assert_eq!(result, right, "short calls, seed {seed}"),
            Err(error) => panic!("short calls, seed {seed}: {error:?}"),
        }
    }
    let sound = Rig::sound();
    let _ = operation(&sound);
    for (call, kind) in places(sound.calls(), MOST_CALLS).zip(KINDS.into_iter().cycle()) {
        match operation(&Rig::failing(call, Fault::Error(kind))) {
            Ok(result) if ahead => assert_eq!(result, right, "{kind:?} at call {call}"),
            Ok(_) => panic!("{kind:?} at call {call} is swallowed"),
            Err(error) => assert_eq!(error.kind(), kind, "at call {call}: {error:?}"),
        }
    }
    at_each_call(&Fault::End, operation, |call, result| {
        if let Ok(result) = result {
            assert_eq!(result, right, "the end at call {call}");
        }
    });
}
