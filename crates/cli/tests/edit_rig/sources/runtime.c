// A stand-in for the HIP runtime. It writes what is registered to the directory $RIG_OUT: `log`, what is called in
// which order, and `bundle-N`, the bytes that a runtime would take for the bundle at the Nth registered address.
// Like a runtime it finds out by /proc/self/maps where they lie in a file, and what lies there has to be the same.

#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = 4096, MOST = 1000 };

struct Wrapper {
  uint32_t magic, version;
  const unsigned char *bundle;
  void *unused;
};

struct Handle {
  int number;
  struct Wrapper *wrapper;
};

static struct Handle handles[MOST];
static int registered;
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

// How many bytes the bundle has, by what runtimes go by: the last entry, or the total size.
static uint64_t size_of(const unsigned char *bundle) {
  if (!memcmp(bundle, "CCOB", 4))
    return number(bundle + 8, number(bundle + 4, 2) == 2 ? 4 : 8);
  if (memcmp(bundle, "__CLANG_OFFLOAD_BUNDLE__", 24)) {
    tell("no magic\n");
    return 0;
  }
  uint64_t count = number(bundle + 24, 8), at = 32, end = 0, greatest = 0;
  for (uint64_t i = 0; i < count; ++i) {
    // What runtimes hand to their lookup is one page.
    if (at + 24 > PAGE || at + 24 + number(bundle + at + 16, 8) > PAGE) {
      tell("descriptor %llu beyond the first page\n", (unsigned long long)i);
      return 0;
    }
    uint64_t offset = number(bundle + at, 8), size = number(bundle + at + 8, 8);
    if (size && offset % PAGE)
      tell("code object %llu not at a page\n", (unsigned long long)i);
    end = offset + size;
    greatest = end > greatest ? end : greatest;
    at += 24 + number(bundle + at + 16, 8);
  }
  if (greatest != end)
    tell("the last code object does not end last\n");
  return end;
}

// Whether a file holds the same bytes where /proc/self/maps says it does. Tells why not.
static int is_of_file(const unsigned char *start, uint64_t size) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[5000], path[4096], first_path[4096] = "";
  uint64_t at = (uint64_t)start, end = at + (size < PAGE ? PAGE : size);
  unsigned char buffer[PAGE];
  uint64_t first_offset = 0;
  while (at < end && maps && fgets(line, sizeof line, maps)) {
    unsigned long long low, high, offset;
    char mode[8];
    path[0] = 0;
    if (sscanf(line, "%llx-%llx %7s %llx %*s %*s %4095[^\n]", &low, &high, mode, &offset, path) < 4 || at < low ||
        at >= high)
      continue;
    if (mode[0] != 'r' || path[0] != '/') {
      tell("bundle mapped as %s %s\n", mode, path);
      break;
    }
    offset += at - low;
    if (!first_path[0]) {
      strcpy(first_path, path);
      first_offset = offset;
    } else if (strcmp(path, first_path) || offset != first_offset + (at - (uint64_t)start)) {
      tell("bundle not in one piece\n");
      break;
    }
    int file = open(path, O_RDONLY);
    while (at < high && at < end) {
      uint64_t count = end - at < PAGE ? end - at : PAGE;
      // The end of a page behind the end of the file is zeros.
      memset(buffer, 0, PAGE);
      if (pread(file, buffer, count, offset) <= 0 || memcmp(buffer, (const void *)at, count)) {
        tell("bundle is not what its file has at %llx\n", offset);
        close(file);
        fclose(maps);
        return 0;
      }
      at += count;
      offset += count;
    }
    close(file);
  }
  if (maps)
    fclose(maps);
  if (at < end)
    tell("%llx bytes from byte %llx on are not mapped\n", (unsigned long long)(end - at),
         (unsigned long long)(at - (uint64_t)start));
  return at >= end;
}

void **__hipRegisterFatBinary(const void *data) {
  struct Handle *handle = &handles[registered];
  handle->number = registered++;
  handle->wrapper = (struct Wrapper *)data;
  tell("bundle %d: magic %.4s, version %u, unused %d\n", handle->number, (const char *)&handle->wrapper->magic,
       handle->wrapper->version, handle->wrapper->unused != 0);
  if ((uintptr_t)handle->wrapper->bundle % PAGE)
    tell("bundle %d not at a page\n", handle->number);
  char name[50];
  snprintf(name, sizeof name, "bundle-%d", handle->number);
  FILE *out = open_out(name);
  uint64_t size = size_of(handle->wrapper->bundle);
  if (size && is_of_file(handle->wrapper->bundle, size))
    fwrite(handle->wrapper->bundle, 1, size, out);
  fclose(out);
  return (void **)handle;
}

// Host addresses are told relative to the wrapper: an edit moves neither.
static long relative(struct Handle *handle, const void *address) {
  return (const char *)address - (const char *)handle->wrapper;
}

void __hipRegisterFunction(void **handle, const void *host, char *device, const char *name, int limit, void *tid,
                           void *bid, void *block, void *grid, int *size) {
  struct Handle *of = (struct Handle *)handle;
  tell("bundle %d: function %s at %ld\n", of->number, name, relative(of, host));
}

void __hipRegisterVar(void **handle, char *host, char *device, const char *name, int is_extern, size_t size,
                      int constant, int global) {
  struct Handle *of = (struct Handle *)handle;
  tell("bundle %d: variable %s at %ld, size %zu, flags %d %d %d\n", of->number, name, relative(of, host), size,
       is_extern, constant, global);
}

void __hipUnregisterFatBinary(void **handle) {
  struct Handle *of = (struct Handle *)handle;
  tell("bundle %d: unregistered\n", of->number);
}

void __hipRegisterManagedVar(void **handle, void **pointer, void *init, const char *name, size_t size, unsigned align) {}
void __hipRegisterSurface(void **handle, char *host, char *device, const char *name, int type, int is_extern) {}
void __hipRegisterTexture(void **handle, char *host, char *device, const char *name, int type, int normalized,
                          int is_extern) {}
int __hipPopCallConfiguration(void *grid, void *block, size_t *shared, void *stream) { return 0; }
int __hipPushCallConfiguration(uint64_t a, uint64_t b, size_t c, void *d) { return 0; }
int hipLaunchKernel(const void *kernel, uint64_t a, uint64_t b, uint64_t c, uint64_t d, void **arguments, size_t shared,
                    void *stream) {
  return 0;
}
