// Entries of all sorts, made by hand. Addresses are those of strings.
#include "entry.h"

#ifndef SECTION
#define SECTION "llvm_offload_entries"
#endif

// Kept by linkers that drop unused sections.
#ifdef RETAIN
#define USED used, retain
#else
#define USED used
#endif

#ifdef OLD_ENTRIES
#define ENTRY(ID, KIND, FLAGS, SIZE, DATA, AUXILIARY)                                                                  \
  static char ID##_host[] = #ID "_host";                                                                               \
  __attribute__((section(SECTION), aligned(8), USED)) static struct entry ID = {ID##_host, #ID, SIZE, FLAGS, (int)DATA};
#else
#define ENTRY(ID, KIND, FLAGS, SIZE, DATA, AUXILIARY)                                                                  \
  static char ID##_host[] = #ID "_host";                                                                               \
  __attribute__((section(SECTION), aligned(8), USED)) static struct entry ID = {                                       \
      0, 1, KIND, FLAGS, ID##_host, #ID, SIZE, DATA, AUXILIARY};
#endif

#ifndef KIND
#define KIND 1
#endif

static char managed_pointer[] = "managed_pointer";

ENTRY(kernel, KIND, 0, 0, 0, 0)
ENTRY(variable, KIND, 0, 4, 0, 0)
ENTRY(external_constant, KIND, 8 | 16, 0x123456789, 0, 0)
ENTRY(managed, KIND, 1, 8, 0x100000010, managed_pointer)
ENTRY(surface, KIND, 2 | 8, 16, 77, 0)
ENTRY(texture, KIND, 3 | 32, 24, 78, 0)
ENTRY(texture_external, KIND, 3 | 8, 24, -1, 0)
ENTRY(type_four, KIND, 4, 24, 0, 0)
ENTRY(type_seven_without_size, KIND, 7, 0, 0, 0)
ENTRY(wrong_kind, 0x10, 0, 0, 0, 0)
ENTRY(last_kernel, KIND, 0, 0, 0, 0)
