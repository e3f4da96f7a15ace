//! NVIDIA fatbinaries and their entries, field by field.

/// An entry to be made. Sizes and offsets are right unless a test changes the bytes.
#[derive(Clone, Debug, Default)]
pub struct Made {
    /// 1 is PTX, 2 is a cubin.
    pub kind: u16,
    /// The number of its GPU.
    pub sm: u32,
    /// Its flags.
    pub flags: u64,
    /// Its version.
    pub version: (u16, u16),
    /// The name of its source.
    pub identifier: Option<&'static str>,
    /// The bytes at the offset of the options, from there on.
    pub options: Option<Vec<u8>>,
    /// Its bytes, as they are stored.
    pub payload: Vec<u8>,
    /// The uncompressed size of a compressed payload, else 0.
    pub size: u64,
}

impl Made {
    /// Creates a cubin that is not compressed.
    #[must_use]
    pub fn cubin(sm: u32, payload: &[u8]) -> Self {
        Made { kind: 2, sm, flags: 1, payload: payload.to_vec(), ..Made::default() }
    }

    /// Returns its header and its bytes, padded.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
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

/// Returns options as they lie in a header at this offset: a descriptor, the text, NUL.
#[must_use]
pub fn options(at: u32, text: &str) -> Vec<u8> {
    [&(at + 8).to_le_bytes()[..], &(text.len() as u32).to_le_bytes(), text.as_bytes(), &[0]]
        .concat()
}

/// Returns a fatbinary of these entries.
#[must_use]
pub fn fatbin(entries: &[Made]) -> Vec<u8> {
    let entries = entries.iter().flat_map(Made::bytes).collect::<Vec<_>>();
    let header =
        [&[0x50, 0xed, 0x55, 0xba][..], &[1, 0, 16, 0], &(entries.len() as u64).to_le_bytes()];
    [header.concat(), entries].concat()
}

/// Returns a zstd frame of a raw block, of at most 255 bytes.
#[must_use]
pub fn zstd(code: &[u8]) -> Vec<u8> {
    let len = u8::try_from(code.len()).unwrap();
    let block = (u32::from(len) << 3 | 1).to_le_bytes();
    [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, len][..], &block[..3], code].concat()
}
