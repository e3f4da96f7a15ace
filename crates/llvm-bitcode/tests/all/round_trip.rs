//! The reader reads what the writer writes: triple, symbols, processor, embedded objects. The tests of the
//! tools show that LLVM reads such modules (`llvm/wrapper_bitcode.rs`).

use llvm_bitcode::{
    BlobAbbreviation, EmbeddedObject, ErrorKind, MAGIC, ReadAt, Reader, Unreadable, WRAPPER_MAGIC,
    Writer, symbols,
};

const TRIPLE: &[u8] = b"x86_64-unknown-linux-gnu";
const SECTION: &[u8] = b".llvm.offloading";

/// A module of three variables and a function: an object that metadata lists, one that only starts as a bundle does, and
/// a variable that only LLVM reads. Returns the bytes with those of the objects in their places.
fn file(listed: &[u8], unlisted: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new(MAGIC);
    writer.enter_block(8, 3);
    writer.record(1, &[2]);
    writer.enter_block(10, 4); // a group of attributes: number, of the function, "target-cpu"="znver4"
    writer.text_record(3, &[1, 0xffff_ffff, 4], b"target-cpu\0znver4\0");
    writer.end_block().unwrap();
    writer.enter_block(9, 4);
    writer.record(2, &[1]);
    writer.end_block().unwrap();
    writer.text_record(2, &[], TRIPLE);
    writer.text_record(5, &[], SECTION);
    writer.text_record(5, &[], b"llvm.metadata");
    // name, type, constant, initialiser plus one, linkage, alignment, section
    writer.record(7, &[0, 6, 0, 3, 5, 0, 0, 1]);
    writer.record(7, &[6, 6, 0, 3, 6, 0, 0, 0]);
    writer.record(7, &[12, 4, 0, 3, 6, 0, 0, 2]);
    // name, type, calling convention, declared only, linkage, attributes
    writer.record(8, &[16, 4, 0, 0, 0, 0, 1]);
    writer.enter_block(11, 4);
    // An abbreviation that nobody uses has the first number.
    let _: BlobAbbreviation = writer.define_blob(99);
    let string = writer.define_blob(8);
    writer.hole(string, listed.len() as u64).unwrap();
    writer.blob(string, unlisted);
    writer.end_block().unwrap();
    writer.enter_block(15, 3);
    writer.text_record(1, &[], SECTION);
    writer.record(2, &[0, 0]);
    writer.record(3, &[2, 1]);
    writer.text_record(4, &[], b"llvm.embedded.objects");
    writer.record(10, &[2]);
    writer.end_block().unwrap();
    writer.enter_block(12, 4);
    writer.end_block().unwrap();
    writer.end_block().unwrap();
    writer.enter_block(23, 3);
    let names = writer.define_blob(1);
    writer.blob(names, b"listedhiddenmetamain");
    writer.end_block().unwrap();
    let (bytes, holes) = writer.finish();
    assert_eq!(holes.len(), 1);
    let (before, after) = bytes.split_at(holes[0]);
    [before, listed, after].concat()
}

/// Returns the objects that a reader finds in this range of the bytes.
fn objects(mut bytes: &[u8], window: std::ops::Range<u64>) -> Vec<EmbeddedObject> {
    let mut found = Vec::new();
    let mut reader = Reader::new(&mut bytes, window).unwrap();
    let module = reader.next_module().unwrap().unwrap();
    assert_eq!(reader.triple(&module).unwrap().as_deref(), Some(TRIPLE));
    assert_eq!(reader.processor(&module).unwrap().as_deref(), Some("znver4"));
    reader.embedded_objects(&module, &mut found).unwrap();
    assert_eq!(found.len(), 1);
    reader.constants_starting_with(&module, &[*b"__CL"], &mut found).unwrap();
    assert!(reader.next_module().unwrap().is_none());
    assert!(reader.next_module().unwrap().is_none());
    found
}

#[test]
fn written_bitcode_is_read_back() {
    // The sizes are those at which the writer pads.
    for size in [1, 7, (1 << 20) - 1, 1 << 20, (1 << 24) + 3] {
        let listed: Vec<u8> = (0..size).map(|i: u32| i.to_le_bytes()[0] ^ 0x5a).collect();
        let unlisted = b"__CLANG_OFFLOAD_BUNDLE__";
        let bytes = file(&listed, unlisted);
        let names = symbols(&bytes).unwrap().unwrap();
        assert_eq!(names, [&b"main"[..], b"listed", b"hidden"]);
        let found = objects(&bytes, 0..bytes.len() as u64);
        let [first, second] = &found[..] else { panic!("{found:?}") };
        assert!(first.is_listed() && !second.is_listed());
        let (read, place) = first.read(&mut &bytes[..], size.into()).unwrap();
        assert!(read == listed, "{size}");
        let place = usize::try_from(place.start).unwrap()..usize::try_from(place.end).unwrap();
        assert!(bytes.get(place).is_some_and(|stored| stored.starts_with(&listed)), "{size}");
        assert_eq!(second.read(&mut &bytes[..], 1 << 20).unwrap().0, unlisted);
        let error = first.read(&mut &bytes[..], u64::from(size) - 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
    }
}

#[test]
fn bitcode_in_a_wrapper_in_a_larger_file_is_read() {
    let bytes = file(b"device code", b"__CLANG");
    let mut larger = b"before".to_vec();
    let size = u32::try_from(bytes.len()).unwrap();
    for word in [u32::from_le_bytes(WRAPPER_MAGIC), 0, 24, size, 7, 0] {
        larger.extend(word.to_le_bytes());
    }
    let end = (larger.len() + bytes.len()) as u64;
    larger.extend(&bytes);
    larger.extend(b"after");
    let found = objects(&larger, 6..end);
    assert_eq!(found.len(), 2);
    for (object, expected) in found.iter().zip([&b"device code"[..], b"__CLANG"]) {
        assert_eq!(object.read(&mut &larger[..], 100).unwrap().0, expected);
    }
    // The window ends inside.
    let error = Reader::new(&mut &larger[..], 6..end - 1).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Truncated, Some(24)));
}

/// A source whose start alone can be read.
struct Broken<'b>(&'b [u8]);

impl ReadAt for Broken<'_> {
    fn read_exact_at(&mut self, offset: u64, to: &mut [u8]) -> Result<(), Unreadable> {
        self.0.read_exact_at(offset, to)
    }
}

#[test]
fn read_errors_are_passed_on() {
    let bytes = file(&[7; 100_000], b"__CLANG");
    let len = bytes.len() as u64;
    let mut broken = Broken(&bytes[..40_000]);
    let mut reader = Reader::new(&mut broken, 0..len).unwrap();
    let module = reader.next_module().unwrap().unwrap();
    let error = reader.embedded_objects(&module, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreadable);
    assert!(error.offset().is_some_and(|at| at >= 40_000 - 16_384), "{error}");
    let error = Reader::new(&mut Broken(b""), 0..len).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreadable);
    let mut nothing: &[u8] = b"";
    let error = Reader::new(&mut nothing, 0..0).unwrap().next_module().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotBitcode);
}
