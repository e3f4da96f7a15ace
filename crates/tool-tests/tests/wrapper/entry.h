// What compilers put into the entries section.
#include <stdint.h>

#ifdef OLD_ENTRIES
struct entry {
  void *address;
  char *name;
  uint64_t size;
  int32_t flags, data;
};
#else
struct entry {
  uint64_t reserved;
  uint16_t version, kind;
  uint32_t flags;
  void *address;
  char *name;
  uint64_t size, data;
  void *auxiliary;
};
#endif
