//! What a walk may use in all, so that no file costs more than its size allows.

/// Something of which a walk may use so much.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Budget {
    limit: u64,
    used: u64,
}

impl Budget {
    pub(crate) fn new(limit: u64) -> Self {
        Budget { limit, used: 0 }
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    pub(crate) fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// Allows more.
    pub(crate) fn grow(&mut self, by: u64) {
        self.limit = self.limit.saturating_add(by);
    }

    /// Uses some, if there is as much left.
    #[must_use]
    pub(crate) fn take(&mut self, amount: u64) -> bool {
        let enough = amount <= self.left();
        if enough {
            self.spend(amount);
        }
        enough
    }

    /// Counts what was used already.
    pub(crate) fn spend(&mut self, amount: u64) {
        self.used = self.used.saturating_add(amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_limit_is_taken() {
        let mut budget = Budget::new(10);
        assert!(budget.take(7));
        assert!(!budget.take(4));
        assert_eq!((budget.left(), budget.limit()), (3, 10));
        budget.grow(1);
        assert!(budget.take(4));
        budget.spend(5);
        assert_eq!((budget.left(), budget.limit()), (0, 11));
        assert!(budget.take(0));
        budget.grow(u64::MAX);
        budget.spend(u64::MAX);
        assert!(!budget.take(1));
    }
}
