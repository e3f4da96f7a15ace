"""Changes an ELF file with LIEF: DIRECTORY-OF-LIEF OPERATION VALUE FILE."""

import sys

place, operation, value, file = sys.argv[1:]
sys.path.insert(0, place)
import lief  # noqa: E402

binary = lief.parse(file)
if operation == "needed":
    binary.add_library(value)
elif operation == "rpath":
    binary.add(lief.ELF.DynamicEntryRunPath(value))
elif operation == "soname":
    binary.add(lief.ELF.DynamicSharedObject(value))
else:
    sys.exit(f"no operation {operation}")
binary.write(file)
