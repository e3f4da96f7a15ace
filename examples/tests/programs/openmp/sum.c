#include <omp.h>

#pragma omp declare target
int weight = 1;
#pragma omp end declare target

int sum(const int *data, int count, int *on_host) {
  int sum = 0;
#pragma omp target map(to : data[ : count]) map(tofrom : sum, on_host[ : 1])
  {
    *on_host = omp_is_initial_device();
    for (int i = 0; i < count; ++i)
      sum += weight * data[i];
  }
  return sum;
}
