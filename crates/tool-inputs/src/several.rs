//! Several visitors of one walk.

use std::fmt;
use std::io::{self, ErrorKind};

use byte_parts::ReadSeek;
use fat_object::{Container, Enter, Finding, Image, Visitor};

/// Visitors that walk together: each visits what it would visit alone.
pub struct Several<'v>(Vec<One<'v>>);

/// A visitor, and what it passes over.
struct One<'v> {
    visitor: &'v mut dyn Visitor,
    /// `true` if it passes over the container that was asked about last.
    skips: bool,
    /// The number of containers that the walk is in, from one that it passes over on.
    passed: usize,
}

impl fmt::Debug for Several<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Several").field("visitors", &self.0.len()).finish()
    }
}

impl<'v> Several<'v> {
    /// Creates one visitor of several.
    pub fn new(visitors: impl IntoIterator<Item = &'v mut dyn Visitor>) -> Self {
        let one = |visitor| One { visitor, skips: false, passed: 0 };
        Several(visitors.into_iter().map(one).collect())
    }

    /// Adds a visitor.
    pub fn push(&mut self, visitor: &'v mut dyn Visitor) {
        self.0.push(One { visitor, skips: false, passed: 0 });
    }

    /// Returns the visitors that do not pass over the container that the walk is in.
    fn here<'s>(&'s mut self) -> impl Iterator<Item = &'s mut (dyn Visitor + 'v)> {
        self.0.iter_mut().filter(|one| one.passed == 0).map(|one| &mut *one.visitor)
    }
}

impl Visitor for Several<'_> {
    fn opens(&mut self, container: &Container) -> Enter {
        let mut opens = Enter::Skip;
        for one in self.0.iter_mut().filter(|one| one.passed == 0) {
            let asked = one.visitor.opens(container);
            one.skips = asked == Enter::Skip;
            // One that waits for a hash has all others wait.
            if opens == Enter::Skip || asked == Enter::Open {
                opens = asked;
            }
        }
        opens
    }

    fn enter(&mut self, container: &Container) -> io::Result<()> {
        for one in &mut self.0 {
            // It enters what it passes over, and sees nothing in it.
            if one.passed == 0 {
                one.visitor.enter(container)?;
            }
            one.passed += usize::from(one.passed > 0 || one.skips);
            one.skips = false;
        }
        Ok(())
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        self.here().try_for_each(|one| one.image(image))
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.here().try_for_each(|one| one.finding(finding))
    }

    fn leave(&mut self) -> io::Result<()> {
        for one in &mut self.0 {
            if one.passed > 0 {
                one.passed -= 1;
            }
            if one.passed == 0 {
                one.visitor.leave()?;
            }
        }
        Ok(())
    }

    fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        let mut opened = Err(ErrorKind::Unsupported.into());
        for one in self.here() {
            match one.open_thin_member(name) {
                Err(error) if error.kind() == ErrorKind::Unsupported => {}
                found => {
                    opened = found;
                    break;
                }
            }
        }
        opened
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use std::fs::File;
    use std::path::{Path, PathBuf};

    use fat_object::{ContainerKind, Options, walk};

    use super::*;

    /// Notes what it visits.
    #[derive(Default)]
    struct Log {
        skipped: Option<ContainerKind>,
        directory: Option<PathBuf>,
        visited: Vec<String>,
    }

    impl Visitor for Log {
        fn opens(&mut self, container: &Container) -> Enter {
            self.visited.push(format!("asked {:?}", container.kind()));
            if self.skipped == Some(container.kind()) { Enter::Skip } else { Enter::Open }
        }

        fn enter(&mut self, container: &Container) -> io::Result<()> {
            self.visited.push(format!("entered {:?}", container.kind()));
            Ok(())
        }

        fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
            self.visited.push(image.info().target().id().to_owned());
            Ok(())
        }

        fn leave(&mut self) -> io::Result<()> {
            self.visited.push("left".to_owned());
            Ok(())
        }

        fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
            let directory = self.directory.as_ref().ok_or(ErrorKind::Unsupported)?;
            let name = std::str::from_utf8(name).unwrap();
            Ok(Box::new(File::open(directory.join(name))?))
        }
    }

    fn data() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data")
    }

    fn walked(file: &str, visitor: &mut dyn Visitor) {
        walk(File::open(data().join(file)).unwrap(), &Options::default(), visitor).unwrap();
    }

    #[test]
    fn each_visits_what_it_would_visit_alone() {
        let kinds = [None, Some(ContainerKind::Bundle), Some(ContainerKind::Ccob)];
        let kinds = kinds.into_iter().chain([Some(ContainerKind::Section)]);
        let new = |skipped| Log { skipped, directory: Some(data()), ..Log::default() };
        for file in ["hip.o", "hip-two-units-ccob.so", "libhip-thin.a"] {
            let alone: Vec<_> = kinds
                .clone()
                .map(|skipped| {
                    let mut log = new(skipped);
                    walked(file, &mut log);
                    log.visited
                })
                .collect();
            let mut together: Vec<_> = kinds.clone().map(new).collect();
            let visitors = together.iter_mut().map(|log| log as &mut dyn Visitor);
            walked(file, &mut Several::new(visitors));
            for (log, alone) in together.iter().zip(&alone) {
                assert_eq!(&log.visited, alone, "{file}: {:?}", log.skipped);
            }
            assert!(alone.iter().any(|visited| visited != alone.first().unwrap()), "{file}");
        }
    }

    #[test]
    fn what_all_pass_over_is_not_opened() {
        let new = || Log { skipped: Some(ContainerKind::Section), ..Log::default() };
        let (mut one, mut other) = (new(), new());
        walked("hip.o", &mut Several::new([&mut one as &mut dyn Visitor, &mut other]));
        assert_eq!(one.visited, ["asked Section", "entered Section", "left"]);
        assert_eq!(other.visited, one.visited);
    }

    #[test]
    fn one_of_them_opens_members_of_thin_archives() {
        let [mut first, mut second] =
            [None, Some(data())].map(|directory| Log { directory, ..Log::default() });
        walked("libhip-thin.a", &mut Several::new([&mut first as &mut dyn Visitor, &mut second]));
        assert!(first.visited.iter().any(|one| one == "gfx1100"), "{:?}", first.visited);
        assert_eq!(first.visited, second.visited);
    }
}
