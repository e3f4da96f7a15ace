//! What refers to bundles: the wrappers that register them, in the four forms of their pointers, and anything else.
