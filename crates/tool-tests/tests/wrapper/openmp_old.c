// What clang up to release 19 leaves of openmp.c for the host: entries of five fields, in a section of their own. NAME
// is the kernel's name.
#include <stdint.h>
#include <stdio.h>

struct entry {
  void *address;
  const char *name;
  size_t size;
  int32_t flags, reserved;
};

struct arguments {
  uint32_t version, count;
  void **bases, **pointers;
  int64_t *sizes, *types;
  void **names, **mappers;
  uint64_t trip_count, flags;
  int32_t teams[3], threads[3];
  uint32_t dynamic_memory;
};

int __tgt_target_kernel(void *where, int64_t device, int32_t teams, int32_t threads, void *kernel,
                        struct arguments *arguments);

static char kernel;

__attribute__((section("omp_offloading_entries"), aligned(8), used)) static struct entry kernel_entry = {&kernel, NAME};

#ifdef IMAGE_INFO
// Of AOMP's runtime only.
void __tgt_register_image_info(struct { int32_t version, number, count; const char *arch; } *info) {
  printf("image %d of %d is for %s\n", info->number, info->count, info->arch);
}
#endif

int main(void) {
  int on_host = 1, sum = 0;
  void *variables[] = {&on_host, &sum};
  int64_t sizes[] = {sizeof on_host, sizeof sum};
  int64_t types[] = {0x22, 0x23}; // from the device; to it and from it
  struct arguments arguments = {3, 2, variables, variables, sizes, types, .teams = {-1}};
  if (__tgt_target_kernel(0, -1, -1, 0, &kernel, &arguments))
    return 2;
  printf("on the %s: %d\n", on_host ? "host" : "device", sum);
  return on_host;
}
