"""Reads code for GPUs in finished files, independently of `offload`, and says by the rules of the drivers what a GPU takes of it.

Fatbinaries of NVIDIA are found by their magic anywhere, and walked from their headers as NVIDIA's runtime walks them; bundles of
clang and their compressed form likewise. Loose images are ELF files for GPUs, and texts of PTX.
"""

import collections
import hashlib
import re
import struct
import zlib

from lib import must

MAGIC = bytes.fromhex("50ed55ba01001000")
ENTRY = struct.Struct("<HHIQII4xIIIQ")
PTX, ELF, LTO_IR, RELOCATABLE_PTX, SEVERAL = 1, 2, 8, 0x40, 0x100
ARCHITECTURE, FAMILY = 0x100000, 0x200000
TEGRA = {32, 53, 62, 72, 87, 101, 110}

Entry = collections.namedtuple("Entry", "kind sm flags bytes")
Code = collections.namedtuple("Code", "taken needed others")

BUNDLE, COMPRESSED = b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"
CUDA, AMDGPU = 190, 224
# The machine in the flags of AMD's ELF files, by LLVM's AMDGPUUsage.
PROCESSORS = {0x2C: "gfx900", 0x2F: "gfx906", 0x30: "gfx908", 0x31: "gfx90c", 0x33: "gfx1010", 0x36: "gfx1030", 0x37: "gfx1031"}
PROCESSORS |= {0x3F: "gfx90a", 0x41: "gfx1100", 0x46: "gfx1101", 0x47: "gfx1102", 0x48: "gfx1200", 0x4C: "gfx942", 0x4E: "gfx1201", 0x4F: "gfx950"}
# Generic code, and what it covers.
GENERIC = {"gfx9-generic": ("gfx900", "gfx906", "gfx90c"), "gfx9-4-generic": ("gfx942", "gfx950"), "gfx11-generic": ("gfx1100", "gfx1101", "gfx1102")}
# GPUs whose names are in those of tables of kernels, beside the ones above. Digits may follow: gfx90a68 has 0x68 compute units.
TABLES = {*PROCESSORS.values(), "gfx803", "gfx904", "gfx940", "gfx941", "gfx1011", "gfx1012", "gfx1032", "gfx1034", "gfx1035"}
TABLES |= {"gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153", "gfx1250"}
NAME = re.compile("gfx[0-9]+(?:-[0-9]+)*-generic|gfx[0-9a-f]+")
# A text of PTX states its version, after comments, and then its target.
PTX_START = re.compile(rb"(?:\s|//[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*\.version\s")
PTX_TARGET = re.compile(rb"^\s*\.target\s+sm_(\d+)([af]?)", re.MULTILINE)


def entries(data, at):
    """Returns the entries of a fatbinary and its size; nothing for bytes that are none."""
    if len(data) < at + 16:
        return None
    (size,) = struct.unpack_from("<Q", data, at + 8)
    end, found, place = at + 16 + size, [], at + 16
    if end > len(data):
        return None
    while place < end:
        if end - place < 64:
            return None
        kind, version, header, payload, _, _, sm, _, _, flags = ENTRY.unpack_from(data, place)
        if version != 0x101 or header < 64 or header % 8 or payload % 8 or payload > end - place - header:
            return None
        found.append(Entry(kind, sm, flags, bytes(data[place : place + header + payload])))
        place += header + payload
    return found, 16 + size


def fatbinaries(data, start, end):
    """Returns offset, size and entries of all fatbinaries in a part of a file."""
    found, at = [], data.find(MAGIC, start, end)
    while at >= 0:
        read = entries(data, at)
        is_one = read is not None and at + read[1] <= end
        if is_one:
            found.append((at, read[1], read[0]))
        at = data.find(MAGIC, at + (read[1] if is_one else 1), end)
    return found


def runs(entry, gpu):
    """Returns whether a GPU runs a cubin, or can compile PTX, and how it is preferred."""
    is_cubin = entry.kind == ELF
    if entry.kind not in (ELF, PTX, RELOCATABLE_PTX) or entry.sm > gpu or (entry.sm in TEGRA) != (gpu in TEGRA) and is_cubin:
        return None
    suffix = 2 if entry.flags & ARCHITECTURE else 1 if entry.flags & FAMILY else 0
    if suffix == 2 and entry.sm != gpu or (is_cubin or suffix == 1) and entry.sm // 10 != gpu // 10:
        return None
    return is_cubin, entry.sm, suffix


def links(entry, gpu):
    """Returns whether it is LTO-IR that a linker compiles for the GPU, by the rule of PTX."""
    return entry.kind == LTO_IR and runs(entry._replace(kind=PTX), gpu) is not None


def taken(found, gpu):
    """Returns the entry that the driver takes: of equal cubins the first, of equal PTX the last."""
    ranked = [(runs(entry, gpu), entry) for entry in found]
    best = max((rank for rank, _ in ranked if rank), default=None)
    equal = [entry for rank, entry in ranked if rank == best and rank]
    return equal[0 if best[0] else -1] if equal else None


def unfit(found, gpu):
    """Returns the entries that the GPU takes in no way: others than the best, except code that only a linker reads."""
    choice = taken(found, gpu)
    rank = choice and runs(choice, gpu)
    return [entry for entry in found if entry.kind not in (LTO_IR, SEVERAL) and (rank is None or runs(entry, gpu) != rank)]


def size_of(found):
    return sum(len(entry.bytes) for entry in found)


def digest(data):
    return hashlib.sha256(data).hexdigest()


def decompressed(data, at):
    """Returns the bundle in a compressed one; nothing for bytes that are none."""
    version, method = struct.unpack_from("<HH", data, at + 4)
    if version not in (2, 3) or method > 1:
        return None
    layout = struct.Struct("<IIQ" if version == 2 else "<QQQ")
    total, size, _ = layout.unpack_from(data, at + 8)
    if total < 8 + layout.size or at + total > len(data):
        return None
    stored = bytes(data[at + 8 + layout.size : at + total])
    new = zlib.decompress(stored) if method == 0 else must("zstd", "-dcq", input=stored, text=False)
    return (new, total) if len(new) == size else None


def bundled(data, at):
    """Returns target IDs and code of a bundle's entries, and its end; nothing for bytes that are none."""
    (count,) = struct.unpack_from("<Q", data, at + 24)
    found, place, end = [], at + 32, at + 32
    for _ in range(count):
        if place + 24 > len(data):
            return None
        offset, size, length = struct.unpack_from("<QQQ", data, place)
        if length > 256 or at + offset + size > len(data):
            return None
        name = bytes(data[place + 24 : place + 24 + length]).decode(errors="replace")
        place += 24 + length
        found.append((name, bytes(data[at + offset : at + offset + size])))
        end = max(end, at + offset + size, place)
    return found, end


def bundles(data):
    """Returns offset and entries of all bundles of a file."""
    found = []
    for magic in (BUNDLE, COMPRESSED):
        at = data.find(magic)
        while at >= 0:
            end = at + 4
            if magic is BUNDLE and at + 32 <= len(data) and (read := bundled(data, at)):
                found.append((at, read[0]))
                end = max(end, read[1])
            elif magic is COMPRESSED and at + 32 <= len(data) and (read := decompressed(data, at)):
                found.append((at, bundled(read[0], 0)[0]))
                end = at + read[1]
            at = data.find(magic, end)
    return sorted(found, key=lambda one: one[0])


def is_for(name, gpu):
    """Returns whether an entry of a bundle is for a GPU of AMD in some mode; nothing for the host's."""
    if name.startswith("host"):
        return None
    processor = name.split("--")[-1].split(":")[0]
    return processor in (gpu, "amdgcnspirv") or gpu in GENERIC.get(processor, ())


def names_others(path, gpu):
    """Returns whether a path names GPUs of AMD, and not this one."""
    named = set()
    for name in NAME.findall(path):
        if name.endswith("-generic"):
            # One that is not known may cover it.
            named.update(GENERIC.get(name, [gpu]))
        else:
            named.add(max((one for one in TABLES if name.startswith(one)), key=len, default=gpu))
    return bool(named) and gpu not in named


def loose_ptx(data, gpu):
    """Returns whether a file is a text of PTX that a GPU compiles; nothing for other files."""
    target = PTX_TARGET.search(data) if PTX_START.match(data) else None
    if target is None:
        return None
    sm, number = int(target[1]), int(gpu[3:])
    if target[2] == b"a":
        return sm == number
    return sm <= number and (not target[2] or sm // 10 == number // 10)


def loose(data, gpu):
    """Returns whether a file is an image by itself that a GPU runs; nothing for files that are none for its vendor."""
    if data[:4] != b"\x7fELF" and gpu.startswith("sm_"):
        return loose_ptx(data, gpu)
    if data[:4] != b"\x7fELF" or len(data) < 64:
        return None
    machine, flags = struct.unpack_from("<H", data, 18)[0], struct.unpack_from("<I", data, 48)[0]
    if machine == AMDGPU and gpu.startswith("gfx"):
        processor = PROCESSORS.get(flags & 0xFF)
        return processor and processor == gpu
    if machine != CUDA or not gpu.startswith("sm_"):
        return None
    # Since ABI version 8 the compute capability has 8 bits from the second byte on, before in the first.
    sm, is_exact = (flags >> 8 & 0xFF, flags & 8) if data[8] >= 8 else (flags & 0xFF, flags & 0x800)
    number = int(gpu[3:])
    return sm == number if is_exact else sm // 10 == number // 10 and sm <= number


def code(data, gpu):
    """Returns for each container of a GPU's vendor the digest of what the GPU takes, and the sums of the bytes for it and for other GPUs."""
    whole = loose(data, gpu)
    if whole is not None:
        return Code([digest(data)] if whole else [], len(data) if whole else 0, 0 if whole else len(data))
    chosen, needed, others = [], 0, 0
    if gpu.startswith("sm_"):
        number = int(gpu[3:])
        for _, _, found in fatbinaries(data, 0, len(data)):
            choice = taken(found, number)
            chosen.append(choice and digest(choice.bytes))
            chosen.extend(digest(entry.bytes) for entry in found if links(entry, number))
            needed += len(choice.bytes) if choice else 0
            others += size_of(unfit(found, number))
        return Code(chosen, needed, others)
    for _, found in bundles(data):
        fit = [(name, one) for name, one in found if is_for(name, gpu)]
        chosen.append(tuple((name, digest(one)) for name, one in fit))
        needed += sum(len(one) for _, one in fit)
        others += sum(len(one) for name, one in found if is_for(name, gpu) is False)
    return Code(chosen, needed, others)
