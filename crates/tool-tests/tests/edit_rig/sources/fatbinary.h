// What the stand-in knows of CUDA and of its fatbinaries: part of runtime.c.

#define API(name) __cuda##name
#define LAUNCH cudaLaunchKernel
#define CONTAINER "fatbinary"

enum { ALIGNMENT = 8, HEADER = 16, ENTRY_HEADER = 64 };

// How many bytes the fatbinary has: none if its header is not one, or its entries do not fill it. It may have no entries.
static uint64_t checked_size(const unsigned char *fatbinary) {
  if (number(fatbinary, 4) != 0xba55ed50) {
    tell("no magic\n");
    return 0;
  }
  if (number(fatbinary + 4, 2) != 1 || number(fatbinary + 6, 2) != HEADER) {
    tell("another header\n");
    return 0;
  }
  uint64_t size = number(fatbinary + 8, 8), at = 0;
  for (int i = 0; at < size; ++i) {
    const unsigned char *entry = fatbinary + HEADER + at;
    uint64_t left = size - at, header = left < ENTRY_HEADER ? 0 : number(entry + 4, 4);
    if (header < ENTRY_HEADER || header % 8 || header > left || number(entry + 8, 8) % 8 ||
        number(entry + 8, 8) > left - header) {
      tell("entry %d does not lie in its fatbinary\n", i);
      return 0;
    }
    at += header + number(entry + 8, 8);
  }
  return HEADER + size;
}

static void tell_wrapper(int number, const struct Wrapper *wrapper) {
  tell("fatbinary %d: magic %x, version %u, last field %d\n", number, wrapper->magic, wrapper->version,
       wrapper->last != 0);
}

// A wrapper of version 2 leads to fatbinaries of relocatable code as well, in a list that ends with a null pointer.
static void dump_all(const struct Wrapper *wrapper) {
  dump(wrapper->container);
  if (wrapper->version != 2)
    return;
  for (const unsigned char **prelinked = wrapper->last; *prelinked; ++prelinked)
    tell("fatbinary %d: prelinked\n", dump(*prelinked));
}

void API(RegisterFatBinaryEnd)(void **handle) { tell("fatbinary %d: registered\n", ((struct Handle *)handle)->number); }
