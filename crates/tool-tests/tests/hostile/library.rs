//! Results of the libraries for a hostile file.
#![allow(dead_code, unreachable_pub, reason = "each test includes this and uses a part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic fails the test")]

use std::io::{self, Cursor, Read};

use byte_parts::ReadSeek;
use fat_object::{Finding, Image, Location, Options, Severity, Visitor, walk};

use crate::hostile::{Form, Held, Hostile, Truth};

pub struct Found {
    pub held: Held,
    /// True if these are the bytes of the file at the stated place.
    pub in_place: bool,
}

struct Collect<'a> {
    data: &'a [u8],
    beside: &'a [(String, Vec<u8>)],
    images: Vec<Found>,
    errors: Vec<String>,
    messages: Vec<String>,
}

impl Visitor for Collect<'_> {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let mut bytes = Vec::new();
        image.reader().read_to_end(&mut bytes)?;
        let id = image.id().map_or_else(|| image.target().id().to_owned(), str::to_owned);
        let inner = image
            .path()
            .iter()
            .any(|segment| segment.kind() == fat_object::ContainerKind::Image)
            || image.path().iter().filter(|s| s.kind() == fat_object::ContainerKind::Ccob).count()
                > 1;
        let in_place = match image.location() {
            Location::File(at) => {
                let at = usize::try_from(at).unwrap();
                self.data.get(at..at + bytes.len()) == Some(&bytes) || bytes.is_empty()
            }
            _ => true,
        };
        self.images.push(Found { held: Held { id, bytes, inner }, in_place });
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.messages.push(finding.to_string());
        if finding.severity() == Severity::Error {
            self.errors.push(finding.to_string());
        }
        Ok(())
    }

    fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        let beside = self.beside.iter().find(|(other, _)| other.as_bytes() == name);
        match beside {
            Some((_, bytes)) => Ok(Box::new(Cursor::new(bytes.clone()))),
            // The archive itself, whatever way it is named.
            None if name.ends_with(b"input") => Ok(Box::new(Cursor::new(self.data.to_vec()))),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// The images of a file, and what is wrong with it.
pub fn walked(data: &[u8], beside: &[(String, Vec<u8>)]) -> (Vec<Found>, Vec<String>) {
    let mut collect = Collect { data, beside, images: vec![], errors: vec![], messages: vec![] };
    walk(&mut Cursor::new(data), &Options::default(), &mut collect).unwrap();
    for message in &collect.messages {
        assert!(!message.is_empty() && !message.contains(char::is_control), "{message:?}");
    }
    (collect.images, collect.errors)
}

/// Checks that the libraries read a file as they must.
pub fn check(file: &Hostile) -> Result<(), String> {
    if file.form == Form::Targets {
        return Ok(());
    }
    let (images, errors) = walked(&file.bytes, &file.beside);
    if let Some(wrong) = images.iter().find(|image| !image.in_place) {
        return Err(format!("image {} is not where it is said to be", wrong.held.id));
    }
    let images: Vec<Held> = images.into_iter().map(|found| found.held).collect();
    judge(&file.truth, &images, &errors)
}

/// Checks that a file with this truth may have these images and errors.
pub fn judge(truth: &Truth, images: &[Held], errors: &[String]) -> Result<(), String> {
    match (truth, errors) {
        (Truth::Refused, []) => Err(format!(
            "not refused: {:?}",
            images.iter().map(|image| &image.id).collect::<Vec<_>>()
        )),
        (Truth::Holds(_), [error, ..]) => Err(format!("refused: {error}")),
        (Truth::Holds(held), []) if held.as_slice() != images => {
            let ids = |images: &[Held]| -> Vec<String> {
                let shown = |i: &Held| format!("{:.60} ({}, {})", i.id, i.bytes.len(), i.inner);
                images.iter().take(8).map(shown).collect()
            };
            Err(format!("holds {:?}, and not {:?}", ids(images), ids(held)))
        }
        (Truth::Part(held), []) => match images.iter().find(|image| !held.contains(image)) {
            Some(other) => Err(format!("invents {}", other.id)),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}
