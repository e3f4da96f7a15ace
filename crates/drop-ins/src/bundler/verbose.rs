//! The output of `--verbose` about compression.

use std::io::{self, Read, SeekFrom};
use std::time::Duration;

use byte_parts::ReadSeek;
use fat_object::Compression;

/// A compressed bundle and its times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured<'h> {
    pub(super) header: &'h ccob::Header,
    /// Bytes in the file, with the header.
    pub(super) stored: u64,
    pub(super) uncompressed: u64,
    pub(super) time: Duration,
}

impl Measured<'_> {
    /// Returns the number of bytes after the header, which was read of no less.
    fn payload(&self) -> u64 {
        self.stored - self.header.header_len() as u64
    }
}

/// Returns the lines after writing.
pub(super) fn written(measured: &Measured<'_>, level: Option<i32>) -> Vec<String> {
    let Measured { header, stored, uncompressed, .. } = *measured;
    let method = header.method();
    let payload = measured.payload();
    let level = level.unwrap_or(if method == ccob::Method::ZLIB { 6 } else { 3 });
    let mut lines = vec![
        format!("Compressed bundle format version: {}", header.version()),
        format!("Total file size (including headers): {} bytes", grouped(stored)),
        format!("Compression method used: {method}"),
        format!("Compression level: {level}"),
        format!("Binary size before compression: {} bytes", grouped(uncompressed)),
        format!("Binary size after compression: {} bytes", grouped(payload)),
    ];
    lines.extend(rates("Compression", payload, measured));
    lines.push(format!("Truncated MD5 hash: {:#016x}", header.hash()));
    lines
}

/// Returns the lines after reading the compressed bundle at this place, whose hash was correct; none for other compressed
/// containers.
pub(super) fn read(
    file: &mut dyn ReadSeek,
    at: u64,
    compression: Compression,
    time: Duration,
) -> io::Result<Vec<String>> {
    let mut head = Vec::new();
    file.seek(SeekFrom::Start(at))?;
    file.take(32).read_to_end(&mut head)?;
    let (stored, uncompressed) = (compression.stored_size(), compression.uncompressed_size());
    let Ok(header) = ccob::Header::parse(&head, stored) else { return Ok(Vec::new()) };
    let measured = Measured { header: &header, stored, uncompressed, time };
    let payload = measured.payload();
    let mut lines = vec![format!("Compressed bundle format version: {}", header.version())];
    if let Some(total) = header.total_size() {
        lines.push(format!("Total file size (from header): {} bytes", grouped(total)));
    }
    lines.push(format!("Decompression method: {}", header.method()));
    lines.push(format!("Size before decompression: {} bytes", grouped(payload)));
    lines.push(format!("Size after decompression: {} bytes", grouped(uncompressed)));
    lines.extend(rates("Decompression", payload, &measured));
    let hash = header.hash();
    lines.push(format!("Stored hash: {hash:#016x}"));
    lines.push(format!("Recalculated hash: {hash:#016x}"));
    lines.push("Hashes match: Yes".to_owned());
    Ok(lines)
}

fn rates(what: &str, payload: u64, measured: &Measured<'_>) -> [String; 3] {
    let (before, after) = (measured.uncompressed as f64, payload as f64);
    let speed = before / (1024.0 * 1024.0) / measured.time.as_secs_f64().max(1e-9);
    [
        format!("Compression rate: {:.2}", before / after),
        format!("Compression ratio: {:.2}%", after / before * 100.0),
        format!("{what} speed: {speed:.2} MB/s"),
    ]
}

/// Returns a number with a comma before every three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn thousands_are_grouped() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (14_695, "14,695"),
            (1 << 30, "1,073,741,824"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }
}
