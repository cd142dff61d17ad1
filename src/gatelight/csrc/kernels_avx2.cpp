#define GL_PATH avx2
#define GL_LANES 8
#include "path.inc"

GL_KERNELS(avx2);
