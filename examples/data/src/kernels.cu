// Kernels for NVIDIA's GPUs: static shared memory, a local array, limits of threads, recursion.
#include "hip-minimal.h"
#define __shared__ __attribute__((shared))
#define THREADS(n) __attribute__((launch_bounds(n)))
typedef unsigned long size_t;

extern "C" __global__ THREADS(128) void reverse(float *data) {
  __shared__ static float tile[128];
  int at = __nvvm_read_ptx_sreg_tid_x();
  tile[at] = data[at];
  __nvvm_bar_sync(0);
  data[at] = tile[127 - at];
}

extern "C" __global__ void histogram(int *data) {
  int bins[16];
  for (int i = 0; i < 16; i++) bins[i] = 0;
#pragma clang loop unroll(disable)
  for (int i = 0; i < 64; i++) bins[data[i] & 15]++;
  for (int i = 0; i < 16; i++) data[i] = bins[i];
}

__attribute__((noinline, device)) static int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
extern "C" __global__ void recurse(int *data) { data[0] = fibonacci(data[1]); }
