#define GL_PATH base
#define GL_BYTES 16
#include "engine_path.inc"

GL_ENGINE(base);
