//! The bytes that a run holds beside its files: members of packages, and packages in packages.

use std::fs::File;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The bytes that all threads of a run hold together.
#[derive(Debug, Default)]
pub struct Budget {
    state: Mutex<State>,
    freed: Condvar,
    /// Held by the one who waits for others.
    waiting: Mutex<()>,
    /// A file in memory of a member that was read.
    spare: Mutex<Option<File>>,
}

#[derive(Debug, Default)]
struct State {
    held: u64,
    /// The most bytes, which the input with the highest limit sets.
    limit: u64,
}

/// The bytes that the work on one file or member holds. Its own limit decides what it may do, whatever others hold: work that
/// misses bytes because of others [is done again](Self::again), when it can wait for them.
#[derive(Debug)]
pub struct Account<'b> {
    budget: &'b Budget,
    limit: u64,
    /// Bytes of packages in packages, and those of the member.
    packages: u64,
    member: u64,
    /// The lock of the one who waits.
    waits: Option<MutexGuard<'b, ()>>,
    has_missed: bool,
}

impl Budget {
    /// Returns an account for work that may hold `limit` bytes.
    pub fn account(&self, limit: u64) -> Account<'_> {
        let mut state = self.lock();
        state.limit = state.limit.max(limit);
        drop(state);
        Account { budget: self, limit, packages: 0, member: 0, waits: None, has_missed: false }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self, bytes: u64) {
        if bytes > 0 {
            let mut state = self.lock();
            state.held -= bytes;
            drop(state);
            self.freed.notify_all();
        }
    }
}

impl Account<'_> {
    /// Returns the file of a member that was read, if there is one. It has bytes of that member.
    pub fn take_spare(&self) -> Option<File> {
        self.budget.spare.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Keeps a file for a later member.
    pub fn keep_spare(&self, file: File) {
        *self.budget.spare.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
    }

    /// Returns how many further bytes the work may hold.
    pub fn left(&self) -> u64 {
        // Both grow only while bytes are left.
        self.limit - self.packages - self.member
    }

    /// Returns the most bytes that the work may hold.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Holds further bytes of a member; returns `false` if these are too many.
    pub fn take(&mut self, bytes: u64) -> bool {
        let taken = self.take_any(bytes);
        self.member += if taken { bytes } else { 0 };
        taken
    }

    /// Holds this number of bytes of packages in packages from now on; returns `false` if these are too many.
    pub fn set_packages(&mut self, bytes: u64) -> bool {
        let taken = match bytes.checked_sub(self.packages) {
            Some(more) => self.take_any(more),
            None => {
                self.budget.give_back(self.packages - bytes);
                true
            }
        };
        self.packages = if taken { bytes } else { self.packages };
        taken
    }

    /// Gives the bytes of the member back.
    pub fn end_member(&mut self) {
        self.budget.give_back(std::mem::take(&mut self.member));
    }

    /// Returns whether bytes were missing only because others held them.
    pub fn has_missed(&self) -> bool {
        self.has_missed
    }

    fn take_any(&mut self, bytes: u64) -> bool {
        if bytes > self.left() {
            return false;
        }
        let mut state = self.budget.lock();
        while state.limit - state.held < bytes {
            if self.waits.is_none() {
                self.has_missed = true;
                return false;
            }
            state = self.budget.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.held += bytes;
        true
    }
}

impl<'b> Account<'b> {
    /// Returns an account for the same work, which waits for bytes that others hold. Only one such waits at a time; others never
    /// wait while they hold some, so all give theirs back.
    pub fn again(self) -> Self {
        let (budget, limit) = (self.budget, self.limit);
        drop(self);
        let waits = budget.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        Account { waits: Some(waits), ..budget.account(limit) }
    }
}

impl Drop for Account<'_> {
    fn drop(&mut self) {
        self.budget.give_back(self.packages + self.member);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn the_own_limit_decides_and_others_are_waited_for() {
        let budget = Budget::default();
        let mut first = budget.account(100);
        assert!(first.take(60) && first.set_packages(40) && !first.take(1) && !first.has_missed());
        assert!(first.set_packages(10) && first.left() == 30);
        let (send, receive) = mpsc::channel();
        thread::scope(|scope| {
            let budget = &budget;
            let again = scope.spawn(move || {
                let mut second = budget.account(100);
                assert!(!second.take(101) && !second.has_missed());
                assert!(!second.take(31) && second.has_missed());
                let mut again = second.again();
                send.send(()).unwrap();
                assert!(again.take(90) && again.left() == 10);
            });
            receive.recv().unwrap();
            first.end_member();
            drop(first);
            again.join().unwrap();
        });
        assert!(budget.account(100).take(100));
        assert_eq!(budget.lock().held, 0);
    }
}
