// Loads a library, and stands in for the HIP runtime, which is told about the device code in it.
#include <dlfcn.h>
#include <stdio.h>

struct wrapper {
  unsigned magic, version;
  const char *image;
  void *reserved;
};

void *__hipRegisterFatBinary(struct wrapper *wrapper) {
  printf("%#x: %.4s\n", wrapper->magic, wrapper->image);
  return wrapper;
}

void __hipUnregisterFatBinary(void *module) {}

void __hipRegisterFunction(void *module, const void *stub, const char *name) { printf("%s\n", name); }

// Programs linked by LLVM's means, or ours, refer to all of these.
void __hipRegisterVar(void) {}
void __hipRegisterManagedVar(void) {}
void __hipRegisterSurface(void) {}
void __hipRegisterTexture(void) {}

int __hipPopCallConfiguration(void) { return 0; }

int hipLaunchKernel(void) { return 0; }

// Shared libraries have this from the C library they are linked with; this one was linked without.
int atexit(void (*function)(void)) { return 0; }

int main(int count, char **arguments) {
  if (count != 2 || !dlopen(arguments[1], RTLD_NOW)) {
    puts(dlerror());
    return 1;
  }
  return 0;
}
