// The few HIP declarations that clang needs to compile a kernel and its host stub, so that the
// example files can be built without a HIP installation.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))

typedef int hipError_t;
typedef struct ihipStream_t *hipStream_t;

struct dim3 {
  unsigned x, y, z;
};

extern "C" hipError_t hipLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
                                      __SIZE_TYPE__ shared_memory, hipStream_t stream);
