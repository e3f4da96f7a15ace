//! The symbols of bitcode.

use crate::assert_message;

/// Checks any file: as it is, and in a wrapper at two places, where the same must be found.
pub fn check(data: &[u8]) {
    let is_bitcode = data.starts_with(b"BC\xc0\xde") || data.starts_with(b"\xde\xc0\x17\x0b");
    match llvm_bitcode::symbols(data) {
        Ok(None) => assert!(!is_bitcode),
        Ok(Some(names)) => {
            assert!(is_bitcode);
            assert!(names.len() <= data.len() / 4);
            assert!(names.iter().map(Vec::len).sum::<usize>() <= data.len() * 16);
        }
        Err(error) => {
            assert!(is_bitcode);
            assert_message(&error);
        }
    }
    let [near, far] = [(20, 7), (27, 0)].map(|(before, after)| {
        let mut file = Vec::new();
        for word in [0x0b17_c0de, 0, before, u32::try_from(data.len()).expect("short"), 7] {
            file.extend(u32::to_le_bytes(word));
        }
        file.resize(before as usize, 0);
        file.extend(data);
        file.resize(file.len() + after, 0);
        llvm_bitcode::symbols(&file).ok()
    });
    assert_eq!(near, far);
}
