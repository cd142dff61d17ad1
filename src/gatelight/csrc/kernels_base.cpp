#define GL_PATH base
#define GL_LANES 4
#include "path.inc"

GL_KERNELS(base);
