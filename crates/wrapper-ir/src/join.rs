//! Several modules as one: registration code of several programming models in one object.

use std::borrow::Cow;

use crate::description::{
    Constant, Function, Global, Linkage, Module, Name, Operation, Type, Value,
};
use crate::error::{Error, ErrorKind};

impl Module {
    /// Returns one module that does what both do, this one first. Its inputs are the inputs of this module, then of the
    /// other.
    ///
    /// ```
    /// use wrapper_ir::{Abi, Image, OffloadKind, Target, Wrapper};
    ///
    /// # fn main() -> Result<(), wrapper_ir::Error> {
    /// let host = Target::new("x86_64-unknown-linux-gnu")?;
    /// let module = |kind, image| {
    ///     Wrapper::new(kind, Abi::Current, host.clone()).with_image(Image::from_bytes(image)).module()
    /// };
    /// let (image, bundle) = (b"an image".as_slice(), b"a bundle".as_slice());
    /// let both = module(OffloadKind::OPENMP, image)?.join(module(OffloadKind::HIP, bundle)?)?;
    /// let text = both.ir_to_string(&[image, bundle])?;
    /// assert!(text.contains("__tgt_register_lib") && text.contains("__hipRegisterFatBinary"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for modules of different hosts or generations.
    pub fn join(mut self, mut other: Module) -> Result<Module, Error> {
        self.agrees_with(&other)?;
        let first_blob = self.blobs.len();
        let renamed = self.taken_names(&other);
        other.visit_names(&mut |name| {
            if let Some((_, new)) = renamed.iter().find(|(old, _)| old == name) {
                *name = new.clone();
            }
        });
        for global in &mut other.globals {
            if let Some(init) = &mut global.init {
                move_blobs(init, first_blob);
            }
        }
        for blob in &mut other.blobs {
            blob.input += self.inputs.len();
        }
        self.blobs.append(&mut other.blobs);
        self.inputs.append(&mut other.inputs);
        for structure in other.structs {
            if !self.structs.contains(&structure) {
                self.structs.push(structure);
            }
        }
        for global in other.globals {
            self.add_global(global);
        }
        for function in other.functions {
            self.add_function(function);
        }
        self.constructors.append(&mut other.constructors);
        self.destructors.append(&mut other.destructors);
        for name in other.kept {
            if !self.kept.contains(&name) {
                self.kept.push(name);
            }
        }
        Ok(self)
    }

    fn agrees_with(&self, other: &Module) -> Result<(), Error> {
        let facts = |module: &Module| {
            let retain = if module.retain { "retained" } else { "not retained" };
            let (triple, layout) = (module.target.triple(), module.target.data_layout());
            [
                ("triples", triple.to_owned()),
                ("data layouts", layout.to_owned()),
                ("generations", module.abi.to_string()),
                ("entries", retain.to_owned()),
            ]
        };
        for ((what, first), (_, second)) in facts(self).into_iter().zip(facts(other)) {
            if first != second {
                let text = format!(
                    "modules to join have different {what}: expected {first}, found {second}"
                );
                return Err(Error::new(ErrorKind::Unsupported, text));
            }
        }
        Ok(())
    }

    /// Returns new names for what both modules define, each for itself.
    fn taken_names(&self, other: &Module) -> Vec<(Name, Name)> {
        let globals = other.globals.iter().filter(|global| {
            let mine = self.globals.iter().find(|mine| mine.name == global.name);
            global.linkage == Linkage::Internal && mine.is_some_and(|mine| mine != *global)
        });
        let functions = other.functions.iter().filter(|function| {
            !function.is_declaration() && self.function(&function.name).is_some()
        });
        let names =
            globals.map(|global| &global.name).chain(functions.map(|function| &function.name));
        let is_free = |name: &str| {
            ![self, other].iter().any(|module| {
                module.function(name).is_some()
                    || module.globals.iter().any(|global| global.name == name)
            })
        };
        let new = |name: &Name| {
            let mut number = 1_u32;
            let mut free = format!("{name}.{number}");
            while !is_free(&free) {
                number += 1;
                free = format!("{name}.{number}");
            }
            (name.clone(), Cow::Owned(free))
        };
        names.map(new).collect()
    }

    /// Shows each name of a variable or function, where it is defined and where it is used.
    fn visit_names(&mut self, visit: &mut impl FnMut(&mut Name)) {
        for global in &mut self.globals {
            visit(&mut global.name);
            if let Some(init) = &mut global.init {
                names_of_constant(init, visit);
            }
        }
        for function in &mut self.functions {
            visit(&mut function.name);
            let blocks = function.blocks.iter_mut();
            for instruction in blocks.flat_map(|block| &mut block.instructions) {
                names_of_operation(&mut instruction.operation, visit);
            }
        }
        let startups = self.constructors.iter_mut().chain(&mut self.destructors);
        startups.for_each(|startup| visit(&mut startup.function));
        self.kept.iter_mut().for_each(visit);
    }

    fn add_global(&mut self, global: Global) {
        let mine = self.globals.iter_mut().find(|mine| mine.name == global.name);
        let Some(mine) = mine else {
            self.globals.push(global);
            return;
        };
        // Lists of functions to run and of variables to keep grow; others are alike.
        if let (
            Linkage::Appending,
            Some(Constant::Array(mine_elements)),
            Some(Constant::Array(new)),
        ) = (mine.linkage, &mut mine.init, global.init)
        {
            for element in new {
                if !mine_elements.contains(&element) {
                    mine_elements.push(element);
                }
            }
            if let Type::Array(count, _) = &mut mine.ty {
                *count = crate::to_u64(mine_elements.len());
            }
        }
    }

    fn add_function(&mut self, function: Function) {
        if self.function(&function.name).is_none() {
            self.functions.push(function);
        }
    }
}

fn move_blobs(constant: &mut Constant, by: usize) {
    match constant {
        Constant::Image { blob, .. } => *blob += by,
        Constant::Array(elements) | Constant::Aggregate(_, elements) => {
            elements.iter_mut().for_each(|element| move_blobs(element, by));
        }
        _ => {}
    }
}

fn names_of_constant(constant: &mut Constant, visit: &mut impl FnMut(&mut Name)) {
    match constant {
        Constant::Symbol(name) | Constant::Inside { global: name, .. } => visit(name),
        Constant::Array(elements) | Constant::Aggregate(_, elements) => {
            for element in elements {
                names_of_constant(element, visit);
            }
        }
        _ => {}
    }
}

fn names_of_operation(operation: &mut Operation, visit: &mut impl FnMut(&mut Name)) {
    let value = |value: &mut Value, visit: &mut _| {
        if let Value::Constant(constant) = value {
            names_of_constant(constant, visit);
        }
    };
    match operation {
        Operation::Call { function, arguments } => {
            visit(function);
            arguments.iter_mut().for_each(|argument| value(argument, visit));
        }
        Operation::Load { pointer, .. } => value(pointer, visit),
        Operation::Store { value: stored, pointer, .. } => {
            value(stored, visit);
            value(pointer, visit);
        }
        Operation::Field { base, .. } | Operation::Next { base, .. } => value(base, visit),
        Operation::Equal(a, b)
        | Operation::NotEqual(a, b)
        | Operation::And(a, b)
        | Operation::ShiftRight(a, b) => {
            value(a, visit);
            value(b, visit);
        }
        Operation::Truncate { value: one, .. } | Operation::Switch { value: one, .. } => {
            value(one, visit);
        }
        Operation::Phi { incoming, .. } => {
            incoming.iter_mut().for_each(|(one, _)| value(one, visit));
        }
        Operation::BranchIf { condition, .. } => value(condition, visit),
        Operation::Branch(_) | Operation::Return => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::{Abi, Image, Module, OffloadKind, Target, Wrapper};

    fn module(kind: OffloadKind, triple: &str, image: &'static [u8]) -> Module {
        let target = Target::new(triple).unwrap();
        Wrapper::new(kind, Abi::Current, target)
            .with_image(Image::from_bytes(image))
            .module()
            .unwrap()
    }

    const LINUX: &str = "x86_64-unknown-linux-gnu";

    #[test]
    fn names_of_one_module_do_not_meet_those_of_the_other() {
        let cuda = module(OffloadKind::CUDA, LINUX, b"cuda");
        let hip = module(OffloadKind::HIP, LINUX, b"hip!");
        let both = cuda.join(hip).unwrap();
        let openmp = module(OffloadKind::OPENMP, LINUX, b"openmp");
        let all = both.join(openmp).unwrap();
        let images: [&[u8]; 3] = [b"cuda", b"hip!", b"openmp"];
        let text = all.ir_to_string(&images).unwrap();
        assert!(text.contains("@.fatbin_image = internal constant [4 x i8] c\"cuda\""), "{text}");
        assert!(text.contains("@.fatbin_image.1 = internal constant [4 x i8] c\"hip!\""), "{text}");
        assert!(text.contains("i32 1212764230, i32 1, ptr @.fatbin_image.1,"), "{text}");
        assert!(text.contains("@__hipRegisterFatBinary(ptr @.fatbin_wrapper.1)"), "{text}");
        assert!(text.contains("@llvm.global_ctors = appending global [3 x"), "{text}");
        assert!(text.contains("@llvm.compiler.used = appending global [1 x"), "{text}");
        assert_eq!(text.matches("@__start_llvm_offload_entries = ").count(), 1, "{text}");
        assert_eq!(text.matches("declare i32 @atexit").count(), 1, "{text}");
        assert!(all.object().unwrap().to_vec(&images).unwrap().starts_with(b"\x7fELF"));
        assert!(all.bitcode().is_ok());
    }

    #[test]
    fn modules_for_different_hosts_are_not_joined() {
        let linux = module(OffloadKind::CUDA, LINUX, b"cuda");
        let windows = module(OffloadKind::HIP, "x86_64-pc-windows-msvc", b"hip!");
        let error = linux.join(windows).unwrap_err();
        assert!(error.to_string().starts_with("modules to join have different triples: "));
    }
}
