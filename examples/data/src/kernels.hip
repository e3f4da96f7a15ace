// Kernels that use resources of many kinds. With -DOLD they are those of an earlier release.
#include "hip-minimal.h"
#ifdef OLD
#define BINS 8
#else
#define BINS 16
#endif
#define LAUNCH(...) __attribute__((amdgpu_flat_work_group_size(__VA_ARGS__)))
#define REGISTERS(n) __attribute__((amdgpu_num_vgpr(n)))

// Local memory, and a name of C++.
template <typename T, int N> __global__ void reverse(T *data) {
  __attribute__((shared)) static T tile[N];
  int at = __builtin_amdgcn_workitem_id_x();
  tile[at] = data[at];
  __builtin_amdgcn_s_barrier();
  data[at] = tile[N - 1 - at];
}
template __global__ void reverse<float, 64>(float *);
#ifdef OLD
template __global__ void reverse<int, 64>(int *);
#else
template __global__ void reverse<double, 64>(double *);
#endif

// Limits of a work-group, and values that stay in registers.
extern "C" __global__ LAUNCH(1, 64) void histogram(int *data) {
  int bins[BINS];
  for (int i = 0; i < BINS; i++) bins[i] = 0;
#pragma clang loop unroll(disable)
  for (int i = 0; i < 64; i++) bins[data[i] & (BINS - 1)]++;
  for (int i = 0; i < BINS; i++) data[i] = bins[i];
}

#ifndef OLD
// More values at a time than registers.
extern "C" __global__ REGISTERS(16) void spill(float *data) {
  float v[40];
  int at = __builtin_amdgcn_workitem_id_x();
#pragma clang loop unroll(full)
  for (int i = 0; i < 40; i++) v[i] = data[40 * at + i];
  __builtin_amdgcn_s_barrier();
#pragma clang loop unroll(full)
  for (int i = 0; i < 40; i++) data[40 * at + i] = v[39 - i];
}
#endif

// Recursion: the stack is not known.
__attribute__((noinline, device)) static int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
extern "C" __global__ void recurse(int *data) { data[0] = fibonacci(data[1]); }
