#define GL_PATH avx512
#define GL_LANES 16
#include "conv_path.inc"

GL_CONV_KERNELS(avx512);
