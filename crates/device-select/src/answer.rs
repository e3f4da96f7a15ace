//! Answers: what a device gets of each container of a file.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::device::{Device, States};
use crate::needs::Need;
use crate::reason::Why;
use crate::support::Support;

/// The condition on which a device gets an image: `xnack is off`.
#[derive(Debug, PartialEq)]
pub struct Condition {
    states: Option<States>,
    text: String,
}

impl Condition {
    /// Returns the condition of machine code for GPUs that nothing names: it must be for the device.
    pub(crate) fn machine_code() -> Self {
        Condition { states: None, text: "its machine code is for this very GPU".into() }
    }

    /// Returns the condition as a clause: `xnack is off`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the states of the device in which it gets the image: bit `n` is for [`Device::states`]`()[n]`. `None` if
    /// they do not decide: the image is machine code for GPUs that the container does not name.
    #[must_use]
    pub fn states(&self) -> Option<u8> {
        self.states
    }
}

/// Answer to whether the device gets something.
///
/// Exhaustive: a new answer must stop the build of a caller that acts on it.
#[derive(Debug, PartialEq)]
pub enum Given {
    /// In each of its states.
    Yes,
    /// On a condition.
    If(Condition),
    /// In no state.
    No,
}

impl Given {
    pub(crate) fn in_states(device: &Device, states: States) -> Self {
        match states {
            0 => Given::No,
            states if states == device.all_states() => Given::Yes,
            states => Given::If(Condition { states: Some(states), text: device.condition(states) }),
        }
    }

    /// Returns the word: `yes`, `if`, `no`.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Given::Yes => "yes",
            Given::If(_) => "if",
            Given::No => "no",
        }
    }

    /// Returns the condition, if there is one.
    #[must_use]
    pub fn condition(&self) -> Option<&Condition> {
        match self {
            Given::If(condition) => Some(condition),
            Given::Yes | Given::No => None,
        }
    }
}

/// One image and a device.
#[derive(Debug)]
#[non_exhaustive]
pub struct Judged {
    /// Answer to whether the device loads it.
    pub given: Given,
    pub(crate) why: Why,
}

impl Judged {
    /// Returns the reason, as text with the image as its subject: `is host code`.
    pub fn reason(&self) -> impl fmt::Display {
        &self.why
    }
}

/// A [unit](crate::Unit) and a device.
#[derive(Debug)]
#[non_exhaustive]
pub struct Answer {
    /// Answer to whether the device loads anything of it.
    pub given: Given,
    /// One for each [candidate](crate::Unit::candidates), in the same order.
    pub images: Vec<Judged>,
    /// A remark.
    pub note: Option<Note>,
    /// True if the device needs code of the unit.
    pub(crate) counts: bool,
    /// True if the program chooses whether it is loaded, and it is for newer devices, or for features of others.
    pub(crate) is_optional: bool,
    pub(crate) need: Option<Need>,
}

impl Answer {
    pub(crate) fn new(given: Given, images: Vec<Judged>, note: Option<Note>) -> Self {
        Answer { given, images, note, counts: true, is_optional: false, need: None }
    }

    /// Returns whether the device needs code of this unit. It needs none of units for GPUs of other vendors, nor of
    /// units without kernels, units that are linked elsewhere, and units for the features of other GPUs: see
    /// [`note`](Self::note).
    #[must_use]
    pub fn counts(&self) -> bool {
        self.counts
    }

    /// Returns the software that is too old, if the device would load code of this unit with a later version.
    #[must_use]
    pub fn need(&self) -> Option<Need> {
        self.need
    }

    /// Returns whether the device lacks code that it needs.
    #[must_use]
    pub fn lacks_code(&self) -> bool {
        self.counts() && self.given == Given::No
    }

    /// Returns the positions of the candidates that the device loads, in some state at least.
    pub fn loaded(&self) -> impl Iterator<Item = usize> {
        let images = self.images.iter().enumerate();
        images.filter(|(_, image)| image.given != Given::No).map(|(n, _)| n)
    }

    pub(crate) fn leave_out(&mut self, note: Note) {
        (self.counts, self.note) = (false, Some(note));
    }
}

/// A remark about a unit.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Note {
    /// It holds no kernels.
    NoKernels,
    /// It is relocatable CUDA code that was linked.
    Linked,
    /// The CUDA driver links it from relocatable code.
    LinkedWhenLoaded,
    /// Its code uses features of other devices.
    OtherGpus,
    /// Its code for the device is LLVM bitcode, which must be linked before anything can load it.
    Unlinked,
    /// It holds LTO-IR only, which the program links and compiles itself (nvJitLink).
    LtoIr,
    /// The device could load images with some of its kernels only.
    SomeKernels,
    /// Nothing that the program registers leads to it.
    Lost,
}

impl Note {
    /// Returns the text: `no kernels`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Note::NoKernels => "no kernels",
            Note::Linked => "relocatable, linked into section:.nv_fatbin",
            Note::LinkedWhenLoaded => "linked from section:__nv_relfatbin when it is loaded",
            Note::OtherGpus => "for the features of other GPUs",
            Note::Unlinked => "not linked: needs the offload link step",
            Note::LtoIr => "LTO-IR, which the program links itself",
            Note::SomeKernels => "not all kernels have an image for it",
            Note::Lost => "no wrapper leads to it",
        }
    }
}

/// All units of a file and a device.
#[derive(Debug)]
#[must_use]
pub struct Selection {
    answers: Vec<Answer>,
    support: Support,
    is_partial: bool,
}

impl Selection {
    pub(crate) fn new(answers: Vec<Answer>, support: Support) -> Self {
        Selection { answers, support, is_partial: false }
    }

    /// Sets whether a part of the file that may hold device code was not read: then no answer is [`No`](Support::No). Default: all
    /// was read.
    pub fn with_unread(self, is_partial: bool) -> Self {
        Selection { is_partial, ..self }
    }

    /// Returns whether the file runs on the device, judged by its units.
    #[must_use]
    pub fn support(&self) -> Support {
        if self.is_partial { self.support.of_whole() } else { self.support }
    }

    /// Returns the answer by the units that were read.
    pub(crate) fn of_read(&self) -> Support {
        self.support
    }

    pub(crate) fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Returns one for each unit, in the same order.
    #[must_use]
    pub fn answers(&self) -> &[Answer] {
        &self.answers
    }

    /// Returns whether every unit that counts has code for the device, perhaps on a condition, and at least one counts.
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.support == Support::Yes
    }
}
