// Says what a file answers: a shared object (-DLOADER), or the program that this is linked into. Also what it sees
// of itself in memory: its build ID.

#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <string.h>
#ifdef LOADER
#include <dlfcn.h>
#endif

static void say(void (*answers)(char *, unsigned long)) {
  // Twice: what is counted is counted.
  for (int i = 0; i < 2; ++i) {
    char text[1000] = "";
    answers(text, sizeof text);
    fputs(text, stdout);
  }
}

// The build ID of the file that holds an address, as debuggers and profilers find it.
static int build_id(struct dl_phdr_info *info, size_t size, void *address) {
  int inside = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) *header = &info->dlpi_phdr[i];
    inside |= header->p_type == PT_LOAD && (ElfW(Addr))address - info->dlpi_addr - header->p_vaddr < header->p_memsz;
  }
  for (int i = 0; inside && i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) *header = &info->dlpi_phdr[i];
    const char *note = (const char *)info->dlpi_addr + header->p_vaddr, *end = note + header->p_memsz;
    while (header->p_type == PT_NOTE && note < end) {
      const ElfW(Nhdr) *head = (const ElfW(Nhdr) *)note;
      const char *name = note + sizeof *head, *value = name + (head->n_namesz + 3) / 4 * 4;
      if (head->n_type == NT_GNU_BUILD_ID && head->n_namesz == 4 && !memcmp(name, "GNU", 4)) {
        fputs("build ID ", stdout);
        for (unsigned byte = 0; byte < head->n_descsz; ++byte)
          printf("%02x", (unsigned char)value[byte]);
        puts("");
      }
      note = value + (head->n_descsz + 3) / 4 * 4;
    }
  }
  return inside;
}

#ifdef LOADER
int main(int argc, char **argv) {
  void *file = dlopen(argv[1], RTLD_NOW);
  void *answers = file ? dlsym(file, "answers") : 0;
  if (!answers) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  say((void (*)(char *, unsigned long))answers);
  dl_iterate_phdr(build_id, answers);
  return dlclose(file);
}
#else
void answers(char *, unsigned long);
int main(void) {
  say(answers);
  dl_iterate_phdr(build_id, (void *)answers);
  return 0;
}
#endif
