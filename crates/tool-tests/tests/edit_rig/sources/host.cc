// Host code that gives wrong answers, or none, when something besides the device code of its file was changed.
// C++, or C where there is no C++ library.

#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
#include <map>
#include <stdexcept>
#include <string>
#define EXTERN extern "C"
#define THREAD_LOCAL thread_local
#else
#define EXTERN
#define THREAD_LOCAL _Thread_local
#endif

static THREAD_LOCAL volatile int counter = 41;
static THREAD_LOCAL char thread_zeros[3000];
static char zeros[100000];
static int constructed;
// Relocated, and read-only then.
static const char *const words[] = {"zero", "one", "two", "three"};
// Not where zeros are, and not relocated.
static volatile int data[] = {2, 3, 5, 7, 11, 13};

__attribute__((constructor)) static void construct(void) { constructed = 17; }

static int sum(const char *bytes, int length) {
  int sum = 0;
  for (int i = 0; i < length; ++i)
    sum += bytes[i];
  return sum;
}

#ifdef __cplusplus
namespace {
struct Shape {
  virtual ~Shape() {}
  virtual int corners() const = 0;
};
struct Square : Shape {
  int corners() const override { return 4; }
};
struct Circle : Shape {
  int corners() const override { throw std::out_of_range("a circle has none"); }
};
std::map<std::string, int> table{{"a", 1}, {"b", 2}};

__attribute__((noinline)) int corners(const Shape &shape) { return shape.corners(); }
} // namespace
#endif

// Only where a unit has it.
EXTERN __attribute__((weak)) const char *referred_container(void);
// In every file.
EXTERN void launch0(void);

// Puts the answers into `text`.
EXTERN void answers(char *text, unsigned long size) {
  ++counter;
  int length = snprintf(text, size, "tls %d %d\nbss %d\ndata %d\nconstructor %d\nrelocated %s\n", counter,
                        sum(thread_zeros, sizeof thread_zeros), sum(zeros, sizeof zeros), data[counter % 6],
                        constructed, words[data[1]]);
  if (referred_container) {
    const char *found = referred_container();
    int is_container = !memcmp(found, "__CLANG_OFFLOAD_BUNDLE__", 24) || !memcmp(found, "CCOB", 4) ||
                       !memcmp(found, "\x50\xed\x55\xba", 4);
    length += snprintf(text + length, size - length, "is it a container? %d\n", is_container);
  }
  launch0();
  memset(zeros, 1, sizeof zeros);
  memset(thread_zeros, 1, sizeof thread_zeros);
#ifdef __cplusplus
  std::string caught = "nothing";
  try {
    corners(Circle());
  } catch (const std::out_of_range &error) {
    caught = error.what();
  }
  snprintf(text + length, size - length, "table %d\nsquare %d\ncaught %s\n", table["b"], corners(Square()),
           caught.c_str());
#endif
}
