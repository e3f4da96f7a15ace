"""Tests of device_code.py: python3 -m unittest discover -s .ci -p '*_test.py'"""

import struct
import unittest
import zlib

import device_code
from device_code import BUNDLE, ELF, ENTRY, LTO_IR, MAGIC, PTX, code, names_others


def entry(kind, sm, flags=0, payload=b"12345678"):
    return ENTRY.pack(kind, 0x101, 64, len(payload), 0, 0, sm, 0, 0, flags).ljust(64, b"\0") + payload


def fatbinary(*found):
    return MAGIC + struct.pack("<Q", sum(map(len, found))) + b"".join(found)


def bundle(*found):
    head = BUNDLE + struct.pack("<Q", len(found))
    place = len(head) + sum(24 + len(name) for name, _ in found)
    entries, payload = b"", b""
    for name, data in found:
        entries += struct.pack("<QQQ", place + len(payload), len(data), len(name)) + name.encode()
        payload += data
    return head + entries + payload


def elf(machine, flags, version=0):
    head = bytearray(64)
    head[:4], head[8] = b"\x7fELF", version
    struct.pack_into("<H", head, 18, machine)
    struct.pack_into("<I", head, 48, flags)
    return bytes(head)


class Fatbinaries(unittest.TestCase):
    def test_the_driver_takes_the_best(self):
        old, new, ptx = entry(ELF, 80), entry(ELF, 86), entry(PTX, 80)
        one = code(b"x" + fatbinary(old, new, ptx) + fatbinary(ptx), "sm_89")
        self.assertEqual(one.taken, [device_code.digest(new), device_code.digest(ptx)])
        self.assertEqual((one.needed, one.others), (len(new) + len(ptx), len(old) + len(ptx)))

    def test_code_of_the_architecture_alone_is_for_it_alone(self):
        exact = entry(ELF, 90, device_code.ARCHITECTURE)
        self.assertEqual(code(fatbinary(exact), "sm_90").others, 0)
        self.assertEqual(code(fatbinary(entry(ELF, 100, device_code.ARCHITECTURE)), "sm_103").taken, [None])
        self.assertNotEqual(code(fatbinary(entry(ELF, 100, device_code.FAMILY)), "sm_103").taken, [None])

    def test_what_a_linker_reads_stays(self):
        old, new, ptx = entry(LTO_IR, 80), entry(LTO_IR, 100), entry(PTX, 80)
        one = code(fatbinary(old, new, ptx), "sm_90")
        self.assertEqual((one.taken, one.others), ([device_code.digest(ptx), device_code.digest(old)], 0))


class Bundles(unittest.TestCase):
    def test_entries_are_for_processors(self):
        made = bundle(("host-x86_64-unknown-linux-gnu-", b""), ("hipv4-amdgcn-amd-amdhsa--gfx942:xnack+", b"ab"), ("hipv4-amdgcn-amd-amdhsa--gfx90a", b"c"))
        stored = zlib.compress(made)
        packed = b"CCOB" + struct.pack("<HHIIQ", 2, 0, 24 + len(stored), len(made), 0) + stored
        for data in (made, b"12" + packed):
            one = code(data, "gfx942")
            self.assertEqual((one.needed, one.others), (2, 1))
            self.assertEqual(one.taken, [(("hipv4-amdgcn-amd-amdhsa--gfx942:xnack+", device_code.digest(b"ab")),)])

    def test_generic_code_covers_processors(self):
        made = bundle(("hipv4-amdgcn-amd-amdhsa--gfx9-4-generic", b"ab"))
        self.assertEqual([code(made, gpu).needed for gpu in ("gfx942", "gfx90a")], [2, 0])


class Loose(unittest.TestCase):
    def test_flags_say_the_gpu(self):
        for data, gpu, expected in [
            (elf(device_code.CUDA, 0x5A055A, 7), "sm_90", 64),
            (elf(device_code.CUDA, 0x5A055A, 7), "sm_80", 0),
            (elf(device_code.CUDA, 0x50 << 8 | 2, 8), "sm_86", 64),
            (elf(device_code.CUDA, 0x50 << 8 | 8, 8), "sm_86", 0),
            (elf(device_code.AMDGPU, 0x54C, 4), "gfx942", 64),
            (elf(device_code.AMDGPU, 0x54C, 4), "gfx90a", 0),
        ]:
            one = code(data, gpu)
            self.assertEqual((one.needed, one.others), (expected, 64 - expected), gpu)

    def test_texts_of_ptx_say_the_gpu(self):
        for target, gpu, expected in [
            ("sm_80", "sm_90", True),
            ("sm_90a", "sm_90", True),
            ("sm_90a", "sm_100", False),
            ("sm_100f", "sm_103", True),
            ("sm_100f", "sm_120", False),
            ("sm_100", "sm_90", False),
        ]:
            text = f"//\n/* .version */\n.version 8.0\n.target {target}, debug\n".encode()
            one = code(text, gpu)
            self.assertEqual((bool(one.needed), bool(one.others)), (expected, not expected), (target, gpu))
        # A header with many comments is read once.
        self.assertEqual(code(b"/* a */\n" * 1000 + b"int a;", "sm_90"), ([], 0, 0))
        self.assertEqual(code(b"x .version 8.0\n.target sm_80\n", "sm_90"), ([], 0, 0))

    def test_tables_name_gpus(self):
        for path, gpu, expected in [
            ("rocblas/library/TensileLibrary_gfx90a.dat", "gfx942", True),
            ("rocblas/library/TensileLibrary_gfx90a.dat", "gfx90a", False),
            ("miopen/db/gfx90a68.kdb", "gfx942", True),
            ("miopen/db/gfx942130.kdb", "gfx942", False),
            ("rocblas/library/TensileLibrary.dat", "gfx942", False),
            ("rocblas/library/a_gfx9-4-generic.dat", "gfx942", False),
            ("rocblas/library/a_gfx11-generic.dat", "gfx942", True),
            ("rocblas/library/a_gfx12-generic.dat", "gfx942", False),
        ]:
            self.assertEqual(names_others(path, gpu), expected, (path, gpu))

    def test_code_of_the_other_vendor_does_not_count(self):
        self.assertEqual(code(elf(device_code.AMDGPU, 0x54C), "sm_90"), ([], 0, 0))
        self.assertEqual(code(fatbinary(entry(ELF, 80)), "gfx942"), ([], 0, 0))


if __name__ == "__main__":
    unittest.main()
