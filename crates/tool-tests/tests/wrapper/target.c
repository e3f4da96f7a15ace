// Each sort of entries that OpenMP has.
#pragma omp requires unified_shared_memory

#pragma omp begin declare target
int variable = 3;
#pragma omp end declare target

int linked;
#pragma omp declare target link(linked)

#pragma omp begin declare target indirect
void indirect(void) {}
#pragma omp end declare target

int sum(int value) {
  int sum = 0;
#pragma omp target map(tofrom : sum)
  sum += value + variable + linked;
  return sum;
}
