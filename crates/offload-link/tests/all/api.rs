//! Promises of the public types, for any contents: if one is broken, this file does not compile.

use std::error::Error as StdError;
use std::fmt::{Debug, Display};

use offload_link::{
    ClangOptions, DeviceCode, Error, ErrorKind, Fit, Group, Images, Inputs, LeftOut, LinkTarget,
    Linked, LinkedImage, Members, Need, Plan, PlanOptions, Reason, RegisterOptions, Registration,
};

/// Sent to and shared by threads, printed for debugging.
fn shared<T: Debug + Send + Sync + Unpin>() {}
/// Types that are also cloned and compared.
fn value<T: Clone + Debug + PartialEq + Send + Sync + Unpin + 'static>() {}
fn displayed<T: Display>() {}
fn error<T: StdError + Send + Sync + 'static>() {}

#[test]
fn public_types_keep_their_promises() {
    shared::<ClangOptions>();
    shared::<DeviceCode<'_>>();
    shared::<Group<'_>>();
    shared::<Images>();
    shared::<Inputs<'_>>();
    shared::<LeftOut<'_>>();
    shared::<Linked<'_>>();
    shared::<LinkedImage>();
    shared::<Plan<'_>>();
    shared::<PlanOptions>();
    shared::<RegisterOptions>();
    shared::<Registration>();
    value::<ErrorKind>();
    value::<Fit>();
    value::<LinkTarget>();
    value::<Members>();
    value::<Need<'static>>();
    value::<Reason>();
    displayed::<DeviceCode<'_>>();
    displayed::<LinkTarget>();
    displayed::<Need<'_>>();
    displayed::<Reason>();
    error::<Error>();
}
