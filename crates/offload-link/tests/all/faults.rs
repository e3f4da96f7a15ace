//! Streams that fail while inputs are read.

use std::io;

use offload_link::Inputs;
use samples::faulty::{Fault, Rig, at_each_call};

use crate::common::{archive, hip, offloading};

#[test]
fn every_error_of_reading_is_reported() {
    let library = archive(&[("x.o", &hip(&["gfx90a"])), ("y.o", &hip(&["gfx1030"]))]);
    let member = offloading(&["a", "-b"], &["c"]);
    let with_symbols = archive(&[("x.o", &member), ("y.o", &member)]);
    for (bytes, has_symbols) in [(&library, false), (&library, true), (&with_symbols, true)] {
        let read = |rig: &Rig| {
            let mut inputs = Inputs::new();
            if has_symbols {
                inputs = inputs.with_symbols();
            }
            inputs.read("lib.a", rig.stream(bytes), |_| Err(io::ErrorKind::NotFound.into()))
        };
        for kind in samples::faulty::KINDS {
            at_each_call(&Fault::Error(kind), read, |call, result| {
                let error = result.unwrap_err();
                assert_eq!(error.kind(), offload_link::ErrorKind::Input, "call {call}");
            });
        }
    }
}
