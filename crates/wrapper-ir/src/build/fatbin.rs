//! CUDA and HIP: one fatbinary, and a call for each entry.

use super::body::{Body, address};
use super::runtime_names::Names;
use super::{
    Abi, Blob, Constant, Error, Global, Linkage, Module, Name, OffloadKind, Operation, Role,
    Struct, Type, Wrapper, constant, entries, image_bytes, parts, register_entries,
};

pub(super) fn build(module: &mut Module, wrapper: &Wrapper<'_>) -> Result<(), Error> {
    const IMAGE: Name = Name::Borrowed(".fatbin_image");
    const FATBIN: Name = Name::Borrowed(".fatbin_wrapper");

    let names = Names::new(wrapper.kind, module.target.format());
    let entries = entries::add(module, wrapper);
    let part = match &parts(wrapper, 0)?[..] {
        [part] => part.clone(),
        several => {
            return Err(Error::single_image(wrapper.kind, several.len()));
        }
    };
    let size = part.end - part.start;
    module.blobs.push(Blob { input: 0, offset: part.start, size, package: false });
    module.globals.push(Global {
        section: Some(names.image_section.into()),
        align: wrapper.options.image_align.unwrap_or(names.image_align),
        ..constant(IMAGE, image_bytes(0, size))
    });
    let ty = Type::Struct("fatbin_wrapper".into());
    let fields = vec![Type::Int(32), Type::Int(32), Type::Pointer, Type::Pointer];
    module.structs.push(Struct { name: "fatbin_wrapper".into(), fields });
    let version = Constant::i32(1);
    let fields =
        vec![Constant::i32(names.magic), version, Constant::symbol(&IMAGE), Constant::Null];
    module.globals.push(Global {
        section: Some(names.wrapper_section.into()),
        align: 8,
        // The runtime finds what follows it by its size.
        no_sanitize: wrapper.abi != Abi::Llvm22,
        ..constant(FATBIN, Constant::Aggregate(ty, fields))
    });
    let handle = constant(names.handle.clone(), Constant::Null);
    module.globals.push(Global { constant: false, linkage: Linkage::Internal, ..handle });
    let priority = if wrapper.abi == Abi::Llvm18 { 1 } else { 101 };
    module.run_at_start(priority, &names.register);

    let call = |what: &str| Name::Owned(format!("{}{what}", names.runtime));
    let register = call("RegisterFatBinary");
    let register_end = call("RegisterFatBinaryEnd");
    let unregister = call("UnregisterFatBinary");
    let exit = Name::Borrowed("atexit");
    let align = module.target.pointer_bytes();

    let mut body = Body::new(&[]);
    let handle = body.call_for(Type::Pointer, &register, vec![address(&FATBIN)]);
    let pointer = address(&names.handle);
    body.run(Operation::Store { value: handle.clone(), pointer: pointer.clone(), align });
    body.call(&names.register_entries, vec![handle.clone()]);
    if wrapper.kind == OffloadKind::CUDA {
        body.call(&register_end, vec![handle]);
    }
    body.call_for(Type::Int(32), &exit, vec![address(&names.unregister)]);
    module.define(&names.register, Role::Register, body.ret());

    let mut body = Body::new(&[]);
    let ty = Type::Pointer;
    let handle = body.value("", ty.clone(), Operation::Load { ty, pointer, align });
    body.call(&unregister, vec![handle]);
    module.define(&names.unregister, Role::Unregister, body.ret());

    module.declare(register, Type::Pointer, &[Type::Pointer]);
    if wrapper.kind == OffloadKind::CUDA {
        module.declare(register_end, Type::Void, &[Type::Pointer]);
    }
    module.declare(unregister, Type::Void, &[Type::Pointer]);
    module.declare(exit, Type::Int(32), &[Type::Pointer]);
    register_entries::add(module, wrapper, &names, &entries);
    Ok(())
}
