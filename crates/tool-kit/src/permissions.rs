//! Permissions of outputs: a new file gets no more than it should, and makes nobody somebody else.

use std::fs::{self, File, Metadata};
use std::io;

/// Permissions that a file gets that is not there yet.
#[derive(Clone, Copy, Debug)]
pub struct NewPermissions {
    /// Before the umask.
    mode: u32,
    /// The group that the mode is for. Another group gets what all others get.
    group: Option<u32>,
}

impl NewPermissions {
    /// The usual permissions of a new file: of one that no other file is part of.
    pub const PLAIN: NewPermissions = NewPermissions { mode: 0o666, group: None };

    /// Returns those of an input, without set-user-ID, set-group-ID and sticky bit.
    #[cfg(unix)]
    pub fn of_input(input: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        NewPermissions { mode: input.mode() & 0o777, group: Some(input.gid()) }
    }

    /// Returns the usual permissions, the only ones on these systems.
    #[cfg(not(unix))]
    pub fn of_input(_input: &Metadata) -> Self {
        NewPermissions::PLAIN
    }

    /// Returns these permissions with the execute bits of a mode.
    pub fn with_execute(self, mode: u32) -> Self {
        NewPermissions { mode: self.mode | mode & 0o111, ..self }
    }

    /// Returns the permissions for a part of an input with these ones: only users who may read the input may read it.
    /// Execute bits are dropped, and the owner can always write.
    pub fn of_part(self) -> Self {
        NewPermissions { mode: self.mode & 0o066 | 0o600, group: self.group }
    }

    /// Returns the permissions for what is made of parts of these inputs: only users who may read all of them may read it.
    pub fn of_all(inputs: impl IntoIterator<Item = NewPermissions>) -> Self {
        inputs.into_iter().fold(NewPermissions::PLAIN, |all, input| all.and(input.of_part()))
    }

    /// Returns the permissions that both this input and another one give.
    pub fn and(self, other: NewPermissions) -> Self {
        let mode = match (self.group, other.group) {
            // The group of the one is nobody special for the other.
            (Some(group), Some(of_other)) if group != of_other => {
                other.mode & (0o707 | (other.mode & 0o007) << 3)
            }
            _ => other.mode,
        };
        // Readers of both may also run a program.
        let mode = mode | (mode & 0o044) >> 2 | 0o700;
        NewPermissions { mode: self.mode & mode, group: self.group.or(other.group) }
    }

    /// Returns the permissions that both this input and a file give.
    pub fn and_of(self, other: &File) -> io::Result<Self> {
        Ok(self.and(NewPermissions::of_input(&other.metadata()?)))
    }

    /// Returns the mode to make the file with.
    pub fn mode(self) -> u32 {
        self.mode
    }

    /// Takes those permissions from a new, empty file that its group should not have.
    #[cfg(unix)]
    pub fn narrow(self, new: &File) -> io::Result<()> {
        use std::os::unix::fs::MetadataExt;
        let Some(group) = self.group else { return Ok(()) };
        let metadata = new.metadata()?;
        let others = (metadata.mode() & 0o007) << 3;
        let narrowed = metadata.mode() & (0o707 | others);
        if metadata.gid() == group { Ok(()) } else { set_mode(new, &metadata, narrowed & 0o777) }
    }

    /// Does nothing: a mode has no meaning here.
    #[cfg(not(unix))]
    pub fn narrow(self, _new: &File) -> io::Result<()> {
        Ok(())
    }
}

/// Permissions of a file that an output replaces.
#[cfg(unix)]
#[derive(Clone, Copy, Debug)]
pub struct Permissions {
    mode: u32,
    owner: u32,
    group: u32,
}

#[cfg(unix)]
impl Permissions {
    /// Creates the permissions of a file with this mode, owner and group.
    pub fn new(mode: u32, owner: u32, group: u32) -> Self {
        Permissions { mode: mode & 0o7777, owner, group }
    }

    /// Returns the permissions of a file.
    pub fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Permissions::new(metadata.mode(), metadata.uid(), metadata.gid())
    }

    /// Returns the numbers of the owner and the group.
    pub fn owner(self) -> (u32, u32) {
        (self.owner, self.group)
    }

    /// Returns the mode of the new file while it is written: only the owner's permissions of the old one.
    pub fn while_written(self) -> u32 {
        self.mode & 0o600
    }

    /// Returns the mode that the new file may have. Set-user-ID and the sticky bit need the old owner, set-group-ID the
    /// old owner and group: otherwise the program would run as a user who did not allow that.
    pub fn kept_by(self, new: &Metadata) -> u32 {
        use std::os::unix::fs::MetadataExt;
        let owner = if new.uid() == self.owner { 0o5000 } else { 0 };
        let group = if (new.uid(), new.gid()) == self.owner() { 0o2000 } else { 0 };
        self.mode & (0o777 | owner | group)
    }

    /// Returns whether the new file must lose set-user-ID or set-group-ID.
    pub fn loses_set_id(self, new: &Metadata) -> bool {
        (self.mode & !self.kept_by(new)) & 0o6000 != 0
    }

    /// Gives the new file its mode. It must already have its contents and its owner: setting these may clear bits of
    /// the mode, and nobody may write into a program that is set-user-ID.
    pub fn hand_over(self, new: &File) -> io::Result<()> {
        let metadata = new.metadata()?;
        set_mode(new, &metadata, self.kept_by(&metadata))
    }
}

/// Sets the mode if it is another: not every file system can.
#[cfg(unix)]
fn set_mode(file: &File, metadata: &Metadata, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    if metadata.mode() & 0o7777 == mode {
        Ok(())
    } else {
        file.set_permissions(fs::Permissions::from_mode(mode))
    }
}

/// Attributes of Windows that a program may give a new file: hidden, system, archive, without an index, encrypted.
#[cfg(not(unix))]
const ATTRIBUTES: u32 = 0x2 | 0x4 | 0x20 | 0x2000 | 0x4000;

/// Permissions of a file that an output replaces: whether it may be written to, and its attributes.
#[cfg(not(unix))]
#[derive(Clone, Copy, Debug)]
pub struct Permissions {
    readonly: bool,
    attributes: u32,
}

#[cfg(not(unix))]
impl Permissions {
    /// Returns the permissions of a file.
    pub fn of(metadata: &Metadata) -> Self {
        #[cfg(windows)]
        let attributes = std::os::windows::fs::MetadataExt::file_attributes(metadata);
        #[cfg(not(windows))]
        let attributes = 0;
        let attributes = attributes & ATTRIBUTES;
        Permissions { readonly: metadata.permissions().readonly(), attributes }
    }

    /// Returns the mode of the new file while it is written, with the attributes of the old one in its upper half, where
    /// [`attributes`] finds them.
    pub fn while_written(self) -> u32 {
        NewPermissions::PLAIN.mode | self.attributes << 16
    }

    /// Makes a new file read-only if the old one is.
    pub fn hand_over(self, new: &File) -> io::Result<()> {
        let mut permissions: fs::Permissions = new.metadata()?.permissions();
        if permissions.readonly() == self.readonly {
            return Ok(());
        }
        permissions.set_readonly(self.readonly);
        new.set_permissions(permissions)
    }
}

/// Returns the attributes of Windows in a mode.
#[cfg(windows)]
pub fn attributes(mode: u32) -> u32 {
    mode >> 16
}
