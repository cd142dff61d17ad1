#define GL_PATH avx512
#define GL_LANES 16
#include "path.inc"

GL_KERNELS(avx512);
