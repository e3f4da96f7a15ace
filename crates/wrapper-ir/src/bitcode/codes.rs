//! The numbers of blocks and records, from "LLVM Bitcode File Format" and, where that is silent,
//! as LLVM 15 to 22 read them.

pub(super) const IDENTIFICATION_BLOCK: u64 = 13;
pub(super) const IDENTIFICATION_STRING: u64 = 1;
pub(super) const IDENTIFICATION_EPOCH: u64 = 2;

pub(super) const MODULE_BLOCK: u64 = 8;
pub(super) const MODULE_VERSION: u64 = 1;
pub(super) const MODULE_TRIPLE: u64 = 2;
pub(super) const MODULE_DATALAYOUT: u64 = 3;
pub(super) const MODULE_SECTIONNAME: u64 = 5;
pub(super) const MODULE_GLOBALVAR: u64 = 7;
pub(super) const MODULE_FUNCTION: u64 = 8;
pub(super) const MODULE_SOURCE_FILENAME: u64 = 16;

pub(super) const STRTAB_BLOCK: u64 = 23;
pub(super) const STRTAB_BLOB: u64 = 1;

pub(super) const TYPE_BLOCK: u64 = 17;
pub(super) const TYPE_NUMENTRY: u64 = 1;
pub(super) const TYPE_VOID: u64 = 2;
pub(super) const TYPE_INTEGER: u64 = 7;
pub(super) const TYPE_ARRAY: u64 = 11;
pub(super) const TYPE_STRUCT_ANON: u64 = 18;
pub(super) const TYPE_STRUCT_NAME: u64 = 19;
pub(super) const TYPE_STRUCT_NAMED: u64 = 20;
pub(super) const TYPE_FUNCTION: u64 = 21;
pub(super) const TYPE_OPAQUE_POINTER: u64 = 25;

pub(super) const CONSTANTS_BLOCK: u64 = 11;
pub(super) const CONSTANT_SETTYPE: u64 = 1;
pub(super) const CONSTANT_NULL: u64 = 2;
pub(super) const CONSTANT_INTEGER: u64 = 4;
pub(super) const CONSTANT_AGGREGATE: u64 = 7;
pub(super) const CONSTANT_STRING: u64 = 8;
/// The first of three codes for `getelementptr`, with no flags, and the one that every release
/// knows: LLVM 18 and older take the third, that LLVM writes today, for `undef`.
pub(super) const CONSTANT_GEP: u64 = 12;
/// The second, with the same operands, for an inbounds one. Every release knows it too.
pub(super) const CONSTANT_INBOUNDS_GEP: u64 = 20;

pub(super) const FUNCTION_BLOCK: u64 = 12;
pub(super) const FUNCTION_DECLAREBLOCKS: u64 = 1;
pub(super) const INST_BINOP: u64 = 2;
pub(super) const INST_CAST: u64 = 3;
pub(super) const INST_RET: u64 = 10;
pub(super) const INST_BR: u64 = 11;
pub(super) const INST_SWITCH: u64 = 12;
pub(super) const INST_PHI: u64 = 16;
pub(super) const INST_LOAD: u64 = 20;
pub(super) const INST_CMP2: u64 = 28;
pub(super) const INST_CALL: u64 = 34;
pub(super) const INST_GEP: u64 = 43;
pub(super) const INST_STORE: u64 = 44;

pub(super) const BINOP_LSHR: u64 = 8;
pub(super) const BINOP_AND: u64 = 10;
pub(super) const CAST_TRUNC: u64 = 0;
pub(super) const CMP_EQ: u64 = 32;
pub(super) const CMP_NE: u64 = 33;
pub(super) const GEP_INBOUNDS: u64 = 1;
/// The record of a call has the type of the function.
pub(super) const CALL_EXPLICIT_TYPE: u64 = 1 << 15;

pub(super) const SYMTAB_BLOCK: u64 = 14;
pub(super) const SYMTAB_VALUE: u64 = 1;
pub(super) const SYMTAB_BLOCK_NAME: u64 = 2;
