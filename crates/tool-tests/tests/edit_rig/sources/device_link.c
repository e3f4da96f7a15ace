// Registers linked device code, when all units with relocatable device code have come. In CUDA's compiler this is made by
// the link of device code. `units.h` names the units, in a macro for each, as nvlink writes it.

typedef void Callback(void **);

struct Wrapper {
  int magic, version;
  const void *fatbinary;
  void *prelinked;
};

void **__cudaRegisterFatBinary(const struct Wrapper *);
void __cudaRegisterFatBinaryEnd(void **);
void __cudaUnregisterFatBinary(void **);

static void register_unit(Callback *register_globals, const struct Wrapper *wrapper);

#define DEFINE_REGISTER_FUNC(unit)                                                                                     \
  void __cudaRegisterLinkedBinary##unit(Callback *register_globals, const struct Wrapper *wrapper, const void *id,     \
                                        void *unused) {                                                                \
    register_unit(register_globals, wrapper);                                                                          \
  }
#include "units.h"

__asm__(".pushsection .nv_fatbin,\"a\",@progbits\n"
        ".p2align 3\n"
        "linked_fatbinary:\n"
        ".incbin \"linked.fatbin\"\n"
        ".popsection");
extern const char linked_fatbinary[] __attribute__((visibility("hidden")));

// Ends with a null pointer.
static const void *prelinked[NUM_PRELINKED_OBJECTS + 1];
static struct Wrapper wrapper_of_all
    __attribute__((section(".nvFatBinSegment"))) = {0x466243b1, 2, linked_fatbinary, prelinked};
static Callback *callbacks[NUM_PRELINKED_OBJECTS];
static int units;
static void **handle;

static void register_unit(Callback *register_globals, const struct Wrapper *wrapper) {
  prelinked[units] = wrapper->fatbinary;
  callbacks[units++] = register_globals;
  if (units < NUM_PRELINKED_OBJECTS)
    return;
  handle = __cudaRegisterFatBinary(&wrapper_of_all);
  for (int i = 0; i < units; ++i)
    callbacks[i](handle);
  __cudaRegisterFatBinaryEnd(handle);
}

__attribute__((destructor)) static void unregister(void) { __cudaUnregisterFatBinary(handle); }
