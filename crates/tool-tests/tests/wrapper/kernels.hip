// Each sort of entries that HIP has.
#define __device__ __attribute__((device))

typedef struct dim3 {
  unsigned x, y, z;
} dim3;

extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
extern "C" int __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, void **);

__attribute__((global)) void scale(float *values, float factor) { *values *= factor; }

__device__ int variable = 3;
__device__ __attribute__((constant)) int table[4] = {1, 2, 3, 4};
__attribute__((managed)) long long pool = 3;

struct surfaceReference {
  int at;
};
template <class T, int dimensions> struct __attribute__((device_builtin_surface_type)) surface : surfaceReference {};
template <int dimensions>
struct __attribute__((device_builtin_surface_type)) surface<void, dimensions> : surfaceReference {};
surface<void, 2> screen;

struct textureReference {
  int at;
};
template <class T, int dimensions, int mode>
struct __attribute__((device_builtin_texture_type)) texture : textureReference {};
texture<float, 2, 1> picture;
