// The SIMD paths and which one runs. Every part has kernels for each path; this is the one place that chooses.
#pragma once

namespace gatelight {

struct ParameterKernels;
struct DenseKernels;
struct ConvKernels;
struct Interpreter;

// What the parts' kernels.cpp define.
#define GL_DECLARE_PATH(name)                       \
  namespace name {                                  \
  extern const ParameterKernels parameter_kernels;  \
  extern const DenseKernels dense_kernels;          \
  extern const ConvKernels conv_kernels;            \
  extern const Interpreter interpreter;             \
  }
GL_DECLARE_PATH(base)
#if defined(GL_HAVE_X86)
GL_DECLARE_PATH(avx2)
GL_DECLARE_PATH(avx512)
#endif

struct Path {
  const char* name;
  const ParameterKernels& parameters;
  const DenseKernels& dense;
  const ConvKernels& conv;
  const Interpreter& interpreter;
};

// The best path of this processor, or the one chosen by select_path() or the environment variable GATELIGHT_SIMD.
const Path& path();
bool select_path(const char* name);
// The path of this name; null if there is none or this processor cannot run it.
const Path* find_path(const char* name);
// The names of all that it can run, best first, separated by spaces.
const char* path_names();

}  // namespace gatelight
