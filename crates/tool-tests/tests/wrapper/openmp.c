#include <omp.h>
#include <stdio.h>

#pragma omp declare target
int table[4] = {1, 2, 3, 4};
#pragma omp end declare target

int main(void) {
  int on_host = 1, sum = 0;
#pragma omp target map(from : on_host) map(tofrom : sum)
  {
    on_host = omp_is_initial_device();
    for (int i = 0; i < 4; ++i)
      sum += table[i] * (i + 1);
  }
  printf("on the %s: %d\n", on_host ? "host" : "device", sum);
  return on_host;
}
