//! Limits of the work on a file, so that its cost is bounded by its size.

/// An amount of something that may be used: bytes, headers, names.
///
/// ```
/// let mut names = byte_parts::Budget::new(10);
/// assert!(names.take(7));
/// assert!(!names.take(4));
/// assert_eq!(names.left(), 3);
/// ```
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    used: u64,
}

impl Budget {
    /// Creates a budget of this amount.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Budget { limit, used: 0 }
    }

    /// Returns all that may be used.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns the amount that is left.
    #[must_use]
    pub fn left(&self) -> u64 {
        // More may have been spent.
        self.limit.saturating_sub(self.used)
    }

    /// Allows more: so much for each of a number of bytes. A limit too large for a number is not a limit.
    pub fn grow(&mut self, bytes: u64, for_each: u64) {
        self.limit = self.limit.saturating_add(bytes.saturating_mul(for_each));
    }

    /// Uses some, if there is as much left; returns whether there was.
    #[must_use]
    pub fn take(&mut self, amount: u64) -> bool {
        let enough = amount <= self.left();
        if enough {
            self.spend(amount);
        }
        enough
    }

    /// Counts an amount that was used already.
    pub fn spend(&mut self, amount: u64) {
        // More than any number is more than any limit.
        self.used = self.used.saturating_add(amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_never_exceeds_its_limit() {
        let mut budget = Budget::new(10);
        assert!(budget.take(7));
        assert!(!budget.take(4));
        assert_eq!((budget.left(), budget.limit()), (3, 10));
        budget.grow(1, 1);
        assert!(budget.take(4));
        budget.spend(5);
        assert_eq!((budget.left(), budget.limit()), (0, 11));
        assert!(budget.take(0));
        budget.grow(u64::MAX, 2);
        budget.spend(u64::MAX);
        assert!(!budget.take(1));
    }
}
