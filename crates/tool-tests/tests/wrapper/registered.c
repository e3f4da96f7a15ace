// Stands in for the runtimes of HIP and CUDA: says which kernels are registered with which fat binary, and hashes it.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct fatbin {
  uint32_t magic, version;
  const unsigned char *image;
  void *reserved;
};

static uint64_t number(const unsigned char *at) {
  uint64_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

// A bundle ends where its last entry does, a compressed one (version 3) and a fatbinary say how long they are.
static uint64_t size(const unsigned char *image) {
  if (!memcmp(image, "CCOB", 4))
    return number(image + 8);
  if (memcmp(image, "__CLANG_OFFLOAD_BUNDLE__", 24))
    return 16 + number(image + 8);
  uint64_t end = 0;
  const unsigned char *at = image + 32;
  for (uint64_t left = number(image + 24); left; --left) {
    if (number(at) + number(at + 8) > end)
      end = number(at) + number(at + 8);
    at += 24 + number(at + 16);
  }
  return end;
}

static char handle;

static void *registered(const char *runtime, const struct fatbin *f) {
  uint64_t hash = 1469598103934665603u, length = size(f->image);
  for (uint64_t i = 0; i != length; ++i)
    hash = (hash ^ f->image[i]) * 1099511628211u;
  printf("%s %x %lu bytes %lx\n", runtime, f->magic, (unsigned long)length, (unsigned long)hash);
  return &handle;
}

#define RUNTIME(NAME)                                                                                                  \
  void *NAME##RegisterFatBinary(const struct fatbin *f) { return registered(#NAME, f); }                               \
  void NAME##RegisterFatBinaryEnd(void *h) {}                                                                          \
  void NAME##UnregisterFatBinary(void *h) { puts(#NAME " ends"); }                                                     \
  int NAME##RegisterFunction(void *h, void *address, char *name) { return printf("%s\n", name); }                      \
  void NAME##RegisterVar(void *h, void *address, char *name) { puts(name); }                                           \
  void NAME##RegisterManagedVar(void *h, void *a, void *b, char *name) { puts(name); }                                 \
  void NAME##RegisterSurface(void *h, void *address, char *name) { puts(name); }                                       \
  void NAME##RegisterTexture(void *h, void *address, char *name) { puts(name); }

RUNTIME(__hip)
RUNTIME(__cuda)

int hipLaunchKernel(void) { return 0; }
int __hipPopCallConfiguration(void) { return 0; }
