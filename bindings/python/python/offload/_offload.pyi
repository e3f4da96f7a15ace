from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal, Optional, Protocol, TypedDict, Union, final

__version__: str

class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...

Path = Union[str, "os.PathLike[str]"]
Source = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, _Readable]
Word = Literal["yes", "partly", "unknown", "no"]

class Need(TypedDict):
    """Software that an image needs: the oldest version that can load it."""

    software: str
    since: str
    what: str

@final
class Finding:
    """Something that was found in a file. ``offload explain CODE`` explains its code."""

    @property
    def level(self) -> Literal["error", "warning", "note"]: ...
    @property
    def code(self) -> str:
        """The code: ``verify/malformed``."""
    @property
    def file(self) -> str:
        """The file, or the member of a package, as messages name it."""
    @property
    def offset(self) -> Optional[int]:
        """The offset in the file in bytes, of the container concerned, if it is known."""
    @property
    def message(self) -> str:
        """One sentence."""
    @property
    def errno(self) -> Optional[int]:
        """The number of the system's error, if it is one."""

@final
class Compression:
    """The compression of device code."""

    @property
    def method(self) -> str: ...
    @property
    def stored_size(self) -> int:
        """Bytes in the file."""
    @property
    def uncompressed_size(self) -> int:
        """Bytes without compression."""

@final
class Image:
    """A device image: code for one target. The attributes have the names of the fields of ``offload ls --json``."""

    @property
    def file(self) -> str:
        """The file, or ``foo.whl:foo/libfoo.so`` for the member of a package."""
    @property
    def member(self) -> Optional[str]:
        """The path in the package or directory that was named; ``None`` if the source is the file itself."""
    @property
    def index(self) -> int:
        """The position among the images of the file, from 0."""
    @property
    def path(self) -> list[str]:
        """The containers from outside in, each as ``kind:name``."""
    @property
    def place(self) -> str:
        """The same in one text, separated by blanks."""
    @property
    def container(self) -> str:
        """The format of the innermost container: ``bundle``, ``ccob``, ``fatbinary``."""
    @property
    def kind(self) -> Optional[str]:
        """The offload kind: ``hip``, ``hipv4``, ``cuda``, ``openmp``, ``sycl``, ``host``."""
    @property
    def vendor(self) -> Optional[str]:
        """``AMD``, ``NVIDIA`` or ``Intel``, if the container shows it."""
    @property
    def triple(self) -> Optional[str]: ...
    @property
    def target(self) -> Optional[str]:
        """The target ID: ``gfx90a:xnack+``, ``sm_90``."""
    @property
    def id(self) -> Optional[str]:
        """The bundle entry ID, as stored."""
    @property
    def offset(self) -> Optional[int]:
        """The offset in the file in bytes; ``None`` for code in compressed data."""
    @property
    def offset_in_container(self) -> int: ...
    @property
    def size(self) -> int:
        """Bytes without the compression of bundles."""
    @property
    def stored_size(self) -> Optional[int]:
        """Bytes in the file; ``None`` for code that is compressed together with other code."""
    @property
    def stored_estimate(self) -> int:
        """Bytes in the file, estimated where code is compressed together."""
    @property
    def compression(self) -> Optional[Compression]: ...
    @property
    def image_format(self) -> Optional[str]:
        """The format: ``elf``, ``ptx``, ``spirv``; ``None`` if it was not read (``formats=True`` reads it)."""
    @property
    def hash(self) -> Optional[str]:
        """64-bit XXH3 of the bytes that `extract` gives, in 16 hexadecimal digits; ``None`` without ``hash=True``."""
    @property
    def archive(self) -> Optional[list[str]]:
        """The GPUs of an archive of machine code of SYCL."""
    @property
    def needs(self) -> Optional[list[Need]]:
        """The oldest drivers that load it; ``None`` without ``needs=True``."""
    @property
    def kernel_count(self) -> Optional[int]:
        """The number of kernels; ``None`` without ``kernels=True``, and for formats whose kernels are not read."""
    def kernels(self) -> list[dict[str, Any]]:
        """Read the file again and return the kernels with their resources.

        The fields are those of ``offload kernels --json``: ``name``, ``demangled``, ``code`` (bytes), ``registers``,
        ``vgpr_spills``, ``group`` (bytes), ``arguments``.

        Example:
            >>> [(kernel["name"], kernel["registers"]) for kernel in image.kernels()]

        Raises:
            OSError: The file cannot be read, or was changed.
            DamagedError: The image is malformed.
        """
    def extract(self, path: Optional[Path] = None) -> Optional[bytes]:
        """Read the file again and return the bytes of the image, or write them to a file.

        ``offload extract`` writes the same bytes: compressed code is decompressed. A file at ``path`` appears when it is complete, and
        replaces an older one.

        Example:
            >>> for image in offload.images("libfoo.so", gpu="gfx90a"):
            ...     image.extract(f"image-{image.index}.bin")

        Args:
            path: The path of the new file; without it the bytes are returned.

        Raises:
            OSError: A file cannot be read or written.
            DamagedError: The image cannot be decompressed.
        """
    def to_dict(self) -> dict[str, Any]:
        """Return the row of ``offload ls --json``: the fields have the names of the attributes. Sizes and offsets are in bytes."""

@final
class Images:
    """Iterator of the images of a source."""

    @property
    def findings(self) -> list[Finding]:
        """The findings so far: all of them at the end."""
    def __iter__(self) -> Images: ...
    def __next__(self) -> Image: ...
    def close(self) -> None:
        """End the iteration."""

@final
class Verdict:
    """The verdict about a file, a package, or files that are alternatives."""

    @property
    def file(self) -> str: ...
    @property
    def verdict(self) -> Word: ...
    @property
    def reason(self) -> str:
        """The reason: ``has no code for gfx1102: built for gfx1100``."""

@final
class Answer:
    """The answer of `match`. It is true if ``offload match`` exits with 0: all files were read, and no answer is ``unknown`` or ``no``."""

    @property
    def gpu(self) -> str:
        """The target ID of the GPU."""
    @property
    def verdict(self) -> Word:
        """The worst of all verdicts, and at least ``unknown`` if files could not be read; ``no`` for a source without device code."""
    @property
    def reason(self) -> str:
        """The reasons, one line for each verdict; without one the reason why there is none."""
    @property
    def verdicts(self) -> list[Verdict]: ...
    @property
    def containers(self) -> list[dict[str, Any]]:
        """The answers of ``offload match --json``: one for each container, with all its images."""
    @property
    def findings(self) -> list[Finding]:
        """Faults of files, and doubts about the GPU: a processor that is not known is a warning, ``targets/unknown``."""
    @property
    def ok(self) -> bool:
        """``True`` if all files were read: nothing failed, and none is of a format that is not read."""
    def __bool__(self) -> bool: ...

@final
class Report:
    """The report of an edit."""

    @property
    def files(self) -> list[dict[str, Any]]:
        """The files of ``offload thin --json``: the source first, then its members. Sizes are in bytes."""
    @property
    def size_before(self) -> int:
        """Bytes of the source."""
    @property
    def size_after(self) -> int:
        """Bytes of the new file."""
    @property
    def findings(self) -> list[Finding]: ...

@final
class SourceResult:
    """The result of a source of a scan."""

    @property
    def source(self) -> str: ...
    @property
    def package(self) -> Optional[str]:
        """The package, of the name of a wheel."""
    @property
    def version(self) -> Optional[str]: ...
    @property
    def images(self) -> int: ...
    @property
    def findings(self) -> list[Finding]: ...
    @property
    def requests(self) -> int:
        """Requests to a server; 0 for a file."""
    @property
    def bytes_received(self) -> int:
        """Bytes of contents that a server sent; 0 for a file."""
    @property
    def ok(self) -> bool:
        """``True`` if there is no error, and the format of each file is read."""

@final
class Scan:
    """The images of many sources as an Arrow stream, for every library that takes one.

    ``pyarrow.RecordBatchReader.from_stream(scan)``, ``pyarrow.table(scan)``, ``polars.DataFrame(scan)``,
    ``duckdb.from_arrow(...)``. Each stream starts from the first source.

    Ctrl-C ends a stream. The library that reads it raises an exception of its own first (``polars.exceptions.ComputeError``,
    ``pyarrow.ArrowInvalid``) with the text ``interrupted``, because Arrow's interface passes a text only. ``KeyboardInterrupt``
    follows at once, also while the first one is handled: catch it around the whole ``try`` statement.
    """

    @property
    def results(self) -> list[SourceResult]:
        """The sources that the last stream is done with, in order, all of whose rows it gave. All others were not, or not wholly, read."""
    @property
    def errors(self) -> list[Finding]:
        """The errors of these sources."""
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

def images(
    source: Source,
    /,
    *,
    gpu: Optional[str] = None,
    hash: bool = False,
    kernels: bool = False,
    needs: bool = False,
    formats: bool = False,
    check: bool = False,
    on_error: Literal["raise", "collect"] = "raise",
    threads: Optional[int] = None,
) -> Images:
    """Return an iterator of the device images of a file, of the members of a package, or of all files of a directory.

    Memory holds the images of a few files at a time. Bytes are read where they are; an open file is copied to a temporary file. A URL is
    read by ranges with device code; `Images.findings` says what was not read. Sizes and offsets of images are in bytes.

    Example:
        >>> for image in offload.images("foo.whl", gpu="RX 7600"):
        ...     print(image.member, image.target, image.size)

    Args:
        source: A path, a URL, ``foo.whl:foo/libfoo.so`` for the member of a package, bytes, or a binary file.
        gpu: Only images that this GPU loads: a target ID (``gfx90a:xnack+``, ``sm_86``), a name (``RX 7600``), a PCI ID, or
            ``native`` for the GPUs of this machine.
        hash: Hash each image.
        kernels: Count the kernels of each image.
        needs: Find the oldest drivers that load each image.
        formats: Decompress everything, for the formats of images.
        check: Decompress everything, and compare each image with the name of its entry.
        on_error: ``raise`` ends the iteration at the first error; ``collect`` goes on, and `Images.findings` has all.
        threads: The most threads; without it one for each core.

    Raises:
        OSError: A file cannot be opened or read.
        DamagedError: A file is malformed, after its images.
        NotReadError: The format of the source is not read.
        UrlError: A URL cannot be read.
        UnknownGpuError: ``gpu`` names none, or is ``native`` and no GPU is found.
        TypeError: An argument has another type; the text names it.
        ValueError: ``source`` is empty, ``threads`` is 0, or ``on_error`` is another word.
    """

def match(source: Source, gpu: str, /, *, check: bool = False, threads: Optional[int] = None) -> Answer:
    """Ask which images a GPU loads, and why not the others.

    With ``native`` the versions of the driver and of ROCm on this machine count, as for ``offload match --gpu native``; a note among
    `Answer.findings` says what was found.

    Example:
        >>> answer = offload.match("foo.whl", "RX 7600")
        >>> print(answer.verdict, answer.reason)
        no has no code for gfx1102: built for gfx1100, gfx90a

    Args:
        source: A path, a URL, ``foo.whl:foo/libfoo.so`` for the member of a package, bytes, or a binary file.
        gpu: A target ID (``gfx90a:xnack+``, ``sm_86``), a name (``RX 7600``), a PCI ID, or ``native`` for the GPU of this machine.
        check: Decompress everything, and compare each image with the name of its entry.
        threads: The most threads; without it one for each core.

    Raises:
        OSError: The source cannot be opened or read.
        OffloadError: Nothing in the source was understood.
        UrlError: A URL cannot be read.
        UnknownGpuError: ``gpu`` names none, or several; ``native``: no GPU is found, or several different ones.
        TypeError: An argument has another type; the text names it.
        ValueError: ``source`` is empty, or ``threads`` is 0.
    """

def thin(
    source: Path,
    output: Path,
    /,
    *,
    keep: Optional[list[str]] = None,
    drop: Optional[list[str]] = None,
    exact: bool = False,
    drop_ptx: bool = False,
    allow_missing: bool = False,
    allow_empty: bool = False,
    allow_unserved: bool = False,
    databases: bool = False,
    dry_run: bool = False,
    threads: Optional[int] = None,
) -> Report:
    """Write a file without the code for other GPUs. The options are those of ``offload thin``.

    The output appears when it is complete. Ctrl-C stops the edit: the output stays as it was, and nothing else is left. The exception comes
    once the edit has ended; a second Ctrl-C does not wait for that.

    Example:
        >>> report = offload.thin("foo.whl", "small.whl", keep=["gfx1102"])
        >>> print(report.size_before, "->", report.size_after, "bytes")

    Args:
        source: The path of a library, a program, a wheel or another package.
        output: The path of the new file, or of a directory that gets a file of the same name.
        keep: Keep code that these GPUs load: target IDs, names, PCI IDs, or ``native`` for the GPUs of this machine.
        drop: Drop code that was built for these targets.
        exact: Keep exact matches only; drop generic code and SPIR-V.
        drop_ptx: Drop PTX of fatbinaries, even if a GPU loses all its code.
        allow_missing: Do not fail if a GPU has no code.
        allow_empty: Allow containers to lose all their images.
        allow_unserved: Allow removing code that a GPU of ``keep`` loads.
        databases: Delete files of kernel databases and loose images for other GPUs.
        dry_run: Write nothing.
        threads: The most threads; without it one for each core.

    Raises:
        OSError: A file cannot be read or written.
        RefusedError: The edit would remove too much, or the file cannot be edited.
        UrlError: The source is a URL: download it first.
        UnknownGpuError: A target is not known, or ``native`` finds no GPU.
        TypeError: An argument has another type; the text names it. Write bytes to a file first.
        ValueError: Both or none of ``keep`` and ``drop`` are given, or a path is empty.
    """

def scan(
    sources: Union[Source, Iterable[Source]],
    /,
    *,
    hash: bool = False,
    kernels: bool = False,
    needs: bool = False,
    formats: bool = False,
    sha256: bool = False,
    on_error: Literal["row", "raise"] = "row",
    threads: Optional[int] = None,
) -> Scan:
    """Return the images of many files, packages and directories as an Arrow stream with a row for each image.

    Columns: ``source``, ``package``, ``version`` (of the names of wheels), ``file_sha256``, ``member``, ``container``,
    ``place``, ``kind``, ``vendor``, ``target``, ``format``, ``compression``, ``stored`` (bytes, estimated where code is
    compressed together), ``size`` (bytes), ``image_hash``, ``kernels`` (their number), ``needs`` (a list of texts),
    ``error``. Columns that were not asked for are null. Nothing is lost: each error, and each file of a format that is not read, is a row
    with ``source``, ``member`` and ``error``, and `Scan.results` has all sources that are done.

    Example:
        >>> scan = offload.scan(["a.whl", "/opt/venv"], kernels=True)
        >>> print(polars.DataFrame(scan).group_by("target").agg(polars.col("stored").sum()))

    Args:
        sources: A path, a URL, bytes or a binary file, or several of them.
        hash: Hash each image (``image_hash``).
        kernels: Count the kernels of each image.
        needs: Find the oldest drivers that load each image.
        formats: Decompress everything, for the formats of images.
        sha256: Hash each source that is a file (``file_sha256``): all its bytes are read. A URL is not hashed.
        on_error: ``row`` makes errors rows; ``raise`` ends the stream at the first one, after the rows before it.
        threads: Sources that are read at the same time; without it one for each core.

    Raises:
        TypeError: An argument, or one of the sources, has another type; the text names it.
        ValueError: A path is empty, ``threads`` is 0, or ``on_error`` is another word.
    """
