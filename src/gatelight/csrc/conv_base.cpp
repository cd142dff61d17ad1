#define GL_PATH base
#define GL_LANES 4
#include "conv_path.inc"

GL_CONV_KERNELS(base);
