// The program of host.c from a compiler that leaves entries to `entries`: the symbol that stands for the kernel is not static.
#include <stdio.h>

const char scale_kernel = 0;

void launch(const void *kernel, int *data, int count);

int main(void) {
  int data[] = {1, 2, 3};
  launch(&scale_kernel, data, 3);
  printf("%d %d %d\n", data[0], data[1], data[2]);
  return 0;
}
