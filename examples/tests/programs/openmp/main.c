#include <omp.h>
#include <stdio.h>

int sum(const int *data, int count, int *on_host);

int main(void) {
  int data[] = {1, 2, 3, 4}, on_host = 1;
  int result = sum(data, 4, &on_host);
#pragma omp target map(tofrom : result)
  result *= 3;
  printf("on the %s: %d\n", on_host ? "host" : "device", result);
  return on_host;
}
