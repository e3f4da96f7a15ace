// A translation unit with a kernel and two tables for each GPU: one that is the same for all GPUs, one that is not.
// -DUNIT=number -DWORDS=length, and -DREFERENCE for a function that says where the bundle is: code that refers to it, as
// no compiler writes it.

#define __device__ __attribute__((device))
#define __global__ __attribute__((global))

struct dim3 {
  unsigned x, y, z;
};
extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, __SIZE_TYPE__, struct ihipStream_t *);

#ifndef __amdgcn_target_id__
#define __amdgcn_target_id__ "spirv"
#endif

struct Table {
  unsigned long long words[WORDS];
};

constexpr unsigned long long seed(const char *text) {
  unsigned long long state = UNIT + 1;
  while (*text)
    state = (state ^ static_cast<unsigned char>(*text++)) * 0x100000001b3;
  return state;
}

constexpr Table fill(unsigned long long state) {
  Table table{};
  for (auto &word : table.words) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    word = state;
  }
  return table;
}

#define NAME_(name, unit) name##unit
#define NAME(name, unit) NAME_(name, unit)

__device__ Table NAME(alike, UNIT) = fill(seed("alike"));
__device__ Table NAME(own, UNIT) = fill(seed(__amdgcn_target_id__));

extern "C" __global__ void NAME(kernel, UNIT)(unsigned long long *out) {
  *out = NAME(alike, UNIT).words[WORDS / 2] ^ NAME(own, UNIT).words[WORDS / 3];
}

#if defined(REFERENCE) && !defined(__HIP_DEVICE_COMPILE__)
asm(".pushsection .hip_fatbin,\"a\",@progbits\n"
    ".p2align 12\n"
    ".globl reference\n"
    ".hidden reference\n"
    "reference:\n"
    ".popsection");
extern "C" const char reference[] __attribute__((visibility("hidden")));
extern "C" const char *referred_bundle() { return reference; }
#endif
