// A stand-in for the HIP runtime, or with -DCUDA for the CUDA runtime. It writes what is registered to the directory
// $RIG_OUT: `log`, what is called in which order, and `container-N`, the bytes that a runtime would take for the Nth bundle
// or fatbinary, or marker of kernel packs, that it is led to.

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 1000 };

struct Wrapper {
  uint32_t magic, version;
  const unsigned char *container;
  void *last;
};

struct Handle {
  int number;
  struct Wrapper *wrapper;
};

struct Function {
  int number;
  const void *host;
  const char *name;
};

static struct Handle handles[MOST];
static struct Function functions[MOST];
static int registered, functions_registered, dumped;
static FILE *file_log;

static FILE *open_out(const char *name) {
  char path[5000];
  const char *directory = getenv("RIG_OUT");
  snprintf(path, sizeof path, "%s/%s", directory ? directory : ".", name);
  FILE *file = fopen(path, "w");
  if (!file) {
    perror(path);
    _exit(100);
  }
  return file;
}

static void tell(const char *format, ...) {
  if (!file_log)
    file_log = open_out("log");
  va_list arguments;
  va_start(arguments, format);
  vfprintf(file_log, format, arguments);
  va_end(arguments);
  fflush(file_log);
}

static uint64_t number(const unsigned char *bytes, int count) {
  uint64_t value = 0;
  while (count--)
    value = value << 8 | bytes[count];
  return value;
}

// Writes bytes to a file of their own, and returns its number.
static int dump_bytes(const unsigned char *bytes, uint64_t size);
// The same for the container at this address.
static int dump(const unsigned char *container);

#ifdef CUDA
#include "fatbinary.h"
#else
#include "bundle.h"
#endif

static int dump_bytes(const unsigned char *bytes, uint64_t size) {
  int number = dumped++;
  char name[50];
  snprintf(name, sizeof name, "container-%d", number);
  FILE *out = open_out(name);
  fwrite(bytes, 1, size, out);
  fclose(out);
  return number;
}

static int dump(const unsigned char *container) {
  if ((uintptr_t)container % ALIGNMENT)
    tell(CONTAINER " %d not aligned\n", dumped);
  return dump_bytes(container, checked_size(container));
}

void **API(RegisterFatBinary)(const void *data) {
  struct Handle *handle = &handles[registered++];
  handle->number = dumped;
  handle->wrapper = (struct Wrapper *)data;
  tell_wrapper(handle->number, handle->wrapper);
  dump_all(handle->wrapper);
  return (void **)handle;
}

// Host addresses are told relative to the wrapper: an edit moves neither.
static long relative(struct Handle *handle, const void *address) {
  return (const char *)address - (const char *)handle->wrapper;
}

void API(RegisterFunction)(void **handle, const void *host, char *device, const char *name, int limit, void *tid,
                           void *bid, void *block, void *grid, int *size) {
  struct Handle *of = (struct Handle *)handle;
  functions[functions_registered++] = (struct Function){of->number, host, name};
  tell(CONTAINER " %d: function %s at %ld\n", of->number, name, relative(of, host));
}

void API(RegisterVar)(void **handle, char *host, char *device, const char *name, int is_extern, size_t size,
                      int constant, int global) {
  struct Handle *of = (struct Handle *)handle;
  tell(CONTAINER " %d: variable %s at %ld, size %zu, flags %d %d %d\n", of->number, name, relative(of, host), size,
       is_extern, constant, global);
}

void API(UnregisterFatBinary)(void **handle) {
  struct Handle *of = (struct Handle *)handle;
  tell(CONTAINER " %d: unregistered\n", of->number);
}

void API(RegisterManagedVar)(void **handle, void **pointer, void *init, const char *name, size_t size, unsigned align) {}
void API(RegisterSurface)(void **handle, char *host, char *device, const char *name, int type, int is_extern) {}
void API(RegisterTexture)(void **handle, char *host, char *device, const char *name, int type, int normalized,
                          int is_extern) {}
int API(PopCallConfiguration)(void *grid, void *block, size_t *shared, void *stream) { return 0; }
int API(PushCallConfiguration)(uint64_t a, uint64_t b, size_t c, void *d) { return 0; }
int LAUNCH(const void *kernel, uint64_t a, uint64_t b, uint64_t c, uint64_t d, void **arguments, size_t shared,
           void *stream) {
  for (int i = 0; i < functions_registered; ++i)
    if (functions[i].host == kernel)
      tell(CONTAINER " %d: %s launched\n", functions[i].number, functions[i].name);
  return 0;
}
