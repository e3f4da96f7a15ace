//! The constants of a module, by number, and the numbers of its symbols.

use std::collections::BTreeMap;

use crate::bitcode::MAX_BLOB;
use llvm_bitcode::{Writer, signed};

use crate::bitcode::codes;
use crate::bitcode::types::Types;
use crate::description::{Blob, Constant, Module, Type, sign_extend};
use crate::error::{Error, ErrorKind};
use crate::to_u64;

/// Gives the values that a module has outside of functions their numbers: variables, functions, then constants.
/// Constants that functions use are included: LLVM's own files have such constants with each function, which is the
/// same to readers.
#[derive(Debug)]
pub(crate) struct Constants<'m> {
    symbols: BTreeMap<&'m str, u64>,
    blobs: &'m [Blob],
    /// The types of the images, the first constants.
    image_types: Vec<u64>,
    numbers: BTreeMap<Record, u64>,
    /// The constants after the images, in the order of their numbers: operands first.
    records: Vec<Record>,
}

/// A constant other than an image: type, code, operands.
type Record = (u64, u64, Vec<u64>);

impl<'m> Constants<'m> {
    /// Creates the symbols and images of a module; other constants are added at their first use.
    pub(crate) fn new(module: &'m Module, types: &mut Types<'m>) -> Result<Self, Error> {
        let variables = module.globals.iter().map(|global| global.name.as_ref());
        let functions = module.functions.iter().map(|function| function.name.as_ref());
        let symbols = variables.chain(functions).zip(0..).collect();
        let mut image_types = Vec::new();
        for blob in &module.blobs {
            if blob.size > MAX_BLOB {
                return Err(Error::image_too_large(blob.input, blob.size, MAX_BLOB));
            }
            image_types.push(types.number(&Type::bytes(blob.size))?);
        }
        let (numbers, records) = (BTreeMap::new(), Vec::new());
        Ok(Self { symbols, blobs: &module.blobs, image_types, numbers, records })
    }

    /// Returns the number of a variable or function.
    pub(crate) fn symbol(&self, name: &str) -> Result<u64, Error> {
        let number = self.symbols.get(name).copied();
        number.ok_or_else(|| Error::unknown_name(name))
    }

    /// Returns the number of a constant.
    pub(crate) fn number(
        &mut self,
        constant: &Constant,
        types: &mut Types<'m>,
    ) -> Result<u64, Error> {
        let (code, operands) = match constant {
            Constant::Symbol(name) => return self.symbol(name),
            Constant::Image { blob, .. } if *blob < self.image_types.len() => {
                return Ok(self.first() + to_u64(*blob));
            }
            Constant::Image { blob, .. } => {
                let text = format!("module refers to blob {blob}, which it does not have");
                return Err(Error::new(ErrorKind::Invalid, text));
            }
            Constant::Int { value: 0, .. } | Constant::Null | Constant::Zero(_) => {
                (codes::CONSTANT_NULL, Vec::new())
            }
            Constant::Int { bits, value } => {
                (codes::CONSTANT_INTEGER, vec![signed(sign_extend(*bits, *value))])
            }
            // A string without a character is an error to readers.
            Constant::Bytes(bytes) if bytes.is_empty() => (codes::CONSTANT_NULL, Vec::new()),
            Constant::Bytes(bytes) => {
                (codes::CONSTANT_STRING, bytes.iter().map(|byte| u64::from(*byte)).collect())
            }
            Constant::Inside { global, source, indices, inbounds, .. } => {
                let mut operands = vec![types.number(source)?];
                operands.push(types.number(&Type::Pointer)?);
                operands.push(self.symbol(global)?);
                for index in indices {
                    operands.push(types.number(&Type::Int(64))?);
                    operands.push(self.number(&Constant::Int { bits: 64, value: *index }, types)?);
                }
                if *inbounds {
                    (codes::CONSTANT_INBOUNDS_GEP, operands)
                } else {
                    (codes::CONSTANT_GEP, operands)
                }
            }
            Constant::Array(elements) if elements.is_empty() => (codes::CONSTANT_NULL, Vec::new()),
            Constant::Array(parts) | Constant::Aggregate(_, parts) => {
                let numbers = parts.iter().map(|part| self.number(part, types));
                (codes::CONSTANT_AGGREGATE, numbers.collect::<Result<_, _>>()?)
            }
        };
        let record = (types.number(&constant.ty())?, code, operands);
        let next = self.end();
        Ok(*self.numbers.entry(record).or_insert_with_key(|record| {
            self.records.push(record.clone());
            next
        }))
    }

    /// Returns the number of the first value of a function.
    pub(crate) fn end(&self) -> u64 {
        self.first() + to_u64(self.image_types.len() + self.records.len())
    }

    /// Writes the constants, to which nothing can be added any more. Images become holes, in
    /// their order.
    pub(crate) fn write(&self, stream: &mut Writer) -> Result<(), Error> {
        stream.enter_block(codes::CONSTANTS_BLOCK, 4);
        let string = stream.define_blob(codes::CONSTANT_STRING);
        let mut current = None;
        let mut set_type = |stream: &mut Writer, ty: u64| {
            if current.replace(ty) != Some(ty) {
                stream.record(codes::CONSTANT_SETTYPE, &[ty]);
            }
        };
        for (blob, ty) in self.blobs.iter().zip(&self.image_types) {
            set_type(stream, *ty);
            // Each blob has its number, even one of no bytes.
            match blob.size {
                0 => stream.record(codes::CONSTANT_NULL, &[]),
                size => stream.hole(string, size)?,
            }
        }
        for (ty, code, operands) in &self.records {
            set_type(stream, *ty);
            stream.record(*code, operands);
        }
        Ok(stream.end_block()?)
    }

    /// Returns the number of the first constant.
    fn first(&self) -> u64 {
        to_u64(self.symbols.len())
    }
}
