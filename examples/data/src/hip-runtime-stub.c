// Stands in for the HIP runtime, so that the Windows DLL links without one. Every function does
// nothing.
void **__hipRegisterFatBinary(const void *wrapper) { return 0; }
void __hipUnregisterFatBinary(void **modules) {}
void __hipRegisterFunction(void **modules, const void *stub, char *name, const char *device_name,
                           unsigned limit, void *a, void *b, void *c, void *d, int *e) {}
int __hipPopCallConfiguration(void *grid, void *block, void *shared, void *stream) { return 0; }
int hipLaunchKernel(const void *kernel, void *grid, void *block, void **arguments,
                    unsigned long long shared, void *stream) {
  return 0;
}
int atexit(void (*function)(void)) { return 0; }

// The C runtime defines this for code that uses floating point.
int _fltused = 1;
