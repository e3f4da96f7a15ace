// The CUDA twin of scale.hip, for device bitcode and PTX; needs no CUDA installation.
extern "C" __attribute__((global)) void scale(float *data, float factor) {
  data[__nvvm_read_ptx_sreg_tid_x()] *= factor;
}
