//! Makes entries and fatbinaries.

/// An entry to be made. Sizes and offsets are right unless a test changes the bytes.
#[derive(Clone, Default)]
pub(crate) struct Made {
    pub(crate) kind: u16,
    pub(crate) sm: u32,
    pub(crate) flags: u64,
    pub(crate) version: (u16, u16),
    pub(crate) identifier: Option<&'static str>,
    /// The bytes at the offset of the options, from there on.
    pub(crate) options: Option<Vec<u8>>,
    pub(crate) payload: Vec<u8>,
    /// The uncompressed size of a compressed payload, else 0.
    pub(crate) size: u64,
}

impl Made {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut extension = Vec::new();
        let identifier = self.identifier.map_or(0, |identifier| {
            extension.extend(identifier.as_bytes());
            extension.push(0);
            extension.resize(extension.len().next_multiple_of(8), 0);
            64
        });
        let options = self.options.as_ref().map_or(0, |options| {
            let at = 64 + extension.len();
            extension.extend(options);
            extension.resize(extension.len().next_multiple_of(8), 0);
            at
        });
        let padded = self.payload.len().next_multiple_of(8);
        let exact = if self.size == 0 { 0 } else { self.payload.len() };
        let mut bytes = Vec::new();
        bytes.extend(self.kind.to_le_bytes());
        bytes.extend(0x101_u16.to_le_bytes());
        bytes.extend((64 + extension.len() as u32).to_le_bytes());
        bytes.extend((padded as u64).to_le_bytes());
        bytes.extend((exact as u32).to_le_bytes());
        bytes.extend((options as u32).to_le_bytes());
        bytes.extend(self.version.1.to_le_bytes());
        bytes.extend(self.version.0.to_le_bytes());
        bytes.extend(self.sm.to_le_bytes());
        bytes.extend((identifier as u32).to_le_bytes());
        bytes.extend((self.identifier.map_or(0, str::len) as u32).to_le_bytes());
        bytes.extend(self.flags.to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(self.size.to_le_bytes());
        bytes.extend(extension);
        bytes.extend(&self.payload);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }
}

/// Options as they lie in a header at this offset: a descriptor, the text, NUL.
pub(crate) fn options(at: u32, text: &str) -> Vec<u8> {
    [&(at + 8).to_le_bytes()[..], &(text.len() as u32).to_le_bytes(), text.as_bytes(), &[0]]
        .concat()
}

pub(crate) fn fatbin(entries: &[Made]) -> Vec<u8> {
    let entries = entries.iter().flat_map(Made::bytes).collect::<Vec<_>>();
    let header = [&nv_fatbin::MAGIC[..], &[1, 0, 16, 0], &(entries.len() as u64).to_le_bytes()];
    [header.concat(), entries].concat()
}

/// A zstd frame of a raw block, of at most 255 bytes.
pub(crate) fn zstd(code: &[u8]) -> Vec<u8> {
    let len = u8::try_from(code.len()).unwrap();
    let block = (u32::from(len) << 3 | 1).to_le_bytes();
    [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, len][..], &block[..3], code].concat()
}
