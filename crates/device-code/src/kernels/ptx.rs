//! Kernels of PTX ("PTX ISA", "Directives").

use alloc::vec::Vec;

use super::{Argument, Kernel, Kernels, MOST_KERNELS, Version, note, volume};
use crate::fault::Fault;

pub(super) fn read<'a>(text: &'a [u8], found: &mut Kernels<'a>) {
    let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    let text = text.get(..end).unwrap_or(text);
    let mut tokens = Tokens::new(text);
    let mut kernels = Vec::new();
    while let Some(token) = tokens.next() {
        match token {
            Token::Word(b".version") => {
                found.version = found.version.or(tokens.next().and_then(version));
            }
            Token::Word(b".entry") => match entry(&mut tokens) {
                Ok(kernel) => kernels.extend(kernel.filter(|_| kernels.len() < MOST_KERNELS)),
                Err(fault) => note(&mut found.faults, fault),
            },
            Token::Sign(b'{') => tokens.skip_block(),
            _ => {}
        }
    }
    found.kernels = Some(kernels);
}

fn version(token: Token<'_>) -> Option<Version> {
    let Token::Word(word) = token else { return None };
    let (major, minor) = core::str::from_utf8(word).ok()?.split_once('.')?;
    Some(Version::Ptx(major.parse().ok()?, minor.parse().ok()?))
}

/// Reads an entry after its directive; `None` for a declaration without a body.
fn entry<'a>(tokens: &mut Tokens<'a>) -> Result<Option<Kernel<'a>>, Fault> {
    let start = tokens.position() as u64;
    let fault = |expected| Fault { offset: start, expected, found: 0 };
    let Some(Token::Word(name)) = tokens.next() else { return Err(fault("the name of an entry")) };
    let mut kernel = Kernel { name, wave_size: Some(32), ..Kernel::default() };
    let mut arguments = Vec::new();
    loop {
        match tokens.next() {
            None => return Err(fault("the body of an entry")),
            Some(Token::Sign(b'{')) => break,
            Some(Token::Sign(b';')) => return Ok(None),
            Some(Token::Sign(b'(')) => {
                parameters(tokens, &mut arguments).ok_or_else(|| fault("parameters"))?;
            }
            Some(Token::Word(b".maxntid")) => {
                kernel.max_group_size = Some(volume(tokens.numbers()));
            }
            Some(Token::Word(b".reqntid")) => kernel.required_group_size = Some(tokens.numbers()),
            Some(Token::Word(b".maxnreg")) => kernel.max_registers = Some(tokens.numbers()[0]),
            Some(_) => {}
        }
    }
    tokens.skip_block();
    let size = arguments.last().map_or(0, |last: &Argument<'_>| last.offset + last.size);
    kernel.arguments_size = Some(size);
    kernel.arguments = Some(arguments);
    Ok(Some(kernel))
}

/// Reads parameters up to the parenthesis that ends them: `.param .align 8 .b8 name[24]`.
fn parameters<'a>(tokens: &mut Tokens<'a>, arguments: &mut Vec<Argument<'a>>) -> Option<()> {
    let mut end = 0_u64;
    loop {
        let (mut width, mut align, mut count, mut name) = (None, None, 1, None);
        let is_last = loop {
            match tokens.next()? {
                Token::Sign(b',') => break false,
                Token::Sign(b')') => break true,
                Token::Sign(b'[') => count = tokens.number().unwrap_or(1).into(),
                Token::Word(b".align") => {
                    // After the type it describes the memory that a pointer leads to.
                    let number = tokens.number();
                    align = align.or(number.filter(|_| width.is_none()));
                }
                Token::Word(word) if word.starts_with(b".") => width = width.or(width_of(word)),
                Token::Word(word) => name = name.or(Some(word)),
                _ => {}
            }
        };
        if let (Some(name), Some(width)) = (name, width) {
            let align = u64::from(align.unwrap_or(width)).max(1);
            let offset = end.checked_next_multiple_of(align)?;
            let size = u64::from(width) * count;
            end = offset.checked_add(size)?;
            arguments.push(Argument { name: Some(name), kind: None, offset, size });
        }
        if is_last {
            return Some(());
        }
    }
}

/// Returns the size of a type in bytes.
fn width_of(word: &[u8]) -> Option<u32> {
    Some(match word {
        b".b8" | b".u8" | b".s8" => 1,
        b".b16" | b".u16" | b".s16" | b".f16" => 2,
        b".b32" | b".u32" | b".s32" | b".f32" | b".f16x2" => 4,
        b".b64" | b".u64" | b".s64" | b".f64" | b".texref" | b".samplerref" | b".surfref" => 8,
        b".b128" => 16,
        _ => return None,
    })
}

/// A token. Comments and the contents of strings are none.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    /// A directive, a name or a number.
    Word(&'a [u8]),
    Text,
    Sign(u8),
}

#[derive(Clone, Copy)]
struct Tokens<'a> {
    /// Length of the text, and what is left of it.
    len: usize,
    rest: &'a [u8],
}

impl<'a> Tokens<'a> {
    fn new(text: &'a [u8]) -> Self {
        Tokens { len: text.len(), rest: text }
    }

    /// Returns the number of bytes that were read.
    fn position(&self) -> usize {
        self.len - self.rest.len()
    }

    /// Passes over bytes up to the first one where this holds, and returns them; to the end if it never does.
    fn pass(&mut self, holds: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.rest.iter().position(|&byte| holds(byte)).unwrap_or(self.rest.len());
        let (passed, rest) = self.rest.split_at(end);
        self.rest = rest;
        passed
    }

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            match self.rest {
                [] => return None,
                [byte, rest @ ..] if byte.is_ascii_whitespace() => self.rest = rest,
                [b'/', b'/', ..] => {
                    self.pass(|byte| byte == b'\n');
                }
                [b'/', b'*', rest @ ..] => {
                    let end = rest.windows(2).position(|pair| pair == b"*/");
                    self.rest = rest.split_at(end.map_or(rest.len(), |end| end + 2)).1;
                }
                [b'"', rest @ ..] => {
                    self.rest = rest;
                    self.pass(|byte| byte == b'"');
                    self.rest = self.rest.strip_prefix(b"\"").unwrap_or(self.rest);
                    return Some(Token::Text);
                }
                [byte, ..] if is_of_word(*byte) => {
                    return Some(Token::Word(self.pass(|byte| !is_of_word(byte))));
                }
                [byte, rest @ ..] => {
                    self.rest = rest;
                    return Some(Token::Sign(*byte));
                }
            }
        }
    }

    /// Passes over the rest of a block, with blocks in it.
    fn skip_block(&mut self) {
        let mut depth = 1_u64;
        while depth > 0 {
            // Words between these have no influence, and are most of the text.
            self.pass(|byte| matches!(byte, b'{' | b'}' | b'"' | b'/'));
            match self.next() {
                None => return,
                Some(Token::Sign(b'{')) => depth += 1,
                Some(Token::Sign(b'}')) => depth -= 1,
                Some(_) => {}
            }
        }
    }

    /// Reads a number if there is one.
    fn number(&mut self) -> Option<u32> {
        let mut ahead = *self;
        let Some(Token::Word(word)) = ahead.next() else { return None };
        let number = core::str::from_utf8(word).ok()?.trim_end_matches('U').parse().ok()?;
        *self = ahead;
        Some(number)
    }

    /// Reads one to three numbers with commas between them; missing ones are 1.
    fn numbers(&mut self) -> [u32; 3] {
        let mut numbers = [1; 3];
        for (n, slot) in numbers.iter_mut().enumerate() {
            let mut ahead = *self;
            if n > 0 && ahead.next() != Some(Token::Sign(b',')) {
                break;
            }
            let Some(number) = ahead.number() else { break };
            *slot = number;
            *self = ahead;
        }
        numbers
    }
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'$' | b'%')
}
