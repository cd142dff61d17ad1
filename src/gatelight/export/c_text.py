"""The parts of the C export that are the same for every circuit, as templates: ``$net`` and ``$NET`` are its name."""

from __future__ import annotations

#: What the header says of a feature, by the circuit's kind.
FEATURES = {
    "bits": """\
each 0 or 1. Nothing is checked: any byte other than 0 counts as 1,
 * a float is compared with its threshold as it is, and NaN counts as below any threshold.""",
    "bytes": """\
each a number from 0 to 1. A byte u stands for u / 255.0f. Floats are
 * not checked: one outside is compared with its threshold as it is, and NaN counts as below any threshold.""",
    "reals": """\
each a finite number. A byte u stands for the number u. Floats are not
 * checked: infinities are compared as they are, and NaN counts as below any threshold.""",
}

HEADER = """\
/* $title
$classes
 *
 * Standalone C99. No allocation, no state: the caller gives $NET_SCRATCH words of scratch memory, as in
 *
 *     static ${net}_word scratch[$NET_SCRATCH];
 *     int32_t scores[$NET_CLASSES];
 *     int32_t label = ${net}_one_u8(sample, scores, scratch);
 *
 * A word holds one bit of as many samples as it has bits. Compile everything with ${NET}_WORD_BITS set to 8 or 32
 * where memory is short or the machine is small; the default is 64.
 *
 * A sample is $NET_FEATURES features, $feature_text
 * The logits of a sample are its scores divided by $NET_TEMPERATURE.
 */
#ifndef ${NET}_H
#define ${NET}_H

#include <stddef.h>
#include <stdint.h>

#ifndef ${NET}_WORD_BITS
#define ${NET}_WORD_BITS 64
#endif

#if ${NET}_WORD_BITS == 64
typedef uint64_t ${net}_word;
#elif ${NET}_WORD_BITS == 32
typedef uint32_t ${net}_word;
#elif ${NET}_WORD_BITS == 8
typedef uint8_t ${net}_word;
#else
#error "${NET}_WORD_BITS must be 8, 32 or 64"
#endif

#define ${NET}_FEATURES $features
#define ${NET}_CLASSES $class_count
#define ${NET}_SCRATCH $scratch
#define ${NET}_TEMPERATURE $temperature

#ifdef __cplusplus
extern "C" {
#endif

/* Scores [samples][$NET_CLASSES] and, unless labels is null, labels [samples] of features [samples][$NET_FEATURES]. */
void ${net}_batch_u8(const uint8_t *features, size_t samples, int32_t *scores, int32_t *labels,
    ${net}_word *scratch);
void ${net}_batch_f32(const float *features, size_t samples, int32_t *scores, int32_t *labels,
    ${net}_word *scratch);

/* Scores [$NET_CLASSES] of one sample; returns its label. */
int32_t ${net}_one_u8(const uint8_t *features, int32_t *scores, ${net}_word *scratch);
int32_t ${net}_one_f32(const float *features, int32_t *scores, ${net}_word *scratch);

/* The class with the highest score, the first of equals. */
int32_t ${net}_argmax(const int32_t *scores);

#ifdef __cplusplus
}
#endif

#endif
"""

SOURCE_HEAD = """\
/* $title; see $net.h. */
#include "$net.h"
$includes
#define ${NET}_LANES ((size_t)${NET}_WORD_BITS)
#define ${NET}_OUTPUTS $outputs

/* Gates are kept in functions of moderate size, which compilers take in their stride. */
#if defined(__GNUC__)
#define ${NET}_APART __attribute__((noinline))
#else
#define ${NET}_APART
#endif

static const int32_t ${net}_bias[${NET}_CLASSES] = {$bias};
"""

# The bits of eight samples are gathered in bytes first, because a loop over bytes vectorizes best.
ENCODER = """
static void ${net}_encode_$type(const $ctype *features, size_t lanes, ${net}_word *w)
{
    for (size_t r = 0; r < $runs; r++) {
        const size_t feature = ${net}_run[r][0], start = ${net}_run[r][1], length = ${net}_run[r][2];
        ${net}_word *const bits = w + ${NET}_OUTPUTS + start;
        for (size_t i = 0; i < length; i++)
            bits[i] = 0;
        for (size_t lane = 0; lane < lanes; lane += 8) {
            const size_t some = lanes - lane < 8 ? lanes - lane : 8;
            uint8_t row[$run_length] = {0};
            for (size_t k = 0; k < some; k++) {
                const $ctype *const x = features + (lane + k) * ${NET}_FEATURES + feature;
                const uint8_t one = (uint8_t)(1u << k);
                for (size_t i = 0; i < length; i++)
                    row[i] = (uint8_t)(row[i] | ($value > $level ? one : 0));
            }
            for (size_t i = 0; i < length; i++)
                bits[i] = (${net}_word)(bits[i] | ((${net}_word)row[i] << lane));
        }
    }
}

static void ${net}_encode_one_$type(const $ctype *features, ${net}_word *w)
{
    for (size_t r = 0; r < $runs; r++) {
        const size_t feature = ${net}_run[r][0], start = ${net}_run[r][1], length = ${net}_run[r][2];
        const $ctype *const x = features + feature;
        for (size_t i = 0; i < length; i++)
            w[${NET}_OUTPUTS + start + i] = $value > $level;
    }
}
"""

NO_ENCODER = """
static void ${net}_encode_$type(const $ctype *features, size_t lanes, ${net}_word *w)
{
    (void)features, (void)lanes, (void)w;
}

static void ${net}_encode_one_$type(const $ctype *features, ${net}_word *w)
{
    (void)features, (void)w;
}
"""

# Vertical counters: plane k holds bit k of eight counts in every lane. Eight rows of eight words at a time go through
# a tree of carry-save adders, so that only one word in eight has to ripple through the upper planes.
SUMS = """
static const size_t ${net}_group[${NET}_CLASSES + 1] = {$groups};

/* low + a + b becomes 2 * high + low. */
static inline void ${net}_add(${net}_word *restrict high, ${net}_word *restrict low,
    const ${net}_word *restrict a, const ${net}_word *restrict b)
{
    for (size_t c = 0; c < 8; c++) {
        const ${net}_word half = low[c] ^ a[c];
        high[c] = (${net}_word)((low[c] & a[c]) | (half & b[c]));
        low[c] = half ^ b[c];
    }
}

static inline void ${net}_carry(${net}_word planes[$planes][8], size_t plane, ${net}_word *carry)
{
    for (size_t k = plane; k < $planes; k++)
        for (size_t c = 0; c < 8; c++) {
            const ${net}_word old = planes[k][c];
            planes[k][c] = old ^ carry[c];
            carry[c] &= old;
        }
}

static void ${net}_count(const ${net}_word *group, size_t size, ${net}_word planes[$planes][8])
{
    ${net}_word twos_a[8], twos_b[8], fours_a[8], fours_b[8], row[8];
    size_t i = 0;
    for (size_t k = 0; k < $planes; k++)
        for (size_t c = 0; c < 8; c++)
            planes[k][c] = 0;
    for (; i + 64 <= size; i += 64) {
        const ${net}_word *const g = group + i;
        ${net}_add(twos_a, planes[0], g, g + 8);
        ${net}_add(twos_b, planes[0], g + 16, g + 24);
        ${net}_add(fours_a, planes[1], twos_a, twos_b);
        ${net}_add(twos_a, planes[0], g + 32, g + 40);
        ${net}_add(twos_b, planes[0], g + 48, g + 56);
        ${net}_add(fours_b, planes[1], twos_a, twos_b);
        ${net}_add(row, planes[2], fours_a, fours_b);
        ${net}_carry(planes, 3, row);
    }
    for (; i < size; i += 8) {
        for (size_t c = 0; c < 8; c++)
            row[c] = i + c < size ? group[i + c] : 0;
        ${net}_carry(planes, 0, row);
    }
    for (size_t half = 4; half > 0; half /= 2) {
        for (size_t c = 0; c < half; c++)
            row[c] = 0;
        for (size_t k = 0; k < $planes; k++)
            for (size_t c = 0; c < half; c++) {
                const ${net}_word a = planes[k][c], b = planes[k][c + half], odd = a ^ b;
                planes[k][c] = odd ^ row[c];
                row[c] = (${net}_word)((a & b) | (odd & row[c]));
            }
    }
}

static void ${net}_sums(const ${net}_word *w, size_t lanes, int32_t *scores)
{
    for (size_t group = 0; group < ${NET}_CLASSES; group++) {
        ${net}_word planes[$planes][8];
        int32_t count[${NET}_LANES];
        const int32_t bias = ${net}_bias[group];
        ${net}_count(w + ${net}_group[group], ${net}_group[group + 1] - ${net}_group[group], planes);
        for (size_t lane = 0; lane < ${NET}_LANES; lane++)
            count[lane] = bias;
        for (size_t k = 0; k < $planes; k++)
            for (size_t lane = 0; lane < ${NET}_LANES; lane++)
                count[lane] += (int32_t)((planes[k][0] >> lane) & 1u) << k;
        for (size_t lane = 0; lane < lanes; lane++)
            scores[lane * ${NET}_CLASSES + group] = count[lane];
    }
}

static void ${net}_sums_one(const ${net}_word *w, int32_t *scores)
{
    for (size_t group = 0; group < ${NET}_CLASSES; group++) {
        int32_t sum = ${net}_bias[group];
        for (size_t i = ${net}_group[group]; i < ${net}_group[group + 1]; i++)
            sum += (int32_t)(w[i] & 1u);
        scores[group] = sum;
    }
}
"""

NO_SUMS = """
static void ${net}_sums(const ${net}_word *w, size_t lanes, int32_t *scores)
{
    (void)w;
    for (size_t lane = 0; lane < lanes; lane++)
        for (size_t group = 0; group < ${NET}_CLASSES; group++)
            scores[lane * ${NET}_CLASSES + group] = ${net}_bias[group];
}

static void ${net}_sums_one(const ${net}_word *w, int32_t *scores)
{
    ${net}_sums(w, 1, scores);
}
"""

ARGMAX = """
int32_t ${net}_argmax(const int32_t *scores)
{
    int32_t best = 0;
    for (int32_t group = 1; group < ${NET}_CLASSES; group++)
        if (scores[group] > scores[best])
            best = group;
    return best;
}
"""

ENTRY = """
void ${net}_batch_$type(const $ctype *features, size_t samples, int32_t *scores, int32_t *labels,
    ${net}_word *scratch)
{
    for (size_t done = 0; done < samples; done += ${NET}_LANES) {
        const size_t lanes = samples - done < ${NET}_LANES ? samples - done : ${NET}_LANES;
        int32_t *const some = scores + done * ${NET}_CLASSES;
        ${net}_encode_$type(features + done * ${NET}_FEATURES, lanes, scratch);
        ${net}_gates(scratch);
        ${net}_sums(scratch, lanes, some);
        for (size_t lane = 0; labels && lane < lanes; lane++)
            labels[done + lane] = ${net}_argmax(some + lane * ${NET}_CLASSES);
    }
}

int32_t ${net}_one_$type(const $ctype *features, int32_t *scores, ${net}_word *scratch)
{
    ${net}_encode_one_$type(features, scratch);
    ${net}_gates(scratch);
    ${net}_sums_one(scratch, scores);
    return ${net}_argmax(scores);
}
"""
