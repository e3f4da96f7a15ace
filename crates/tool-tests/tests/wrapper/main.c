// A program that says when it runs; with an argument it loads a library and unloads it.
#include <stdio.h>

#ifdef LOADER
#include <dlfcn.h>
#endif

int main(int count, char **arguments) {
  setvbuf(stdout, 0, _IONBF, 0);
  puts("main");
#ifdef LOADER
  void *library = dlopen(arguments[1], RTLD_NOW);
  if (!library) {
    puts(dlerror());
    return 1;
  }
  puts("loaded");
  dlclose(library);
  puts("unloaded");
#endif
  return 0;
}
