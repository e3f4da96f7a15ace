// One thread per element: multiply by a constant.
#include "hip-minimal.h"

extern "C" __global__ void scale(float *data, float factor) {
  data[__builtin_amdgcn_workitem_id_x()] *= factor;
}
