//! SYCL: one offload binary of images, handed to the runtime as it is.

use super::body::{Body, address, int};
use super::{
    Abi, Blob, Error, Global, Module, Name, Role, Type, Wrapper, constant, image_bytes, is_package,
    parts,
};

pub(super) const REGISTER: Name = Name::Borrowed("sycl.descriptor_reg");
pub(super) const UNREGISTER: Name = Name::Borrowed("sycl.descriptor_unreg");
const BINARY: Name = Name::Borrowed(".sycl_offloading.binary");

pub(super) fn build(module: &mut Module, wrapper: &Wrapper<'_>) -> Result<(), Error> {
    // Checks an offload binary; the runtime takes it apart.
    parts(wrapper, 0)?;
    let size = wrapper.images.first().map_or(0, |image| image.size);
    let package = is_package(wrapper, 0);
    module.blobs.push(Blob { input: 0, offset: 0, size, package });
    module.globals.push(Global {
        unnamed_addr: true,
        section: Some(".llvm.offloading".into()),
        align: wrapper.options.image_align.unwrap_or(8),
        ..constant(BINARY, image_bytes(0, size))
    });
    let at_exit = wrapper.abi == Abi::Llvm24;
    module.run_at_start(if at_exit { 101 } else { 1 }, &REGISTER);
    if !at_exit {
        module.run_at_end(1, &UNREGISTER);
    }

    let register_lib = Name::Borrowed("__sycl_register_lib");
    let unregister_lib = Name::Borrowed("__sycl_unregister_lib");
    let exit = Name::Borrowed("atexit");
    let word = module.size_type();
    let arguments = vec![address(&BINARY), int(&word, size)];
    let parameters = [Type::Pointer, word];

    let mut body = Body::new(&[]);
    body.call(&register_lib, arguments.clone());
    if at_exit {
        body.call_for(Type::Int(32), &exit, vec![address(&UNREGISTER)]);
    }
    module.define(&REGISTER, Role::Register, body.ret());
    module.declare(register_lib, Type::Void, &parameters);
    if at_exit {
        module.declare(exit, Type::Int(32), &[Type::Pointer]);
    }

    let mut body = Body::new(&[]);
    body.call(&unregister_lib, arguments);
    module.define(&UNREGISTER, Role::Unregister, body.ret());
    module.declare(unregister_lib, Type::Void, &parameters);
    Ok(())
}
