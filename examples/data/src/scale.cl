// The OpenCL twin of scale.hip, for SPIR-V.
__kernel void scale(__global float *data, float factor) {
  data[0] *= factor;
}
