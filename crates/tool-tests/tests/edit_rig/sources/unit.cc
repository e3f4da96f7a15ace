// A translation unit of HIP or CUDA, with a kernel and two tables for each GPU: one that is the same for all GPUs, one that
// is not. -DUNIT=number -DWORDS=length; -DREFERENCE for a function that says where the device code is: code that refers to
// it, as no compiler writes it; -DALIGN=power of two for device code that is aligned to more than it needs.

#define __device__ __attribute__((device))
#define __global__ __attribute__((global))

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x) : x(x), y(1), z(1) {}
};

#define TEXT_(text) #text
#define TEXT(text) TEXT_(text)

#ifdef __HIP__
extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, __SIZE_TYPE__, struct ihipStream_t *);
extern "C" int __hipPushCallConfiguration(dim3, dim3, __SIZE_TYPE__ = 0, struct ihipStream_t * = 0);
#define SECTION ".hip_fatbin"
#define ALIGNMENT "12"
#ifdef __amdgcn_target_id__
#define TARGET __amdgcn_target_id__
#else
#define TARGET "spirv"
#endif
#ifdef __HIP_DEVICE_COMPILE__
#define IS_DEVICE
#endif
#else
extern "C" int cudaLaunchKernel(const void *, dim3, dim3, void **, __SIZE_TYPE__, struct CUstream_st *);
extern "C" int __cudaPushCallConfiguration(dim3, dim3, __SIZE_TYPE__ = 0, struct CUstream_st * = 0);
// The older name: clang looks for it where it compiles for a GPU.
extern "C" int cudaConfigureCall(dim3, dim3, __SIZE_TYPE__ = 0, struct CUstream_st * = 0);
#define SECTION ".nv_fatbin"
#define ALIGNMENT "3"
#ifdef __CUDA_ARCH__
#define TARGET TEXT(__CUDA_ARCH__)
#define IS_DEVICE
#else
#define TARGET "host"
#endif
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
__device__ Table NAME(own, UNIT) = fill(seed(TARGET));

extern "C" __global__ void NAME(kernel, UNIT)(unsigned long long *out) {
  *out = NAME(alike, UNIT).words[WORDS / 2] ^ NAME(own, UNIT).words[WORDS / 3];
}

// Host code that launches it.
extern "C" void NAME(launch, UNIT)() { NAME(kernel, UNIT)<<<1, 1>>>(nullptr); }

#if defined(REFERENCE) && !defined(IS_DEVICE)
asm(".pushsection " SECTION ",\"a\",@progbits\n"
    ".p2align " ALIGNMENT "\n"
    ".globl reference\n"
    ".hidden reference\n"
    "reference:\n"
    ".popsection");
extern "C" const char reference[] __attribute__((visibility("hidden")));
extern "C" const char *referred_container() { return reference; }
#endif

#if defined(ALIGN) && !defined(IS_DEVICE)
asm(".pushsection " SECTION ",\"a\",@progbits\n"
    ".p2align " TEXT(ALIGN) "\n"
    ".popsection");
#endif
