//! The self-check: what a loader makes of the new file is what it made of the old one, but for what was to change.
