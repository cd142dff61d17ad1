// The C ABI of the native library. Everything is float32; a table's entry k is the output for the inputs whose bits,
// first input most significant, spell k. Functions return 0 or one of GlStatus and never throw.
#pragma once

#include <stdint.h>

#if defined(_WIN32)
#define GL_API extern "C" __declspec(dllexport)
#else
#define GL_API extern "C" __attribute__((visibility("default")))
#endif

#define GL_ABI_VERSION 4

enum GlStatus { GL_OK = 0, GL_BAD_ARGUMENT = 1, GL_NO_MEMORY = 2 };

// What theta is. The kinds with ST pass gradients straight through (derivative 1).
enum GlKind {
  GL_TABLE = 0,       // the table itself
  GL_SIN = 1,         // 1/2 + 1/2 sin(theta)
  GL_SIN_ST = 2,      // 1/2 + 1/2 sin(clamp(theta, -pi/2, pi/2))
  GL_SIGMOID = 3,     // 1 / (1 + exp(-theta))
  GL_SIGMOID_ST = 4,  // the same value
  GL_LINEAR_ST = 5,   // clamp(theta, 0, 1)
  GL_SOFTMAX = 6,     // softmax over all 2^(2^n) functions, arity 1 to 3; function i has entry k = bit 2^n - 1 - k of i
};

enum GlMode {
  GL_RECOMPUTE = 0,  // forward saves coefficients (few layers) or the activations of three layers; backward reruns it
  GL_KEEP = 1,       // forward saves coefficients and every hidden activation (clusters: every second layer's)
  GL_KEEP_BF16 = 2,  // forward saves coefficients and every hidden activation, rounded to bfloat16
};

struct GlLayer {
  int64_t in, gates;
  int32_t arity, kind;
  const int32_t* fanin;  // [gates, arity], each in [0, in); checked by the caller
  const float* theta;    // [gates, 2^arity], or [gates, 2^(2^arity)] for GL_SOFTMAX
  float* grad_theta;     // backward: as theta; may be null
};

// Row i, column j at data[i * stride + j]; rows are features, or samples where sample_major is set.
struct GlMatrix {
  float* data;
  int64_t stride;
  int32_t sample_major;
};

GL_API int32_t gl_abi_version(void);
// Names of the SIMD paths this machine can run, best first, separated by spaces.
GL_API const char* gl_simd_available(void);
GL_API const char* gl_simd(void);
GL_API int32_t gl_simd_select(const char* name);
GL_API void gl_set_threads(int32_t threads);
GL_API int32_t gl_get_threads(void);
// Ends the threads that wait for work; they come back with the next job.
GL_API void gl_stop_threads(void);

GL_API int32_t gl_table_fwd(int32_t kind, int32_t arity, int64_t gates, const float* theta, float* table);
GL_API int32_t gl_table_bwd(int32_t kind, int32_t arity, int64_t gates, const float* theta, const float* grad_table,
                            float* grad_theta);

// Bytes forward wants for `save`, and bytes of scratch that backward needs with the current number of threads.
GL_API int64_t gl_save_bytes(const GlLayer* layers, int32_t count, int64_t batch, int32_t mode);
GL_API int64_t gl_work_bytes(const GlLayer* layers, int32_t count, int64_t batch, int32_t mode);

// A chain of dense layers: x has layers[0].in features, out [gates, batch] is feature-major. GL_RECOMPUTE runs without
// `save` too: then nothing is left for backward.
GL_API int32_t gl_stack_fwd(const GlLayer* layers, int32_t count, int64_t batch, int32_t mode, GlMatrix x, GlMatrix out,
                            void* save);
// Writes grad_theta of each layer that has one, and grad_x (feature-major) unless its data is null. `save` is what
// forward has filled; GL_RECOMPUTE also runs without it.
GL_API int32_t gl_stack_bwd(const GlLayer* layers, int32_t count, int64_t batch, int32_t mode, GlMatrix x,
                            GlMatrix grad_out, GlMatrix grad_x, const void* save);

// One convolutional layer: every output channel is a complete tree of gates over a window, with max-pooling of
// pool x pool positions after it (1: none).
struct GlConv {
  int64_t channels, height, width;           // of the input
  int32_t kernel, padding, stride, pool;     // the window's side, zeros around the image, steps, the pooling's side
  int64_t out_channels;
  int32_t depth, arity, kind;
  const int32_t* fanin;  // [out_channels, arity^depth]: (channel * kernel + dy) * kernel + dx of each leaf, checked before
  const float* theta;    // [out_channels * gates of a tree, parameters]: each tree from its root, level by level
  float* grad_theta;     // backward: as theta; may be null
};

// Whether there is a kernel for these trees (sizes out of range are not an error).
GL_API int32_t gl_conv_supported(int32_t arity, int32_t depth, int32_t pool);
GL_API int64_t gl_conv_save_bytes(const GlConv* layers, int32_t count, int64_t batch);
// A chain of layers: x has channels * height * width features, out [out_channels * pooled pixels, batch] is
// feature-major. `save` may be null if there is no backward.
GL_API int32_t gl_conv_fwd(const GlConv* layers, int32_t count, int64_t batch, GlMatrix x, GlMatrix out, void* save);
GL_API int32_t gl_conv_bwd(const GlConv* layers, int32_t count, int64_t batch, GlMatrix x, GlMatrix grad_out,
                           GlMatrix grad_x, const void* save);

// Images [batch, channels, height, width] of float, or of bytes that are divided by 255. Each one's box (top, left,
// height, width, whether to mirror) resampled to the full size:
GL_API int32_t gl_resample(const void* images, int32_t bytes, int64_t batch, int64_t channels, int64_t height,
                           int64_t width, const int64_t* boxes, float* out);
// out [batch, channels, count, pixels] is 1 where a pixel is above a threshold; those of a channel are `stride` after
// those of the channel before.
GL_API int32_t gl_thermometer(const void* x, int32_t bytes, int64_t batch, int64_t channels, int64_t pixels,
                              const float* thresholds, int64_t count, int64_t stride, float* out);

// Memory for `save`: kept and handed out again, because fresh pages cost more than filling them.
GL_API void* gl_acquire(int64_t bytes);
GL_API void gl_release(void* block);
