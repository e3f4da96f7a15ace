//! Steps that are scripts: their own words say what they check.

use crate::ci::Ci;
use crate::process::{Result, command, run};

pub(crate) fn english(_: &mut Ci) -> Result {
    run(command(".ci/english"))
}

/// The unit tests of what the scripts in Python share.
pub(crate) fn python(_: &mut Ci) -> Result {
    run(command(
        "python3 -B -m unittest discover --quiet --start-directory .ci --pattern *_test.py",
    ))
}

pub(crate) fn strange(ci: &mut Ci) -> Result {
    let what = "the tests on a strange machine: needs root, who may mount, and a clone that others may read";
    ci.may_lack(what, run(command(".ci/strange")))
}
