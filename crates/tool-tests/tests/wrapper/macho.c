// A program around registration code in Mach-O, without headers of Apple: entries, a runtime that says what it is called
// with, and what it needs of the C library. `macho_loader.c` runs it.
typedef unsigned long long u64;

struct entry {
  u64 reserved;
  unsigned short version, kind;
  unsigned flags;
  void *address;
  const char *name;
  u64 size, data;
  void *auxiliary;
};

int kernel, variable = 1, managed = 2, surface, texture;
void *pointer;

// Linkers drop sections of the segment, so that the bounds would be those of nothing.
__attribute__((used)) const struct entry entries[6] __asm("section$start$__LLVM$offload_entries") = {
    {0, 1, KIND, 0, &kernel, "kernel", 0, 0, 0},
    {0, 1, 1, 0, &kernel, "of another kind", 0, 0, 0},
    {0, 1, KIND, 24, &variable, "variable", 4, 0, 0},
    {0, 1, KIND, 1, &managed, "managed", 4, 16, &pointer},
    {0, 1, KIND, 10, &surface, "surface", 4, 2, 0},
    {0, 1, KIND, 35, &texture, "texture", 4, 3, 0},
};
__asm(".globl section$end$__LLVM$offload_entries\n"
      "section$end$__LLVM$offload_entries = section$start$__LLVM$offload_entries + 6 * 56\n");

// Given by the loader. Functions with a variable number of arguments are not alike on all systems.
void (*put)(const char *);

static void text(const char *value) {
  put(" ");
  put(value);
}

static void number(u64 value) {
  char digits[24];
  char *at = digits + 23;
  *at = 0;
  do {
    *--at = '0' + value % 10;
    value /= 10;
  } while (value);
  text(at);
}

static void address(const void *value) {
  text(value == &kernel     ? "&kernel"
       : value == &variable ? "&variable"
       : value == &managed  ? "&managed"
       : value == &surface  ? "&surface"
       : value == &texture  ? "&texture"
       : value == &pointer  ? "&pointer"
       : value              ? "?"
                            : "null");
}

struct fatbinary {
  unsigned magic, version;
  const unsigned char *image;
  void *unused;
};

static void (*at_exit)(void);
int atexit(void (*function)(void)) {
  at_exit = function;
  return 0;
}

#define NAME(suffix) PASTE(RUNTIME, suffix)
#define PASTE(a, b) PASTE_(a, b)
#define PASTE_(a, b) a##b

void *NAME(RegisterFatBinary)(const struct fatbinary *binary) {
  put("register");
  number(binary->magic);
  number(binary->version);
  for (int index = 0; index < 16; index++)
    number(binary->image[index]);
  address(binary->unused);
  put("\n");
  return &pointer;
}
void NAME(RegisterFatBinaryEnd)(void *handle) {
  put("end");
  address(handle);
  put("\n");
}
void NAME(UnregisterFatBinary)(void *handle) {
  put("unregister");
  address(handle);
  put("\n");
}
int NAME(RegisterFunction)(void *handle, void *host, const char *device, const char *name, int limit, void *a, void *b,
                           void *c, void *d, void *e) {
  put("function");
  address(handle);
  address(host);
  text(device);
  text(name);
  number(-limit);
  address(a);
  address(b);
  address(c);
  address(d);
  address(e);
  put("\n");
  return 0;
}
void NAME(RegisterVar)(void *handle, void *host, const char *device, const char *name, int external, u64 size,
                       int constant, int global) {
  put("variable");
  address(handle);
  address(host);
  text(device);
  text(name);
  number(external);
  number(size);
  number(constant);
  number(global);
  put("\n");
}
void NAME(RegisterManagedVar)(void *handle, void *to, void *initial, const char *name, u64 size, int align) {
  put("managed");
  address(handle);
  address(to);
  address(initial);
  text(name);
  number(size);
  number(align);
  put("\n");
}
static void object(void *handle, void *host, const char *device, const char *name, int kind) {
  address(handle);
  address(host);
  text(device);
  text(name);
  number(kind);
}
void NAME(RegisterSurface)(void *handle, void *host, const char *device, const char *name, int kind, int external) {
  put("surface");
  object(handle, host, device, name, kind);
  number(external);
  put("\n");
}
void NAME(RegisterTexture)(void *handle, void *host, const char *device, const char *name, int kind, int normalized,
                           int external) {
  put("texture");
  object(handle, host, device, name, kind);
  number(normalized);
  number(external);
  put("\n");
}

int main(void) {
  put("main\n");
  at_exit();
  return 0;
}
