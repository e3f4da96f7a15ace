//! Promises of the public types, for any contents: if one is broken, this file does not compile.

use wrapper_ir::{
    Abi, Entries, EntryFlags, Error, ErrorKind, Image, Module, OffloadEntry, Target, Wrapper,
};

samples::promises! {
    sent: Error, Module, Entries<'static>;
    owned: Image<'static>, OffloadEntry<'static>, Target, Wrapper<'static>;
    value: Abi, EntryFlags;
    copied: Abi;
    displayed: Abi, Target;
    error: Error;
}

#[test]
fn names_are_read_as_they_are_written() {
    for abi in Abi::ALL {
        assert_eq!(abi.to_string(), abi.name());
        assert_eq!(Abi::from_name(abi.name()).unwrap(), abi);
    }
    let target = Target::new("aarch64-unknown-linux-gnu").unwrap();
    assert_eq!(target.to_string(), "aarch64-unknown-linux-gnu");
    assert_eq!(Target::new("x").unwrap_err().kind(), ErrorKind::UnknownName);
}
