// One thread per element: add a constant. The second translation unit of the examples.
#include "hip-minimal.h"

extern "C" __global__ void shift(float *data, float distance) {
  data[__builtin_amdgcn_workitem_id_x()] += distance;
}
