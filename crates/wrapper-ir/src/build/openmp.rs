//! OpenMP: a descriptor of any number of images.

use super::body::{Body, address, null};
use super::{
    Abi, Blob, Constant, Error, ErrorKind, Global, Linkage, Module, Name, Operation, Role, Type,
    Wrapper, add_struct, constant, entries, image_bytes, is_package, numbered, parts,
};

const REGISTER: Name = Name::Borrowed(".omp_offloading.descriptor_reg");
const UNREGISTER: Name = Name::Borrowed(".omp_offloading.descriptor_unreg");
const DESCRIPTOR: Name = Name::Borrowed(".omp_offloading.descriptor");
const DEVICE_IMAGES: Name = Name::Borrowed(".omp_offloading.device_images");
const REGISTER_INFO: Name = Name::Borrowed("__tgt_register_image_info");

pub(super) fn build(module: &mut Module, wrapper: &Wrapper<'_>) -> Result<(), Error> {
    let entries = entries::add(module, wrapper);
    let image_type = add_struct(module, "__tgt_device_image", vec![Type::Pointer; 4]);
    let descriptor_type = add_struct(
        module,
        "__tgt_bin_desc",
        vec![Type::Int(32), Type::Pointer, Type::Pointer, Type::Pointer],
    );

    let mut images = Vec::new();
    for (index, image) in wrapper.images.iter().enumerate() {
        let name = numbered(".omp_offloading.device_image", index);
        for part in parts(wrapper, index)? {
            let start = Constant::inside_bytes(wrapper.abi, &name, image.size, part.start);
            let end = Constant::inside_bytes(wrapper.abi, &name, image.size, part.end);
            let fields = vec![start, end, entries.start.clone(), entries.stop.clone()];
            images.push(Constant::Aggregate(image_type.clone(), fields));
        }
        let size = image.size;
        let package = is_package(wrapper, index);
        module.blobs.push(Blob { input: index, offset: 0, size, package });
        module.globals.push(Global {
            unnamed_addr: true,
            section: image_section(wrapper),
            align: wrapper.options.image_align.unwrap_or(8),
            ..constant(name, image_bytes(index, size))
        });
    }
    let count = match i32::try_from(images.len()) {
        Ok(count) => count.unsigned_abs(),
        Err(_) => return Err(Error::too_many_images(images.len())),
    };
    let images = constant(DEVICE_IMAGES, Constant::Array(images));
    module.globals.push(Global { unnamed_addr: true, ..images });
    let fields =
        vec![Constant::i32(count), Constant::symbol(&DEVICE_IMAGES), entries.start, entries.stop];
    module.globals.push(constant(DESCRIPTOR, Constant::Aggregate(descriptor_type, fields)));
    let infos = image_infos(module, wrapper, count)?;

    let priority = match wrapper.abi {
        Abi::Aomp | Abi::Llvm18 => 1,
        _ => 101,
    };
    module.run_at_start(priority, &REGISTER);
    let at_exit = priority != 1;
    if !at_exit {
        module.run_at_end(priority, &UNREGISTER);
    }
    add_functions(module, wrapper, &infos, at_exit);
    Ok(())
}

/// Adds the functions that register and unregister the descriptor.
fn add_functions(module: &mut Module, wrapper: &Wrapper<'_>, infos: &[Name], at_exit: bool) {
    let register_lib = Name::Borrowed("__tgt_register_lib");
    let unregister_lib = Name::Borrowed("__tgt_unregister_lib");
    let exit = Name::Borrowed("atexit");

    let weak = wrapper.options.weak_image_info;
    let mut body = Body::new(&[]);
    if weak && !infos.is_empty() {
        let condition =
            body.value("", Type::Int(1), Operation::NotEqual(address(&REGISTER_INFO), null()));
        body.run(Operation::BranchIf { condition, then: 1, otherwise: 2 });
        body.block("register.info");
    }
    for info in infos {
        body.call(&REGISTER_INFO, vec![address(info)]);
    }
    if weak && !infos.is_empty() {
        body.run(Operation::Branch(2));
        body.block("register.lib");
    }
    body.call(&register_lib, vec![address(&DESCRIPTOR)]);
    if at_exit {
        body.call_for(Type::Int(32), &exit, vec![address(&UNREGISTER)]);
    }
    module.define(&REGISTER, Role::Register, body.ret());
    if !infos.is_empty() {
        module.declare(REGISTER_INFO, Type::Void, &[Type::Pointer]);
        if weak && let Some(function) = module.functions.last_mut() {
            function.linkage = Linkage::ExternWeak;
        }
    }
    module.declare(register_lib, Type::Void, &[Type::Pointer]);
    if at_exit {
        module.declare(exit, Type::Int(32), &[Type::Pointer]);
    }

    let mut body = Body::new(&[]);
    body.call(&unregister_lib, vec![address(&DESCRIPTOR)]);
    module.define(&UNREGISTER, Role::Unregister, body.ret());
    module.declare(unregister_lib, Type::Void, &[Type::Pointer]);
}

/// Returns the records about each of `count` images for AOMP's runtime, if there are any.
fn image_infos(module: &mut Module, wrapper: &Wrapper<'_>, count: u32) -> Result<Vec<Name>, Error> {
    let target_ids: Vec<&str> =
        wrapper.images.iter().filter_map(|image| image.target_id.as_deref()).collect();
    if target_ids.is_empty() {
        return Ok(Vec::new());
    }
    if u32::try_from(target_ids.len()) != Ok(count) {
        let found = target_ids.len();
        let text = format!("{count} device images have {found} target ids, expected one each");
        return Err(Error::new(ErrorKind::Count, text));
    }
    let int = Type::Int(32);
    let fields = vec![int.clone(), int.clone(), int, Type::Pointer, Type::Pointer];
    let ty = add_struct(module, "__tgt_image_info", fields);
    let mut infos = Vec::new();
    for (number, (index, target_id)) in (0_u32..).zip(target_ids.into_iter().enumerate()) {
        let arch = numbered("__offload_arch", index);
        let mut bytes = target_id.as_bytes().to_vec();
        bytes.push(0);
        // With an address that does not matter, the linker would fold equal strings, and the list
        // would be shorter than the list of images.
        module.globals.push(Global {
            section: Some(".offload_arch_list".into()),
            align: 1,
            ..constant(arch.clone(), Constant::Bytes(bytes.into()))
        });
        let info = numbered(".offload_image_info", index);
        let fields = vec![
            Constant::i32(1), // version
            Constant::i32(number),
            Constant::i32(count),
            Constant::Symbol(arch),
            Constant::Null, // compiler options
        ];
        let init = Constant::Aggregate(ty.clone(), fields);
        module.globals.push(Global { unnamed_addr: true, ..constant(info.clone(), init) });
        infos.push(info);
    }
    Ok(infos)
}

/// Returns the section of images, where it is not left to the compiler.
fn image_section(wrapper: &Wrapper<'_>) -> Option<Name> {
    match wrapper.abi {
        Abi::Aomp => None,
        _ if wrapper.options.relocatable => Some(".llvm.offloading.relocatable".into()),
        _ => Some(".llvm.offloading".into()),
    }
}
