// Stands in for the runtimes of OpenMP, CUDA, HIP and SYCL: says what it is called with. Addresses are told by what
// is there: host variables of the entries hold their names, images are printed.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "entry.h"

#ifdef UNWIND
#include <unwind.h>

static _Unwind_Reason_Code count(struct _Unwind_Context *context, void *frames) {
  ++*(int *)frames;
  return _URC_NO_REASON;
}

// More than this function, its caller, and a constructor that cannot be passed.
static void unwind(void) {
  int frames = 0;
  _Unwind_Backtrace(count, &frames);
  puts(frames > 3 ? "frames go on" : "frames end here");
}
#else
static void unwind(void) {}
#endif

struct image {
  const unsigned char *start, *end;
  struct entry *first, *last;
};

struct descriptor {
  int32_t count;
  struct image *images;
  struct entry *first, *last;
};

struct image_info {
  int32_t version, number, count;
  const char *arch, *options;
};

struct fatbin {
  uint32_t magic, version;
  const unsigned char *image;
  void *reserved;
};

static char handle[] = "handle";

// The stack must be aligned at every call.
#define HERE(...)                                                                                                      \
  do {                                                                                                                 \
    if ((uintptr_t)__builtin_frame_address(0) % 16 != 0)                                                               \
      printf("misaligned ");                                                                                           \
    printf(__VA_ARGS__);                                                                                               \
    putchar('\n');                                                                                                     \
    fflush(stdout);                                                                                                    \
  } while (0)

static const char *text(const void *address) { return address ? address : "null"; }

static const char *bytes(const unsigned char *start, const unsigned char *end) {
  static char hex[4096];
  char *to = hex;
  *to = 0;
  for (const unsigned char *at = start; at != end && at - start < 1000; ++at)
    to += sprintf(to, "%02x", *at);
  return hex;
}

void __tgt_register_lib(struct descriptor *d) {
  unwind();
  HERE("__tgt_register_lib %d images, %d entries", d->count, (int)(d->last - d->first));
  for (struct entry *e = d->first; e != d->last; ++e)
    HERE("  entry %s at %s", e->name, text(e->address));
  for (int i = 0; i < d->count; ++i) {
    struct image *image = &d->images[i];
    HERE("  image %s, entries %d %d", bytes(image->start, image->end), (int)(image->first - d->first),
         (int)(image->last - d->last));
  }
}

void __tgt_unregister_lib(struct descriptor *d) {
  unwind();
  HERE("__tgt_unregister_lib %d images", d->count); }

#ifndef NO_IMAGE_INFO
void __tgt_register_image_info(struct image_info *info) {
  HERE("__tgt_register_image_info %d: %d of %d, %s, %s", info->version, info->number, info->count, info->arch,
       text(info->options));
}
#endif

void __sycl_register_lib(const unsigned char *start, uint64_t size) {
  HERE("__sycl_register_lib %s", bytes(start, start + size));
}

void __sycl_unregister_lib(const unsigned char *start, uint64_t size) {
  HERE("__sycl_unregister_lib %s", bytes(start, start + size));
}

#define RUNTIME(NAME)                                                                                                  \
  void *NAME##RegisterFatBinary(struct fatbin *f) {                                                                    \
    HERE(#NAME "RegisterFatBinary %x %u %s %s", f->magic, f->version, bytes(f->image, f->image + 16),                  \
         text(f->reserved));                                                                                           \
    return handle;                                                                                                     \
  }                                                                                                                    \
  void NAME##RegisterFatBinaryEnd(char *h) { HERE(#NAME "RegisterFatBinaryEnd %s", h); }                               \
  void NAME##UnregisterFatBinary(char *h) { HERE(#NAME "UnregisterFatBinary %s", h); }                                 \
  int NAME##RegisterFunction(char *h, char *address, char *name, char *device, int threads, void *a, void *b, void *c, \
                             void *d, void *e) {                                                                       \
    unwind();                                                                                                          \
    HERE(#NAME "RegisterFunction %s %s %s %s %d %s %s %s %s %s", h, text(address), name, device, threads, text(a),     \
         text(b), text(c), text(d), text(e));                                                                          \
    return -1;                                                                                                         \
  }                                                                                                                    \
  void NAME##RegisterVar(char *h, char *address, char *name, char *device, int external, size_t size, int constant,    \
                         int last) {                                                                                   \
    HERE(#NAME "RegisterVar %s %s %s %s %d %zu %d %d", h, text(address), name, device, external, size, constant,       \
         last);                                                                                                        \
  }                                                                                                                    \
  void NAME##RegisterSurface(char *h, char *address, char *name, char *device, int kind, int external) {               \
    HERE(#NAME "RegisterSurface %s %s %s %s %d %d", h, text(address), name, device, kind, external);                   \
  }                                                                                                                    \
  void NAME##RegisterTexture(char *h, char *address, char *name, char *device, int kind, int normalized,               \
                             int external) {                                                                           \
    HERE(#NAME "RegisterTexture %s %s %s %s %d %d %d", h, text(address), name, device, kind, normalized, external);    \
  }

RUNTIME(__cuda)
RUNTIME(__hip)

void __hipRegisterManagedVar(char *h, char *pointer, char *address, char *name, size_t size, int align) {
  HERE("__hipRegisterManagedVar %s %s %s %s %zu %d", h, text(pointer), text(address), name, size, align);
}

#ifdef CUDA_MANAGED
void __cudaRegisterManagedVar(char *h, char *pointer, char *address, char *name, int external, size_t size,
                              int constant, int last) {
  HERE("__cudaRegisterManagedVar %s %s %s %s %d %zu %d %d", h, text(pointer), text(address), name, external, size,
       constant, last);
}
#else
void __cudaRegisterManagedVar(char *h, char *pointer, char *address, char *name, size_t size, int align) {
  HERE("__cudaRegisterManagedVar %s %s %s %s %zu %d", h, text(pointer), text(address), name, size, align);
}
#endif
