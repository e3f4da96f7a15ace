//! Tables of faults: numbers that are put into fields of a sample, and the error that follows.

/// One row of a table for each line that is not empty: `SAMPLE FIELD=VALUE FIELD=VALUE,VALUE: ERROR`.
///
/// The last field takes each of its values; the error has it as `@` in hexadecimal, and as `#` in decimal. A value is a
/// decimal number, `0x` and hexadecimal digits, or `max` for the largest of 64 bits. `sample` makes the sample with a name, `put` writes
/// a value into a field of it, and `told` says what the reader makes of the file.
pub fn faults(
    table: &str,
    sample: impl Fn(&str) -> Vec<u8>,
    put: impl Fn(&mut [u8], &str, &str, u64),
    told: impl Fn(&[u8]) -> String,
) {
    for row in table.lines().filter(|row| !row.is_empty()) {
        let (change, error) = row.split_once(": ").unwrap();
        let (name, fields) = change.split_once(' ').unwrap();
        let mut data = sample(name);
        let mut fields = fields.split(' ').map(|field| field.split_once('=').unwrap()).peekable();
        while let Some((field, values)) = fields.next() {
            for value in values.split(',').map(number) {
                put(&mut data, name, field, value);
                if fields.peek().is_none() {
                    let error = error.replace('@', &format!("{value:#x}"));
                    assert_eq!(told(&data), error.replace('#', &value.to_string()), "{row}");
                }
            }
        }
    }
}

fn number(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        _ if text == "max" => u64::MAX,
        Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

/// Tells an error by its kind, its offset and its text.
#[must_use]
pub fn told(
    kind: impl std::fmt::Debug,
    offset: Option<u64>,
    text: impl std::fmt::Display,
) -> String {
    match offset {
        Some(offset) => format!("{kind:?} at {offset:#x}: {text}"),
        None => format!("{kind:?}: {text}"),
    }
}
