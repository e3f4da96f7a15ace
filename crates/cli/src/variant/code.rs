//! The device code of a wheel, and the properties that it justifies.

use std::collections::BTreeSet;
use std::io;
use std::slice;

use device_select::{Candidate, Device, FileSet, Software, Support, VariantValue, Version};

use super::wheel::Wheel;
use tool_answers::matching::{File, Question, Read};
use tool_inputs::inputs::{Input, Inputs};
use tool_inputs::limits::Limits;
use tool_inputs::package::HEADS;
use tool_kit::looked::Seen;
use tool_kit::output::at;

/// The device code of a wheel.
pub(super) struct Code {
    name: String,
    /// `true` if it is installed on machines with Arm processors.
    on_arm: bool,
    files: Vec<(Input, File)>,
    /// `true` if some of it could not be read.
    pub(super) is_damaged: bool,
}

/// An answer for a device, with words.
pub(super) struct Judged {
    pub(super) device: Device,
    pub(super) support: Support,
    pub(super) words: String,
}

impl Code {
    /// Reads all device code of a wheel. With `needs`, compressed code is read as well, in which its needs stand.
    pub(super) fn read(wheel: &Wheel, needs: bool, limits: &Limits) -> io::Result<Self> {
        let question = question(Vec::new(), needs, limits);
        let inputs = Inputs::find(slice::from_ref(&wheel.path));
        let (mut files, mut is_damaged) = (Vec::new(), false);
        let read = |file: &Input, threads| match File::read(&question, file, threads) {
            (Some(file), complaints) => Read::File(Some(file), complaints),
            (None, complaints) => Read::File(None, complaints),
        };
        let looked = inputs.look((limits, HEADS), "reading", read, |input, read| {
            let Read::File(Some(file), _) = read else { return Ok(Seen::Faults) };
            is_damaged |= file.is_damaged();
            if file.units.is_empty() {
                return Ok(Seen::Nothing);
            }
            files.push((input.clone(), file));
            Ok(Seen::Well)
        })?;
        let name = wheel.shown();
        is_damaged |= looked.is_faulty();
        let [_, _, platform] = wheel.name.tags();
        let on_arm = platform.contains("aarch64") || platform.contains("arm64");
        Ok(Code { name, on_arm, files, is_damaged })
    }

    /// Reads all device code of a wheel, without its needs; fails if some cannot be read.
    pub(super) fn read_whole(wheel: &Wheel, limits: &Limits) -> io::Result<Self> {
        let code = Code::read(wheel, false, limits)?;
        if code.is_damaged {
            let text = "some of its device code could not be read: see `offload verify`";
            return Err(at(&wheel.path, &io::Error::other(text)));
        }
        Ok(code)
    }

    /// Returns whether there is device code.
    pub(super) fn is_there(&self) -> bool {
        !self.files.is_empty()
    }

    /// Returns the properties that images may justify, sorted.
    pub(super) fn values(&self) -> BTreeSet<VariantValue> {
        let units = self.files.iter().flat_map(|(_, file)| &file.units);
        let images = units.flat_map(|unit| unit.candidates());
        images.map(Candidate::target).flat_map(VariantValue::of_target).collect()
    }

    /// Returns the devices for which installers take the wheel by a property, the one first that it names.
    pub(super) fn devices(&self, value: &VariantValue) -> impl Iterator<Item = Device> {
        value.devices(self.on_arm).into_iter()
    }

    /// Returns the answers for all devices that a property is for, the one first that it names. With a driver, for machines
    /// where it is installed.
    pub(super) fn judge(
        &self,
        value: &VariantValue,
        driver: Option<Version>,
        limits: &Limits,
    ) -> Vec<Judged> {
        let with_driver = |device: Device| match driver {
            Some(version) => device.with_installed(Software::Driver, version),
            None => device,
        };
        let devices: Vec<Device> = self.devices(value).map(with_driver).collect();
        let question = question(devices.clone(), driver.is_some(), limits);
        let mut set = FileSet::new(devices.clone()).with_package(&self.name);
        for (input, file) in &self.files {
            file.judge_in(&mut set, &question, input);
        }
        let judged = devices.into_iter().enumerate().map(|(n, device)| {
            let support = set.support(n).unwrap_or(Support::No);
            let words = set.conclusion(n).map_or_else(
                || format!("lacks code for {}", device.name()),
                |conclusion| conclusion.text,
            );
            Judged { device, support, words }
        });
        judged.collect()
    }

    /// Returns the answer for the device that a property names.
    pub(super) fn answer(&self, value: &VariantValue, limits: &Limits) -> (Support, String) {
        let first = self.judge(value, None, limits).into_iter().next();
        first.map_or((Support::No, String::new()), |judged| (judged.support, judged.words))
    }
}

fn question(gpus: Vec<Device>, check: bool, limits: &Limits) -> Question<'_> {
    Question { gpus, kinds: &[], check, is_strict: false, limits }
}
