//! Writing what LLVM writes, and refusing what nobody could read.

use std::borrow::Cow;

use crate::common::told;
use byte_parts::Part;
use offload_binary::{
    ErrorKind, Flags, FormatVersion, ImageEntry, ImageKind, OffloadBinary, OffloadKind, binaries,
    convert,
};
use proptest::prelude::*;

use FormatVersion::{V1, V2};
use samples::binary::{llvm_22, llvm_23};
use samples::hex;

fn len(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap()
}

/// Writes in all ways there are, which have to agree.
fn write(version: FormatVersion, images: &[(ImageEntry<'_>, &[u8])]) -> Vec<u8> {
    let (entries, images): (Vec<_>, Vec<_>) = images.iter().cloned().unzip();
    let layout = offload_binary::layout(version, &entries).unwrap();
    let bytes = layout.to_vec(&images).unwrap();
    assert_eq!(layout.size(), len(&bytes));
    assert_eq!(layout.sizes().len(), images.len());

    #[cfg(feature = "std")]
    {
        let mut written = Vec::new();
        layout.write_to(&mut written, images.iter().copied()).unwrap();
        assert_eq!(written, bytes);
    }

    let mut offset = 0;
    for part in layout.parts().iter() {
        if let &Part::Input(&index, ref range) = &part {
            assert_eq!(layout.offset(index), Some(offset));
            assert_eq!(layout.sizes()[index], len(images[index]));
            assert_eq!(*range, 0..len(images[index]));
        }
        offset += part.size();
    }
    assert_eq!(offset, len(&bytes));
    bytes
}

/// Returns the entries with their images, over all binaries.
fn read(data: &[u8]) -> Vec<(ImageEntry<'_>, &[u8])> {
    binaries(data)
        .flat_map(|binary| binary.unwrap().1.entries())
        .map(|entry| (entry.to_image_entry(), entry.image().unwrap()))
        .collect()
}

fn cuda() -> (ImageEntry<'static>, &'static [u8]) {
    let entry = ImageEntry::new(11)
        .with_image_kind(ImageKind::OBJECT)
        .with_offload_kind(OffloadKind::CUDA)
        .with_string("arch", "sm_70")
        .with_string("triple", "nvptx64-nvidia-cuda");
    (entry, b"hello image")
}

#[test]
fn one_image_as_llvm_writes_it() {
    assert_eq!(write(V1, &[cuda()]), llvm_22());
    assert_eq!(write(V2, &[cuda()]), llvm_23());
    assert_eq!((V1.number(), V2.number()), (1, 2));
}

#[test]
fn no_images_as_llvm_writes_them() {
    // LLVM 22.1.8 writes an empty file without --image, LLVM 23.1.4 this.
    let empty_v2 = "10ff10ad02000000 2800000000000000 2000000000000000 0000000000000000
                    0000000000000000";
    assert_eq!(write(V1, &[]), []);
    assert_eq!(write(V2, &[]), hex(empty_v2));
    assert_eq!(convert(&[], V2).unwrap(), hex(empty_v2));
    assert_eq!(convert(&hex(empty_v2), V1).unwrap(), []);
}

/// Strings that end each other are shared, of HIP and SYCL.
fn two_images() -> [(ImageEntry<'static>, &'static [u8]); 2] {
    let hip = ImageEntry::new(5)
        .with_image_kind(ImageKind::OBJECT)
        .with_offload_kind(OffloadKind::HIP)
        .with_string("feature", "90a")
        .with_string("arch", "gfx90a")
        .with_string("triple", "amdgcn-amd-amdhsa");
    let sycl = ImageEntry::new(11)
        .with_image_kind(ImageKind::BITCODE)
        .with_offload_kind(OffloadKind::SYCL)
        .with_string("triple", "spirv64");
    [(hip, b"hello"), (sycl, b"device code")]
}

/// `llvm-offload-binary -o two.bin
/// --image=file=a.o,triple=amdgcn-amd-amdhsa,arch=gfx90a,kind=hip,feature=90a
/// --image=file=b.bc,triple=spirv64,kind=sycl` of LLVM 22.1.8, where a.o holds `hello` and b.bc
/// `device code`.
const TWO_V1: &str = "
    10ff10ad01000000 b000000000000000 2000000000000000 2800000000000000
    0100040000000000 4800000000000000 0300000000000000 a800000000000000
    0500000000000000 7e00000000000000 a200000000000000 7900000000000000
    9f00000000000000 8600000000000000 8d00000000000000 0061726368006665
    6174757265007472 69706c6500616d64 67636e2d616d642d 616d646873610067
    6678393061000000 68656c6c6f000000
    10ff10ad01000000 7800000000000000 2000000000000000 2800000000000000
    0200080000000000 4800000000000000 0100000000000000 6800000000000000
    0b00000000000000 5900000000000000 6000000000000000 00747269706c6500
    7370697276363400 6465766963652063 6f64650000000000";

/// The same images in version 2. Computed in the layout of [`CUDA_V2`], not written by LLVM.
const TWO_V2: &str = "
    10ff10ad02000000 1801000000000000 2000000000000000 0200000000000000
    0100040000000000 7000000000000000 0300000000000000 0801000000000000
    0500000000000000 0200080000000000 b800000000000000 0100000000000000
    0d01000000000000 0b00000000000000 d600000000000000 fa00000000000000
    0300000000000000 d100000000000000 f700000000000000 0600000000000000
    de00000000000000 e500000000000000 1100000000000000 de00000000000000
    fe00000000000000 0700000000000000 0061726368006665 6174757265007472
    69706c6500616d64 67636e2d616d642d 616d646873610067 6678393061007370
    6972763634000000 68656c6c6f646576 69636520636f6465";

#[test]
fn several_images_are_written() {
    assert_eq!(write(V1, &two_images()), hex(TWO_V1));
    assert_eq!(write(V2, &two_images()), hex(TWO_V2));
    assert_eq!(read(&hex(TWO_V1)), two_images());
    assert_eq!(read(&hex(TWO_V2)), two_images());
}

#[test]
fn entries_may_lack_an_image() {
    let metadata = ImageEntry::new(0)
        .with_offload_kind(OffloadKind::SYCL)
        .with_flags(Flags::METADATA)
        .with_string("a", "1");
    let image = ImageEntry::new(3).with_string("a", "2");
    let images: [(_, &[u8]); 2] = [(metadata, b""), (image, b"\x01\x02\x03")];
    // Computed in the layout of CUDA_V2, not written by LLVM.
    let expected = "
        10ff10ad02000000 b000000000000000 2000000000000000 0200000000000000
        0000080001000000 7000000000000000 0100000000000000 a800000000000000
        0000000000000000 0000000000000000 8800000000000000 0100000000000000
        a800000000000000 0300000000000000 a100000000000000 a500000000000000
        0100000000000000 a100000000000000 a300000000000000 0100000000000000
        0061003200310000 0102030000000000";
    assert_eq!(write(V2, &images), hex(expected));
    assert_eq!(read(&hex(expected)), images);
    // Version 1 keeps the flag.
    assert_eq!(read(&convert(&hex(expected), V1).unwrap()), images);
    // Alone, its image is after everything.
    let alone = write(V2, &images[..1]);
    assert_eq!(read(&alone), images[..1]);
}

#[test]
fn values_may_hold_nuls() {
    let entry = ImageEntry::new(1)
        .with_string("opts", "-x\0-y")
        .with_string("tail", "y")
        .with_string("none", "");
    let images: [(_, &[u8]); 1] = [(entry, b"\xff")];
    // Computed in the layout of CUDA_V2, not written by LLVM.
    let expected = "
        10ff10ad02000000 b000000000000000 2000000000000000 0100000000000000
        0000000000000000 4800000000000000 0300000000000000 a800000000000000
        0100000000000000 9700000000000000 9100000000000000 0500000000000000
        9c00000000000000 9500000000000000 0100000000000000 a100000000000000
        9000000000000000 0000000000000000 002d78002d79006f 707473007461696c
        006e6f6e65000000 ff00000000000000";
    assert_eq!(write(V2, &images), hex(expected));
    assert_eq!(read(&hex(expected)), images);
    let error = convert(&hex(expected), V1).unwrap_err();
    assert_eq!((error.kind(), error.entry()), (ErrorKind::Nul, Some(0)));
    assert_eq!(
        error.to_string(),
        "offload binary entry 0 has the value of key \"opts\" in string 0 with a nul, \
         which version 1 cannot store",
    );
}

#[test]
fn a_binary_may_be_an_image() {
    let inner = llvm_22();
    let entry =
        ImageEntry::new(len(&inner)).with_image_kind(ImageKind(7)).with_string("arch", "any");
    for version in [V1, V2] {
        let outer = write(version, &[(entry.clone(), &inner)]);
        let entries = read(&outer);
        assert_eq!(entries.len(), 1);
        assert_eq!(read(entries[0].1), [cuda()]);
    }
    // Computed in the layout of CUDA_V2, not written by LLVM.
    let start = "
        10ff10ad02000000 1001000000000000 2000000000000000 0100000000000000
        0700000000000000 4800000000000000 0100000000000000 7000000000000000
        a000000000000000 6500000000000000 6100000000000000 0300000000000000
        00616e7900617263 6800000000000000";
    assert_eq!(write(V2, &[(entry, &inner)]), [hex(start), inner].concat());
}

#[test]
fn images_may_lack_strings() {
    // As yaml2obj of LLVM 22.1.8 writes an entry without anything.
    let expected = "
        10ff10ad01000000 5000000000000000 2000000000000000 2800000000000000
        0000000000000000 4800000000000000 0000000000000000 5000000000000000
        0000000000000000 0000000000000000";
    assert_eq!(write(V1, &[(ImageEntry::new(0), b"")]), hex(expected));
}

#[test]
fn hip_has_two_numbers() {
    for (kind, number) in [(OffloadKind::HIP, 4), (OffloadKind::HIP_LEGACY, 3)] {
        let bytes = write(V1, &[(ImageEntry::new(0).with_offload_kind(kind), b"")]);
        assert_eq!(bytes[34..36], [number, 0]);
        // Converting does not change it.
        let converted = convert(&bytes, V2).unwrap();
        assert_eq!(read(&converted)[0].0.offload_kind, kind);
    }
}

#[test]
fn unknown_kinds_and_flags_are_kept() {
    let entry = ImageEntry::new(0)
        .with_image_kind(ImageKind(0x1234))
        .with_offload_kind(OffloadKind(0x5678))
        .with_flags(Flags::from_bits_retain(0x9abc_def1));
    let bytes = write(V1, &[(entry.clone(), b"")]);
    assert_eq!(bytes[32..40], [0x34, 0x12, 0x78, 0x56, 0xf1, 0xde, 0xbc, 0x9a]);
    assert_eq!(read(&convert(&bytes, V2).unwrap()), [(entry, &b""[..])]);
}

#[test]
fn repeated_and_odd_keys_are_kept() {
    let entry = ImageEntry::new(0)
        .with_string("a", "1")
        .with_string("a", "2")
        .with_string("", "")
        .with_string(b"\xff", "x");
    for version in [V1, V2] {
        let bytes = write(version, &[(entry.clone(), b"")]);
        assert_eq!(read(&bytes), [(entry.clone(), &b""[..])]);
    }
}

#[test]
fn owned_and_borrowed_are_equal() {
    let (entry, _) = cuda();
    let owned: ImageEntry<'static> = entry.clone().into_owned();
    assert!(owned.strings.iter().all(|(key, _)| matches!(key, Cow::Owned(_))));
    assert_eq!(owned, entry);
    let data = llvm_22();
    let read = OffloadBinary::parse(&data).unwrap().entries().next().unwrap();
    assert_eq!(read.to_image_entry(), entry);
}

#[test]
fn versions_convert_into_each_other() {
    assert_eq!(convert(&hex(TWO_V1), V2).unwrap(), hex(TWO_V2));
    assert_eq!(convert(&hex(TWO_V2), V1).unwrap(), hex(TWO_V1));
    // A binary that has the version already is written again.
    assert_eq!(convert(&hex(TWO_V1), V1).unwrap(), hex(TWO_V1));
    assert_eq!(convert(&hex(TWO_V2), V2).unwrap(), hex(TWO_V2));
    // Mixtures and padding.
    let mixed = [llvm_23(), vec![0; 24], hex(TWO_V1)].concat();
    let v2 = convert(&mixed, V2).unwrap();
    assert_eq!(binaries(&v2).count(), 1);
    let v1 = convert(&v2, V1).unwrap();
    assert_eq!(v1, [llvm_22(), hex(TWO_V1)].concat());
}

#[test]
fn damaged_input_does_not_convert() {
    for (tail, expected) in [
        (
            &llvm_22()[..152],
            "Truncated at 0xa0: offload binary at offset 0xa0: offload binary has size 0xa0, but only 0x98 bytes are left",
        ),
        (
            b"tail",
            "TrailingData at 0xa0: data at offset 0xa0 is neither an offload binary nor zero padding",
        ),
    ] {
        assert_eq!(told(&convert(&[&llvm_22(), tail].concat(), V2).unwrap_err()), expected);
    }
}

#[test]
fn entries_of_all_binaries_count() {
    let nul = ImageEntry::new(0).with_string("k", "\0");
    let data = [hex(TWO_V1), write(V2, &[(nul, b"")])].concat();
    let error = convert(&data, V1).unwrap_err();
    assert_eq!((error.kind(), error.entry()), (ErrorKind::Nul, Some(2)));
}

const TOO_MANY: &str =
    "Limit: offload binary would have more than 67108864 bytes of keys and values";

fn refused(version: FormatVersion, entries: &[ImageEntry<'_>]) -> String {
    told(&offload_binary::layout(version, entries).unwrap_err())
}

#[test]
fn keys_cannot_hold_nuls() {
    let entries =
        [ImageEntry::new(0), ImageEntry::new(0).with_string("a", "").with_string("b\0\"", "")];
    for version in [V1, V2] {
        let error = refused(version, &entries);
        let text = "Nul: offload binary entry 1 has the key \"b\\x00\\\"\" in string 1, \
                    which cannot be stored with a nul";
        assert_eq!(error, text);
    }
}

#[test]
fn values_cannot_hold_nuls_in_version_1() {
    let entries = [ImageEntry::new(0).with_string("key", "a\0")];
    assert!(refused(V1, &entries).starts_with("Nul: "));
    assert!(offload_binary::layout(V2, &entries).is_ok());
}

#[test]
fn sizes_beyond_64_bits_are_errors() {
    let sizes = |sizes: &[u64]| sizes.iter().map(|size| ImageEntry::new(*size)).collect::<Vec<_>>();
    let beyond =
        |entry| format!("Limit: offload binary entry {entry} would end beyond the largest offset");
    for version in [V1, V2] {
        let cases: [(u64, &[u64]); 3] =
            [(0, &[u64::MAX]), (1, &[1 << 63, 1 << 63]), (2, &[1 << 62, 1 << 62, 1 << 63])];
        for (entry, list) in cases {
            assert_eq!(refused(version, &sizes(list)), beyond(entry));
        }
    }
    // The last size that fits: 80 bytes of headers, and a multiple of 8 in total.
    let largest = u64::MAX - 7 - 80;
    let layout = offload_binary::layout(V1, &sizes(&[largest])).unwrap();
    assert_eq!(layout.size(), u64::MAX - 7);
    assert_eq!(refused(V1, &sizes(&[largest + 1])), beyond(0));
    assert_eq!(refused(V1, &sizes(&[largest, 0])), beyond(1));
    // Nothing of it is ever in memory.
    assert_eq!(layout.to_vec(&[b""]).unwrap_err().to_string().lines().count(), 1);
}

#[test]
#[cfg_attr(
    miri,
    ignore = "megabytes of data would take Miri hours; small data takes the same ways"
)]
fn too_many_bytes_of_strings_are_an_error() {
    let long = vec![b'x'; 1 << 20];
    let mut entry = ImageEntry::new(0);
    // Equal keys, which `string` would store once.
    entry.strings.extend((0..64).map(|_| ((&[]).into(), (&long).into())));
    // As much as is allowed, but there only once.
    let layout = offload_binary::layout(V2, std::slice::from_ref(&entry)).unwrap();
    assert!(layout.size() < 2 << 20);
    assert_eq!(refused(V2, &[entry.with_string("a", "")]), TOO_MANY);
}

#[test]
#[cfg_attr(
    miri,
    ignore = "megabytes of data would take Miri hours; small data takes the same ways"
)]
fn strings_that_share_bytes_do_not_unfold() {
    // 20,000 values that overlap in a text of half a megabyte would be 10 gigabytes.
    let (count, text) = (20_000, 500_000);
    let mut data = write(V2, &[(ImageEntry::new(0), b"")]);
    let strings_at = 72;
    let text_at = strings_at + 24 * count;
    let size = (text_at + text + 1_usize).next_multiple_of(8);
    data.resize(size, b'x');
    let mut put = |at: usize, value: usize| {
        data[at..at + 8].copy_from_slice(&u64::try_from(value).unwrap().to_le_bytes());
    };
    put(8, size);
    put(48, count);
    put(size - 8, 0);
    for string in 0..count {
        let at = strings_at + 24 * string;
        put(at, size - 1);
        put(at + 8, text_at);
        put(at + 16, text - 8 - string);
    }
    for version in [V1, V2] {
        assert_eq!(told(&convert(&data, version).unwrap_err()), TOO_MANY);
    }
}

/// Strings that often end each other.
fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof!["[ab]{0,4}".prop_map(String::into_bytes), prop::collection::vec(1..=255_u8, 0..12)]
}

fn image() -> impl Strategy<Value = (ImageEntry<'static>, Vec<u8>)> {
    let strings = prop::collection::vec((text(), text()), 0..5);
    let image = prop::collection::vec(any::<u8>(), 0..20);
    (any::<u16>(), any::<u16>(), any::<u32>(), strings, image).prop_map(
        |(image_kind, offload_kind, flags, strings, image)| {
            let mut entry = ImageEntry::new(len(&image))
                .with_image_kind(ImageKind(image_kind))
                .with_offload_kind(OffloadKind(offload_kind))
                .with_flags(Flags::from_bits_retain(flags));
            entry.strings = strings.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
            (entry, image)
        },
    )
}

fn images() -> impl Strategy<Value = Vec<(ImageEntry<'static>, Vec<u8>)>> {
    prop::collection::vec(image(), 0..5)
}

fn borrowed<'a>(images: &'a [(ImageEntry<'static>, Vec<u8>)]) -> Vec<(ImageEntry<'a>, &'a [u8])> {
    images.iter().map(|(entry, image)| (entry.clone(), &image[..])).collect()
}

proptest! {
    #[test]
    fn written_binaries_are_read_back(images in images()) {
        let images = borrowed(&images);
        for version in [V1, V2] {
            let bytes = write(version, &images);
            prop_assert_eq!(&read(&bytes), &images);
            let versions: Vec<_> = binaries(&bytes).map(|b| b.unwrap().1.version()).collect();
            let count = if version == V1 { images.len() } else { 1 };
            prop_assert_eq!(versions, vec![version; count]);
        }
    }

    #[test]
    fn converting_in_both_directions_changes_nothing(images in images()) {
        let images = borrowed(&images);
        let (v1, v2) = (write(V1, &images), write(V2, &images));
        prop_assert_eq!(&convert(&v1, V2).unwrap(), &v2);
        prop_assert_eq!(&convert(&v2, V1).unwrap(), &v1);
        prop_assert_eq!(&convert(&v1, V1).unwrap(), &v1);
        prop_assert_eq!(&convert(&v2, V2).unwrap(), &v2);
    }
}
