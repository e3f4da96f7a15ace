//! SYCL as LLVM 22 registers it: a descriptor of the images in offload binaries, each with its entries.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::body::{Body, address};
use super::own_entries::Records;
use super::sycl::{REGISTER, UNREGISTER};
use super::{
    Blob, Constant, Error, ErrorKind, Global, Module, Name, Role, Type, Wrapper, add_struct,
    constant, image_bytes,
};
use crate::entries::OffloadEntry;
use crate::image::Image;
use crate::to_u64;

const DEVICE_IMAGES: Name = Name::Borrowed(".sycl_offloading.device_images");
const DESCRIPTOR: Name = Name::Borrowed(".sycl_offloading.descriptor");

/// Entries of all images: each takes up to a kilobyte while the module is made.
const MAX_ENTRIES: usize = 1 << 16;

/// One device image in the offload binaries.
struct Device<'a> {
    image_kind: u16,
    offload_kind: u16,
    triple: &'a [u8],
    /// Names of its kernels, one for each line.
    symbols: &'a [u8],
    offset: u64,
    size: u64,
}

pub(super) fn build(module: &mut Module, wrapper: &Wrapper<'_>) -> Result<(), Error> {
    let Some(image) = wrapper.images.first() else { return Ok(()) };
    let devices = devices(image, wrapper)?;
    let records = Records::new(module, None);
    let [word, byte] = [16, 8].map(Type::Int);
    let fields = [vec![word.clone(), byte.clone(), byte], vec![Type::Pointer; 9]].concat();
    let image_type = add_struct(module, "__sycl.tgt_device_image", fields);
    let fields = [vec![word.clone(), word], vec![Type::Pointer; 3]].concat();
    let descriptor_type = add_struct(module, "__sycl.tgt_bin_desc", fields);

    let mut names = Names::default();
    let mut images = Vec::new();
    for (index, device) in devices.iter().enumerate() {
        let fields = describe(module, wrapper, &records, &mut names, (index, device))?;
        images.push(Constant::Aggregate(image_type.clone(), fields));
    }
    let fields = vec![
        int(16, 1), // version
        int(16, to_u64(images.len())),
        Constant::symbol(&DEVICE_IMAGES),
        Constant::Null,
        Constant::Null,
    ];
    let images = Constant::Array(images);
    module.globals.push(Global { unnamed_addr: true, ..constant(DEVICE_IMAGES, images) });
    let descriptor = Constant::Aggregate(descriptor_type, fields);
    module.globals.push(constant(DESCRIPTOR, descriptor));
    module.run_at_start(1, &REGISTER);
    module.run_at_end(1, &UNREGISTER);
    for (function, role, call) in [
        (&REGISTER, Role::Register, "__sycl_register_lib"),
        (&UNREGISTER, Role::Unregister, "__sycl_unregister_lib"),
    ] {
        let mut body = Body::new(&[]);
        body.call(&Name::Borrowed(call), vec![address(&DESCRIPTOR)]);
        module.define(function, role, body.ret());
        module.declare(call, Type::Void, &[Type::Pointer]);
    }
    Ok(())
}

/// Returns the images of all offload binaries in the image.
fn devices<'a>(image: &'a Image<'_>, wrapper: &Wrapper<'_>) -> Result<Vec<Device<'a>>, Error> {
    let (mut devices, mut offset) = (Vec::new(), 0);
    while devices.is_empty() || offset < image.size {
        let package = image.package(0, offset, wrapper.kind)?;
        devices.extend(package.entries().map(|entry| Device {
            image_kind: entry.image_kind().0,
            offload_kind: entry.offload_kind().0,
            // Empty where it is absent.
            triple: entry.get("triple").unwrap_or_default(),
            symbols: entry.get("symbols").unwrap_or_default(),
            offset: offset + entry.image_offset(),
            size: entry.image_size(),
        }));
        offset += package.size();
    }
    // Texts are written in one pass over the image.
    devices.sort_by_key(|device| device.offset);
    match u16::try_from(devices.len()) {
        Ok(_) => Ok(devices),
        Err(_) => Err(Error::too_many_images(devices.len())),
    }
}

/// Adds what belongs to an image, and returns the fields that describe it.
fn describe(
    module: &mut Module,
    wrapper: &Wrapper<'_>,
    records: &Records,
    names: &mut Names,
    (index, device): (usize, &Device<'_>),
) -> Result<Vec<Constant>, Error> {
    let mut text = |name: &str, text: &[u8]| {
        let name: Name = format!(".sycl_offloading.{name}.{index}").into();
        let bytes = match text {
            [] => Constant::Zero(Type::bytes(1)),
            text => Constant::Bytes(Cow::Owned([text, &[0]].concat())),
        };
        let symbol = Constant::symbol(&name);
        module.globals.push(Global { unnamed_addr: true, ..constant(name, bytes) });
        symbol
    };
    // There are no options for compilers and linkers at run time.
    let texts = [text("target", device.triple), text("opts.compile", b""), text("opts.link", b"")];

    let data: Name = format!(".sycl_offloading.{index}.data").into();
    let blob = module.blobs.len();
    let Device { offset, size, .. } = *device;
    module.blobs.push(Blob { input: 0, offset, size, package: false });
    module.globals.push(Global {
        unnamed_addr: true,
        section: Some(".llvm.offloading".into()),
        align: wrapper.options.image_align.unwrap_or(8),
        ..constant(data.clone(), image_bytes(blob, size))
    });
    let end = Constant::inside_bytes(wrapper.abi, &data, size, size);

    let mut entries = Vec::new();
    for symbol in device.symbols.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let symbol = symbol.strip_suffix(b"\r").unwrap_or(symbol);
        let name = str::from_utf8(symbol).ok().filter(|name| !name.contains('\0'));
        let name = name.ok_or_else(|| {
            Error::bad_entry_name(entries.len(), &String::from_utf8_lossy(symbol))
        })?;
        if names.taken.len() >= 2 * MAX_ENTRIES {
            let text = format!("the device images name more than {MAX_ENTRIES} offload entries");
            return Err(Error::new(ErrorKind::Limit, text));
        }
        let entry = OffloadEntry { address: None, ..OffloadEntry::kernel(name, "") };
        let text = names.unique(records.text_name.into());
        let record = names.unique(records.name_of(&entry));
        entries.push(records.add(module, &entry, &text, record));
    }
    let array = names.unique(".sycl_offloading.entries_arr".into());
    let last = last(module, records, &array, to_u64(entries.len()));
    let first = Constant::symbol(&array);
    let contents = match entries.len() {
        0 => Constant::Zero(Type::array(0, records.ty.clone())),
        _ => Constant::Array(entries),
    };
    module.globals.push(constant(array, contents));

    let version = int(16, 3);
    let kinds = [int(8, device.offload_kind.into()), int(8, device.image_kind.into())];
    let range = [Constant::symbol(&data), end, first, last];
    let properties = [Constant::Null, Constant::Null];
    Ok([version].into_iter().chain(kinds).chain(texts).chain(range).chain(properties).collect())
}

/// Returns the address after the last of `count` records in an array.
fn last(module: &Module, records: &Records, array: &Name, count: u64) -> Constant {
    if count == 0 {
        return Constant::symbol(array);
    }
    Constant::Inside {
        global: array.clone(),
        // In memory as a whole.
        offset: module.size_of(&records.ty) * count,
        source: Type::array(count, records.ty.clone()),
        indices: vec![0, count],
        inbounds: false,
    }
}

fn int(bits: u16, value: u64) -> Constant {
    Constant::Int { bits, value }
}

/// Names that several images want. LLVM numbers all that are taken in one row.
#[derive(Default)]
struct Names {
    taken: BTreeSet<Name>,
    last: u64,
}

impl Names {
    fn unique(&mut self, name: Name) -> Name {
        let base = name.clone();
        let mut unique = name;
        while !self.taken.insert(unique.clone()) {
            self.last = self.last.wrapping_add(1);
            unique = format!("{base}.{}", self.last).into();
        }
        unique
    }
}

#[cfg(test)]
mod tests {
    use offload_binary::{FormatVersion, ImageEntry, OffloadKind};

    use super::*;
    use crate::{Abi, Target};

    fn package(symbols: &str) -> Vec<u8> {
        let entry = ImageEntry::new(5).with_offload_kind(OffloadKind::SYCL);
        let entry = entry.with_string("triple", "spirv64").with_string("symbols", symbols);
        offload_binary::layout(FormatVersion::V1, &[entry]).unwrap().to_vec(&[b"image"]).unwrap()
    }

    fn wrap(bytes: &[u8]) -> Result<String, Error> {
        let target = Target::new("x86_64-unknown-linux-gnu").unwrap();
        let wrapper = Wrapper::new(OffloadKind::SYCL, Abi::Llvm22, target);
        wrapper.with_image(Image::from_bytes(bytes)).module()?.ir_to_string(&[bytes])
    }

    #[test]
    fn packages_one_behind_the_other_are_described() {
        let both = [package("first\nsecond\n"), package("first")].concat();
        let text = wrap(&both).unwrap();
        for part in [
            "@.sycl_offloading.1.data = internal unnamed_addr constant [5 x i8] c\"image\"",
            "@.offloading.entry.first.",
            "@.sycl_offloading.entries_arr = internal constant [2 x ",
            "[2 x %__sycl.tgt_device_image]",
            "%__sycl.tgt_bin_desc { i16 1, i16 2, ",
            "call void @__sycl_register_lib(ptr @.sycl_offloading.descriptor)",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn only_packages_with_their_heads_are_described() {
        assert_eq!(wrap(b"no package").unwrap_err().kind(), ErrorKind::Package);
        let cut = [&package("a")[..], &package("b")[..40]].concat();
        assert_eq!(wrap(&cut).unwrap_err().kind(), ErrorKind::Package);
        let many = package(&"k\n".repeat(MAX_ENTRIES + 1));
        let text = format!("the device images name more than {MAX_ENTRIES} offload entries");
        assert_eq!(wrap(&many).unwrap_err(), (ErrorKind::Limit, &*text));
    }

    #[test]
    fn heads_reach_to_the_tables_of_the_last_package() {
        let both = [package("a"), package("b")].concat();
        let target = Target::new("x86_64-unknown-linux-gnu").unwrap();
        let mut head = 4;
        for _ in 0..8 {
            let image = Image::new(to_u64(both.len()), &both[..head]);
            let wrapper = Wrapper::new(OffloadKind::SYCL, Abi::Llvm22, target.clone());
            match wrapper.with_image(image).module() {
                Ok(module) => {
                    assert_eq!(module.blobs.len(), 2);
                    return;
                }
                Err(error) => head = usize::try_from(error.head_needed().unwrap()).unwrap(),
            }
        }
        panic!("the head is never long enough");
    }
}
