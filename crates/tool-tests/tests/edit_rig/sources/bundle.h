// What the stand-in knows of HIP and of its bundles: part of runtime.c. Like HIP's runtime it finds out by /proc/self/maps
// where bundles lie in a file, and what lies there has to be the same.

#include <fcntl.h>
#include <unistd.h>

#define API(name) __hip##name
#define LAUNCH hipLaunchKernel
#define CONTAINER "bundle"

enum { PAGE = 4096, ALIGNMENT = PAGE };

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
  uint64_t at = (uint64_t)start, end = at + size;
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
      tell("mapped as %s %s\n", mode, path);
      break;
    }
    offset += at - low;
    if (!first_path[0]) {
      strcpy(first_path, path);
      first_offset = offset;
    } else if (strcmp(path, first_path) || offset != first_offset + (at - (uint64_t)start)) {
      tell("not in one piece\n");
      break;
    }
    int file = open(path, O_RDONLY);
    while (at < high && at < end) {
      uint64_t count = end - at < PAGE ? end - at : PAGE;
      // The end of a page behind the end of the file is zeros.
      memset(buffer, 0, PAGE);
      if (pread(file, buffer, count, offset) <= 0 || memcmp(buffer, (const void *)at, count)) {
        tell("not what its file has at %llx\n", offset);
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

// How many bytes at this place are the bundle: none if something is wrong.
static uint64_t checked_size(const unsigned char *bundle) {
  uint64_t size = size_of(bundle);
  return size && is_of_file(bundle, size < PAGE ? PAGE : size) ? size : 0;
}

// Whether the device code is in kernel packs.
static int is_split(const struct Wrapper *wrapper) { return !memcmp(&wrapper->magic, "HIPK", 4); }

static void tell_wrapper(int number, const struct Wrapper *wrapper) {
  const char *magic = (const char *)&wrapper->magic;
  if (is_split(wrapper))
    tell("bundle %d: magic %.4s, version %u, index %llu\n", number, magic, wrapper->version,
         (unsigned long long)(uintptr_t)wrapper->last);
  else
    tell("bundle %d: magic %.4s, version %u, unused %d\n", number, magic, wrapper->version, wrapper->last != 0);
}

// All that the wrapper leads to is the bundle, or the marker: the length of that is told by itself, so that all up to the
// end of its page is taken.
static void dump_all(const struct Wrapper *wrapper) {
  if (!is_split(wrapper)) {
    dump(wrapper->container);
    return;
  }
  uint64_t size = PAGE - (uintptr_t)wrapper->container % PAGE;
  dump_bytes(wrapper->container, is_of_file(wrapper->container, size) ? size : 0);
}
