//! CUDA and HIP: the function that registers every entry with the handle of the fatbinary.

use super::body::{Body, int, int32, null};
use super::entries::Entries;
use super::runtime_names::Names;
use super::{Module, Name, OffloadKind, Operation, Role, Type, Wrapper};
use crate::description::Value;

// The blocks, in their order after `entry`.
const WHILE_ENTRY: usize = 1;
const IF_KIND: usize = 2;
const IF_THEN: usize = 3;
const IF_ELSE: usize = 4;
const GLOBAL: usize = 5;
const MANAGED: usize = 6;
const SURFACE: usize = 7;
const TEXTURE: usize = 8;
const IF_END: usize = 9;
const WHILE_END: usize = 10;

/// The data of an entry.
struct Entry {
    address: Value,
    /// Entries of nine fields only.
    auxiliary: Option<Value>,
    /// Entries of nine fields only.
    kind: Option<Value>,
    name: Value,
    /// The size, as wide as the field.
    size: (Value, Type),
    /// The size, as wide as `size_t`.
    size_argument: Value,
    flags: Value,
    /// 32 bits.
    data: Value,
}

/// The functions of the runtime.
struct Calls {
    function: Name,
    variable: Name,
    managed: Option<Name>,
    surface: Option<Name>,
    texture: Option<Name>,
}

pub(super) fn add(module: &mut Module, wrapper: &Wrapper<'_>, names: &Names, entries: &Entries) {
    let calls = declare(module, wrapper, names.runtime);
    let mut body = Body::new(&[Type::Pointer]);
    let handle = Value::Local(0);
    let start = Value::Constant(entries.start.clone());
    let stop = Value::Constant(entries.stop.clone());
    let bit = Type::Int(1);

    let some = Operation::NotEqual(start.clone(), stop.clone());
    let condition = body.value("", bit.clone(), some);
    body.run(Operation::BranchIf { condition, then: WHILE_ENTRY, otherwise: WHILE_END });

    body.block("while.entry");
    let phi = Operation::Phi { ty: Type::Pointer, incoming: vec![(start, 0)] };
    let current = body.value("entry1", Type::Pointer, phi);
    let entry = load(module, wrapper.options.llvm_code, &mut body, &entries.ty, &current);
    let flags = decode(&mut body, &entry.flags);
    match &entry.kind {
        Some(kind) => {
            let number = if wrapper.kind == OffloadKind::HIP { 4 } else { 2 };
            let ours = Operation::Equal(kind.clone(), int(&Type::Int(16), number));
            let condition = body.value("", bit.clone(), ours);
            body.run(Operation::BranchIf { condition, then: IF_KIND, otherwise: IF_END });
        }
        None => body.run(Operation::Branch(IF_KIND)),
    }

    body.block("if.kind");
    let (size, size_type) = &entry.size;
    let kernel = Operation::Equal(size.clone(), int(size_type, 0));
    let condition = body.value("", bit.clone(), kernel);
    body.run(Operation::BranchIf { condition, then: IF_THEN, otherwise: IF_ELSE });

    body.block("if.then");
    let Entry { address, name, .. } = &entry;
    let mut arguments = vec![handle.clone(), address.clone(), name.clone(), name.clone()];
    arguments.push(int32(u32::MAX)); // thread limit: none
    arguments.extend([null(), null(), null(), null(), null()]);
    body.call_for(Type::Int(32), &calls.function, arguments);
    body.run(Operation::Branch(IF_END));

    body.block("if.else");
    let cases = vec![(0, GLOBAL), (1, MANAGED), (2, SURFACE), (3, TEXTURE)];
    body.run(Operation::Switch { value: flags.ty.clone(), default: IF_END, cases });
    add_variables(&mut body, &handle, &entry, &flags, &calls, wrapper);

    body.block("if.end");
    let next = Operation::Next { source: entries.ty.clone(), base: current };
    let next = body.value("", Type::Pointer, next);
    let last = body.value("", bit, Operation::Equal(next.clone(), stop));
    body.run(Operation::BranchIf { condition: last, then: WHILE_END, otherwise: WHILE_ENTRY });
    let phi = body.blocks.get_mut(WHILE_ENTRY).and_then(|block| block.instructions.first_mut());
    if let Some(phi) = phi
        && let Operation::Phi { incoming, .. } = &mut phi.operation
    {
        incoming.push((next, IF_END));
    }

    body.block("while.end");
    module.define(&names.register_entries, Role::RegisterEntries, body.ret());
}

/// Adds the blocks for the four types of variables.
fn add_variables(
    body: &mut Body,
    handle: &Value,
    entry: &Entry,
    flags: &Flags,
    calls: &Calls,
    wrapper: &Wrapper<'_>,
) {
    let Entry { address, name, size_argument: size, data, .. } = entry;
    let Flags { external, constant, normalized, .. } = flags;
    let all = |arguments: &[&Value]| arguments.iter().map(|value| (*value).clone()).collect();
    let zero = int32(0);

    body.block("sw.global");
    let arguments = all(&[handle, address, name, name, external, size, constant, &zero]);
    body.call(&calls.variable, arguments);
    body.run(Operation::Branch(IF_END));

    body.block("sw.managed");
    if let (Some(call), Some(pointer)) = (&calls.managed, &entry.auxiliary) {
        let arguments = if has_cuda_managed_call(wrapper) {
            all(&[handle, pointer, address, name, external, size, constant, &zero])
        } else {
            all(&[handle, pointer, address, name, size, data])
        };
        body.call(call, arguments);
    }
    body.run(Operation::Branch(IF_END));

    body.block("sw.surface");
    if let Some(call) = &calls.surface {
        body.call(call, all(&[handle, address, name, name, data, external]));
    }
    body.run(Operation::Branch(IF_END));

    body.block("sw.texture");
    if let Some(call) = &calls.texture {
        body.call(call, all(&[handle, address, name, name, data, normalized, external]));
    }
    body.run(Operation::Branch(IF_END));
}

fn has_cuda_managed_call(wrapper: &Wrapper<'_>) -> bool {
    wrapper.kind == OffloadKind::CUDA && !wrapper.options.llvm_code
}

/// Declares the functions of the runtime that are called.
fn declare(module: &mut Module, wrapper: &Wrapper<'_>, prefix: &str) -> Calls {
    let int = || Type::Int(32);
    let pointers = |count| vec![Type::Pointer; count];
    let size = module.size_type();
    let name = |what: &str| Name::Owned(format!("{prefix}{what}"));
    let hip = wrapper.kind == OffloadKind::HIP;
    let managed = wrapper.abi.has_common_entries();

    let function = [pointers(4), vec![int()], pointers(5)].concat();
    let variable = [pointers(4), vec![int(), size.clone(), int(), int()]].concat();
    let managed_variable = if has_cuda_managed_call(wrapper) {
        variable.clone()
    } else {
        [pointers(4), vec![size, int()]].concat()
    };
    let surface = [pointers(4), vec![int(), int()]].concat();
    let texture = [pointers(4), vec![int(), int(), int()]].concat();
    Calls {
        function: module.declare(name("RegisterFunction"), int(), &function),
        variable: module.declare(name("RegisterVar"), Type::Void, &variable),
        managed: managed
            .then(|| module.declare(name("RegisterManagedVar"), Type::Void, &managed_variable)),
        // CUDA has them no more since CUDA 12.
        surface: hip.then(|| module.declare(name("RegisterSurface"), Type::Void, &surface)),
        texture: hip.then(|| module.declare(name("RegisterTexture"), Type::Void, &texture)),
    }
}

/// Reads the entry at `current`, a structure of type `source`.
fn load(
    module: &Module,
    llvm_code: bool,
    body: &mut Body,
    source: &Type,
    current: &Value,
) -> Entry {
    let fields = module.fields(source);
    let mut field = |name: &'static str, index: usize| {
        let ty = fields.get(index).cloned().unwrap_or(Type::Void);
        let position = u32::try_from(index).unwrap_or(0);
        let address =
            Operation::Field { source: source.clone(), base: current.clone(), index: position };
        let pointer = body.value("", Type::Pointer, address);
        let align = match ty {
            // LLVM's modules have no data layout, which would give the true alignment.
            Type::Int(64) if llvm_code => 4,
            _ => module.align_of(&ty),
        };
        let load = Operation::Load { ty: ty.clone(), pointer, align };
        (body.value(name, ty.clone(), load), ty)
    };
    if fields.len() == 5 {
        let (address, _) = field("addr", 0);
        let (name, _) = field("name", 1);
        let size = field("size", 2);
        let (flags, _) = field("flags", 3);
        let (data, _) = field("data", 4);
        let size_argument = size.0.clone();
        return Entry {
            address,
            auxiliary: None,
            kind: None,
            name,
            size,
            size_argument,
            flags,
            data,
        };
    }
    let (address, _) = field("addr", 4);
    let (auxiliary, _) = field("aux_addr", 8);
    let (kind, _) = field("kind", 2);
    let (name, _) = field("name", 5);
    let size = field("size", 6);
    let (flags, _) = field("flags", 3);
    let (data, _) = field("data", 7);
    let to = Type::Int(32);
    let truncated = Operation::Truncate { value: data, to: to.clone() };
    let data = body.value("", to, truncated);
    let to = module.size_type();
    let size_argument = if size.1 == to {
        size.0.clone()
    } else {
        let truncated = Operation::Truncate { value: size.0.clone(), to: to.clone() };
        body.value("", to, truncated)
    };
    Entry {
        address,
        auxiliary: Some(auxiliary),
        kind: Some(kind),
        name,
        size,
        size_argument,
        flags,
        data,
    }
}

/// The flags of an entry.
struct Flags {
    ty: Value,
    external: Value,
    constant: Value,
    normalized: Value,
}

/// Adds the instructions that split the flags of an entry.
fn decode(body: &mut Body, flags: &Value) -> Flags {
    let word = || Type::Int(32);
    let ty = body.value("type", word(), Operation::And(flags.clone(), int32(7)));
    let mut flag = |name: &'static str, bit: u32| {
        let masked = body.value("", word(), Operation::And(flags.clone(), int32(1 << bit)));
        body.value(name, word(), Operation::ShiftRight(masked, int32(bit)))
    };
    Flags {
        ty,
        external: flag("extern", 3),
        constant: flag("constant", 4),
        normalized: flag("normalized", 5),
    }
}
