//! Promises of the public types, for any contents: if one is broken, this file does not compile.

use offload_link::{
    ClangOptions, DeviceCode, Error, ErrorKind, Fit, Group, Images, Inputs, LeftOut, LinkTarget,
    Linked, LinkedImage, Members, Need, Plan, PlanOptions, Reason, RegisterOptions, Registration,
};

samples::promises! {
    sent: ClangOptions, DeviceCode<'_>, Group<'_>, Images, Inputs<'_>, LeftOut<'_>, Linked<'_>,
        LinkedImage, Plan<'_>, PlanOptions, RegisterOptions, Registration;
    value: ErrorKind, Fit, LinkTarget, Members, Need<'static>, Reason;
    displayed: DeviceCode<'_>, LinkTarget, Need<'_>, Reason;
    error: Error;
}
