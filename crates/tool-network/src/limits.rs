//! Bounds.

use std::time::Duration;

/// Bounds of what is read of one file.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub(crate) bytes: u64,
    pub(crate) requests: u64,
    pub(crate) time: Duration,
    pub(crate) wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let (time, wait) = (Duration::from_secs(3600), Duration::from_secs(30));
        Limits { bytes: 4 << 30, requests: 10_000, time, wait }
    }
}

impl Limits {
    /// Sets the most bytes that are received. Default: 4 GiB.
    #[must_use]
    pub fn with_bytes(self, bytes: u64) -> Self {
        Limits { bytes, ..self }
    }

    /// Sets the most requests. Default: 10,000.
    #[must_use]
    pub fn with_requests(self, requests: u64) -> Self {
        Limits { requests, ..self }
    }

    /// Sets the most time from the first request to the last byte. Default: one hour.
    #[must_use]
    pub fn with_time(self, time: Duration) -> Self {
        Limits { time, ..self }
    }

    /// Sets the most time to wait for a connection, an answer or its next bytes. Default: 30 seconds.
    #[must_use]
    pub fn with_wait(self, wait: Duration) -> Self {
        Limits { wait, ..self }
    }
}
