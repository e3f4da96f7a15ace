//! The cases that LLVM's tools must agree with.

use crate::runner::{Peer, check_all};

#[test]
fn llvm_agrees() {
    check_all(Peer::Llvm);
}
