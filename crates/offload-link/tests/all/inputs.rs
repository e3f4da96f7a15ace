//! The places of device code in inputs.

use std::io::{Cursor, ErrorKind as IoKind};

use offload_link::{ErrorKind, Inputs, is_library};

use crate::common::{archive, hip, object};

#[test]
fn code_is_borrowed_from_objects_in_memory() {
    let object = object(&hip(&["gfx90a", "gfx1030"]));
    let mut inputs = Inputs::new();
    assert_eq!(inputs.add("dir.d/a.b.o", &object).unwrap(), 2);
    let code = &inputs.codes()[1];
    let bytes = code.bytes().unwrap();
    assert_eq!((bytes, code.stem(), code.file()), (&b"gfx1030"[..], "a.b", "dir.d/a.b.o"));
    assert!(object.as_ptr_range().contains(&bytes.as_ptr()));
    assert_eq!((code.index(), code.size(), code.range()), (1, 7, None));
}

#[test]
fn files_and_memory_give_the_same() {
    let object = object(&hip(&["gfx90a"]));
    let library = archive(&[("x.o", &object), ("y.o", &object)]);
    let nested = archive(&[("inner.a", &library)]);
    for bytes in [&object, &library, &nested] {
        let (mut lent, mut read) = (Inputs::new(), Inputs::new());
        lent.add("f", bytes).unwrap();
        read.read("f", Cursor::new(bytes), |_| Err(IoKind::NotFound.into())).unwrap();
        assert_eq!(lent.codes().len(), read.codes().len());
        for (lent, read) in lent.codes().iter().zip(read.codes()) {
            assert_eq!((lent.to_string(), lent.size()), (read.to_string(), read.size()));
            let range = read.range().unwrap();
            let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
            assert_eq!((lent.bytes(), read.bytes()), (Some(&bytes[range]), None));
        }
        assert!(!lent.codes().is_empty());
    }
}

#[test]
fn thin_archives_name_files() {
    let package = hip(&["gfx90a"]);
    let header = format!("{:<16}{:<32}{:<10}`\n", "x.o/", "", package.len());
    let thin = [b"!<thin>\n", header.as_bytes()].concat();
    let mut inputs = Inputs::new();
    let mut opened = Vec::new();
    let found = inputs.read("t.a", Cursor::new(&thin), |name| {
        opened.push(name.to_vec());
        Ok(Box::new(Cursor::new(package.clone())))
    });
    assert_eq!((found.unwrap(), &opened[..]), (1, &[b"x.o".to_vec()][..]));
    let code = &inputs.codes()[0];
    assert_eq!((code.to_string(), code.bytes()), ("t.a(x.o)".to_owned(), Some(&b"gfx90a"[..])));
    let error = Inputs::new().add("t.a", &thin).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(error.to_string().contains("expected a complete archive"), "{error}");
}

/// Finished programs and other files have no code for this link.
#[test]
fn other_files_are_passed_over() {
    for name in ["hip-two-units.so", "hip.dll", "hip-macos.o", "hip.hipfb", "hip.o", "host.o"] {
        let bytes = samples::example(name);
        assert_eq!(Inputs::new().add(name, &bytes).unwrap(), 0, "{name}");
    }
    for (name, count) in [
        ("hip-packager.o", 1),
        ("openmp-packager.o", 2),
        ("hip-embedded.bc", 1),
        ("packages.offload", 5),
    ] {
        let bytes = samples::example(name);
        assert_eq!(Inputs::new().add(name, &bytes).unwrap(), count, "{name}");
    }
}

/// Archives with device code in one member: its neighbours are passed over by their headers, and nothing else changes.
#[test]
fn members_without_device_code_change_nothing() {
    let (host, object) = (samples::example("host.o"), object(&hip(&["gfx90a"])));
    for name in ["hip-packager.o", "hip-embedded.bc", "packages.offload", "hip-macos.o", "hip.obj"]
    {
        let file = samples::example(name);
        let alone = Inputs::new().add("f", &file).unwrap();
        let inner = archive(&[("host.o", &host), (name, &file), ("x.o", &object)]);
        let nested = archive(&[("host.o", &host), ("inner.a", &inner), ("host.o", &host)]);
        for bytes in [&inner, &nested] {
            for new in [Inputs::new, || Inputs::new().with_symbols()] {
                let (mut lent, mut read) = (new(), new());
                assert_eq!(lent.add("f", bytes).unwrap(), alone + 1, "{name}");
                let cursor = Cursor::new(bytes);
                let found = read.read("f", cursor, |_| Err(IoKind::NotFound.into())).unwrap();
                assert_eq!(found, alone + 1, "{name}");
                assert_eq!(lent.codes().last().unwrap().member(), Some("x.o"));
            }
        }
    }
}

/// A member that is cut short is an error wherever it lies.
#[test]
fn damaged_members_are_errors() {
    let (host, object) = (samples::example("host.o"), object(&hip(&["gfx90a"])));
    let mut damaged = host.clone();
    // The place of the section headers.
    damaged[40..48].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    let archive = archive(&[("x.o", &object), ("host.o", &damaged)]);
    for inputs in [&mut Inputs::new(), &mut Inputs::new().with_symbols()] {
        let lent = inputs.add("f", &archive).unwrap_err();
        let read = Inputs::new().read("f", Cursor::new(&archive), |_| Err(IoKind::NotFound.into()));
        assert_eq!(lent.to_string(), read.unwrap_err().to_string());
        assert!(lent.to_string().contains("malformed ELF"), "{lent}");
    }
}

#[test]
fn libraries_are_archives_and_shared_elf_files() {
    for (name, expected) in
        [("hip-two-units.so", true), ("libhip.a", true), ("hip.o", false), ("hip.dll", false)]
    {
        let bytes = samples::example(name);
        assert_eq!(is_library(&bytes[..64]), expected, "{name}");
    }
    assert!(!is_library(b""));
}
