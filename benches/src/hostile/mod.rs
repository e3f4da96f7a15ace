//! Files that cost more than they should, for readers that do something for every pair of two things, believe what a
//! header promises, or go as deep as the file leads them. Each has about `n` bytes.

mod bitcode;
mod containers;
mod objects;
mod packages;

pub use bitcode::{
    bitcode_abbreviations, bitcode_arrays, bitcode_globals, bitcode_modules, bitcode_nested_blocks,
};
pub use containers::{
    archive_of_archives, archive_of_bundles, archive_of_empty_members, archive_of_packages,
    archive_with_a_long_name, archive_with_one_symbol, bundle_of_conflicts, bundle_of_equal_ids,
    bundle_of_features, bundle_of_kernels, bundle_of_long_and_short_ids,
    bundle_of_unknown_processors, bundle_with_the_best_last, bundles_in_a_row, bundles_in_bundles,
    compressed_headers_in_a_row, fatbinary_of_empty_entries, magics, package_of_entries,
    package_of_strings, packages_in_a_row, packages_in_packages, packages_of_targets,
    text_bundle_of_entries, text_of_long_lines, text_without_ends, thin_archive, zlib_bomb,
    zstd_bomb,
};
pub use objects::{
    code_of_kernels, coff_of_long_names, coff_of_sections, coff_with_bundles, elf_of_hosts,
    elf_of_packages, elf_of_symbol_tables, elf_with_bundles, elf_with_long_symbols,
    macho_of_commands, macho_of_sections, pe_of_relocations, program_of_wrappers,
    universal_of_slices, wasm_of_sections,
};
pub use packages::{
    deb_of_empty_members, deb_of_rows, image_of_files, image_of_layers, image_of_removed_files,
    tar_of_bundles, tar_of_extended_headers, tar_of_one_name, tar_of_texts, wheel_of_rows,
    zip_of_bundles, zip_of_findings, zip_of_one_name, zip_of_texts,
};

/// Function that makes an input of about this many bytes.
pub type Make = fn(usize) -> Vec<u8>;

/// Every input, by name. Bombs, which are small and expand, are not among them.
pub const ALL: &[(&str, Make)] = &[
    ("bundle of unknown processors", bundle_of_unknown_processors),
    ("bundle of equal IDs", bundle_of_equal_ids),
    ("bundle of conflicts", bundle_of_conflicts),
    ("bundle of features", bundle_of_features),
    ("bundle with the best last", bundle_with_the_best_last),
    ("bundle of long and short IDs", bundle_of_long_and_short_ids),
    ("bundle of kernels", bundle_of_kernels),
    ("bundles in a row", bundles_in_a_row),
    ("bundles in bundles", bundles_in_bundles),
    ("magics", magics),
    ("text bundle of entries", text_bundle_of_entries),
    ("text without ends", text_without_ends),
    ("text of long lines", text_of_long_lines),
    ("compressed headers in a row", compressed_headers_in_a_row),
    ("packages in a row", packages_in_a_row),
    ("packages in packages", packages_in_packages),
    ("packages of targets", packages_of_targets),
    ("package of strings", package_of_strings),
    ("package of entries", package_of_entries),
    ("fatbinary of empty entries", fatbinary_of_empty_entries),
    ("archive of empty members", archive_of_empty_members),
    ("archive with one symbol", archive_with_one_symbol),
    ("archive of bundles", archive_of_bundles),
    ("archive of packages", archive_of_packages),
    ("archive with a long name", archive_with_a_long_name),
    ("archive of archives", archive_of_archives),
    ("thin archive", thin_archive),
    ("ELF of packages", elf_of_packages),
    ("ELF with bundles", elf_with_bundles),
    ("ELF of hosts", elf_of_hosts),
    ("ELF with long symbols", elf_with_long_symbols),
    ("ELF of symbol tables", elf_of_symbol_tables),
    ("code of kernels", code_of_kernels),
    ("program of wrappers", program_of_wrappers),
    ("COFF of long names", coff_of_long_names),
    ("COFF of sections", coff_of_sections),
    ("COFF with bundles", coff_with_bundles),
    ("PE of relocations", pe_of_relocations),
    ("Mach-O of commands", macho_of_commands),
    ("Mach-O of sections", macho_of_sections),
    ("universal file of slices", universal_of_slices),
    ("WebAssembly of sections", wasm_of_sections),
    ("bitcode globals", bitcode_globals),
    ("bitcode modules", bitcode_modules),
    ("bitcode abbreviations", bitcode_abbreviations),
    ("bitcode arrays", bitcode_arrays),
    ("bitcode nested blocks", bitcode_nested_blocks),
    ("zip of texts", zip_of_texts),
    ("zip of one name", zip_of_one_name),
    ("zip of findings", zip_of_findings),
    ("zip of bundles", zip_of_bundles),
    ("wheel of rows", wheel_of_rows),
    ("tar of texts", tar_of_texts),
    ("tar of one name", tar_of_one_name),
    ("tar of bundles", tar_of_bundles),
    ("tar of extended headers", tar_of_extended_headers),
    ("image of layers", image_of_layers),
    ("image of files", image_of_files),
    ("image of removed files", image_of_removed_files),
    ("deb of empty members", deb_of_empty_members),
    ("deb of rows", deb_of_rows),
];

/// A size as formats of 64 bits have it.
fn long(size: usize) -> [u8; 8] {
    u64::try_from(size).unwrap_or(u64::MAX).to_le_bytes()
}

/// A size as formats of 32 bits have it.
fn word(size: usize) -> [u8; 4] {
    u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes()
}

/// A number of things as headers with 16 bits for it have it.
fn half(count: usize) -> [u8; 2] {
    u16::try_from(count).unwrap_or(u16::MAX).to_le_bytes()
}
