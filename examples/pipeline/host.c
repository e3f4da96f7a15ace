// What an offloading compiler leaves of a program for the host: kernels are addresses, entries tell their names.
#include <stdint.h>
#include <stdio.h>

struct entry {
  uint64_t reserved;
  uint16_t version, kind;
  uint32_t flags;
  const void *address;
  const char *name;
  uint64_t size, data;
  const void *auxiliary;
};

static const char scale;

__attribute__((section("llvm_offload_entries"), aligned(8), used)) static const struct entry scale_entry = {
    .version = 1, .kind = 1, .address = &scale, .name = "scale"};

void launch(const void *kernel, int *data, int count);

int main(void) {
  int data[] = {1, 2, 3};
  launch(&scale, data, 3);
  printf("%d %d %d\n", data[0], data[1], data[2]);
  return 0;
}
