#define GL_PATH avx2
#define GL_LANES 8
#include "conv_path.inc"

GL_CONV_KERNELS(avx2);
