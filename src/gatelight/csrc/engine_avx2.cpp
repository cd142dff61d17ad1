#define GL_PATH avx2
#define GL_BYTES 32
#include "engine_path.inc"

GL_ENGINE(avx2);
