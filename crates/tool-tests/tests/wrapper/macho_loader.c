// Runs a Mach-O program that needs no libraries: puts its segments where they want to be, runs its initializers, then the
// function at LC_MAIN. Arguments: the file, and the address of the variable that takes the function that prints.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void put(const char *text) { fputs(text, stdout); }

int main(int count, char **arguments) {
  static char file[1 << 20];
  int descriptor = open(arguments[1], O_RDONLY);
  if (count != 3 || read(descriptor, file, sizeof file) < 32)
    return 1;
  uint64_t base = 0, main_offset = 0, initializers = 0, initializers_size = 0;
  uint32_t commands, size;
  memcpy(&commands, file + 16, 4);
  char *command = file + 32;
  for (uint32_t index = 0; index < commands; index++, command += size) {
    uint32_t kind, sections;
    memcpy(&kind, command, 4);
    memcpy(&size, command + 4, 4);
    if (kind == (0x28 | 0x80000000)) // LC_MAIN
      memcpy(&main_offset, command + 8, 8);
    if (kind != 0x19) // LC_SEGMENT_64
      continue;
    uint64_t place[4]; // address, size, offset in the file, size in the file
    memcpy(place, command + 24, sizeof place);
    if (!strcmp(command + 8, "__TEXT"))
      base = place[0];
    if (place[1] == 0 || !strcmp(command + 8, "__PAGEZERO"))
      continue;
    void *memory = mmap((void *)place[0], place[1], PROT_READ | PROT_WRITE | PROT_EXEC,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory != (void *)place[0])
      return 2;
    memcpy(memory, file + place[2], place[3]);
    __builtin___clear_cache(memory, (char *)memory + place[3]);
    memcpy(&sections, command + 64, 4);
    for (char *section = command + 72; sections--; section += 80) {
      uint32_t flags;
      memcpy(&flags, section + 64, 4);
      if ((flags & 0xff) == 9) { // S_MOD_INIT_FUNC_POINTERS
        memcpy(&initializers, section + 32, 8);
        memcpy(&initializers_size, section + 40, 8);
      }
    }
  }
  *(void (**)(const char *))strtoull(arguments[2], 0, 16) = put;
  for (uint64_t at = 0; at < initializers_size; at += 8)
    (*(void (**)(void))(initializers + at))();
  return ((int (*)(void))(base + main_offset))();
}
