#define GL_PATH avx512
#define GL_BYTES 64
#include "engine_path.inc"

GL_ENGINE(avx512);
