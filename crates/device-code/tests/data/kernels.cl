__attribute__((noinline)) int twice(int x) { return 2 * x; }

__kernel __attribute__((reqd_work_group_size(64, 2, 1))) void one(__global int *p, char c) {
  volatile __local int group[256];
  group[c] = *p;
  *p = twice(group[c]);
}

__kernel void two(__global int *p) { ++*p; }
