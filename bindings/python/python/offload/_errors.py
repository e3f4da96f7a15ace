"""The exceptions of this package. Files that cannot be opened, read or written raise ``OSError``."""

from __future__ import annotations

from typing import Optional


class OffloadError(Exception):
    """Something is wrong with a file, or with a question about it.

    Attributes:
        message: One sentence.
        file: The file, or the member of a package; ``None`` if no file is concerned.
        offset: The offset in the file in bytes, if it is known.
        kind: The code of the finding, such as ``verify/malformed``; ``offload explain CODE`` explains it.
    """

    def __init__(
        self,
        message: str,
        file: Optional[str] = None,
        offset: Optional[int] = None,
        kind: str = "",
    ) -> None:
        super().__init__(message, file, offset, kind)
        self.message = message
        self.file = file
        self.offset = offset
        self.kind = kind

    def __str__(self) -> str:
        return f"{self.file}: {self.message}" if self.file else self.message


class DamagedError(OffloadError):
    """A file is malformed."""


class NotReadError(OffloadError):
    """A file has a format that is not read, and may hold device code."""


class RefusedError(OffloadError):
    """An edit would remove code that is needed, or cannot be done."""


class UrlError(OffloadError):
    """A URL is not accepted, or the file on a server cannot be read."""


class UnknownGpuError(OffloadError, ValueError):
    """A text names no GPU, or several."""


class InternalError(OffloadError):
    """A fault of this package: please report it."""
