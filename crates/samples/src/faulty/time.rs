//! Processor time, for work that must not grow faster than its input.

use std::fs;

/// Runs something that must take less than this many seconds of this thread's processor time, however busy the machine
/// is. Choose a bound far from both what the work takes and what it would take if it grew too fast. Systems without
/// Linux's `/proc` check nothing.
///
/// # Panics
///
/// It takes more.
pub fn within<T>(seconds: u64, run: impl FnOnce() -> T) -> T {
    let before = ticks();
    let result = run();
    if let (Some(before), Some(after)) = (before, ticks()) {
        let took = after - before;
        assert!(took < seconds * TICKS, "took {took} hundredths of a second of processor time");
    }
    result
}

/// Ticks of a second. The kernel counts faster, and tells programs this on every architecture.
const TICKS: u64 = 100;

/// Processor time of this thread so far, in ticks.
fn ticks() -> Option<u64> {
    let stat = fs::read_to_string("/proc/thread-self/stat").ok()?;
    // The name of the thread, in parentheses, can hold anything; state and ten numbers follow.
    let times = stat.rsplit(')').next()?.split_whitespace().skip(11).take(2);
    times.map(|time| time.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_thread_that_works_takes_time() {
        if let Some(before) = super::ticks() {
            while super::ticks() == Some(before) {}
        }
    }
}
