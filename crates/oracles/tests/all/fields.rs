//! Numbers of every form, as the model writes them.

use oracles::fields::{Fields, read, write};

#[test]
fn numbers_are_written_and_read_in_every_form() {
    let mut fields = Fields::new(true);
    fields.put(b"ab").half(0x102).word(3).decimal(1234, 6, b' ').pad(8, b'.');
    fields.big = false;
    fields.long(7).number(9, 1).leb128(300);
    let bytes = b"ab\x01\x02\0\0\0\x031234  ..\x07\0\0\0\0\0\0\0\x09\xac\x82\x80\x80\0";
    assert_eq!(fields.bytes, bytes);
    let numbers = fields.numbers.iter().map(|(range, form)| read(&bytes[range.clone()], *form));
    assert_eq!(numbers.collect::<Vec<_>>(), [0x102, 3, 1234, 7, 9, 300]);
    let mut copy = bytes.to_vec();
    for (range, form) in fields.numbers {
        write(&mut copy[range.clone()], form, read(&bytes[range], form));
    }
    assert_eq!(copy, bytes);
}
