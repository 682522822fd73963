/* CRC-32C of record batches, for processors that multiply polynomials 512 bits at a time. This is twice to three times
 * as fast as their CRC instruction, which the crc32c package uses; on all other processors that package is used.
 *
 * A CRC is the remainder of a division by a polynomial, so bytes may be moved towards the end if they are multiplied by
 * the power of x that makes up for the move, modulo that polynomial. Four accumulators of 64 bytes are moved 256 bytes
 * at a time, and then folded into one and down to 16 bytes, which have the same CRC as everything that went in.
 * Polynomials are stored as CRC-32C requires, with the highest power in the lowest bit; a product is then one power too
 * low, which the factors make up for.
 */

#include "native.h"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))

#include <immintrin.h>

#define WIDE __attribute__((target("avx512f,avx512vl,avx512dq,vpclmulqdq,pclmul,sse4.2")))

enum { BLOCK = 64, STRIDE = 4 * BLOCK, LANE = 16 };

static const uint32_t POLYNOMIAL = 0x82F63B78;

typedef struct {
    uint64_t early, late; /* for the first 8 of 16 bytes, and for the last 8 */
} factors;

static factors by_lane, by_block, by_stride;

/* x to this power, modulo the polynomial, in the upper half of 64 bits. */
static uint64_t power_of_x(unsigned power)
{
    uint32_t rest = 0x80000000;
    while (power--)
        rest = rest >> 1 ^ (rest & 1 ? POLYNOMIAL : 0);
    return (uint64_t)rest << 32;
}

static factors moving(unsigned bytes)
{
    return (factors){power_of_x(8 * bytes + 63), power_of_x(8 * bytes - 1)};
}

static inline WIDE __m512i all_lanes(factors by)
{
    return _mm512_broadcast_i32x4(_mm_set_epi64x((long long)by.late, (long long)by.early));
}

/* Move 64 bytes towards the end, and add (xor) the 64 bytes that are there. */
static inline WIDE __m512i moved(__m512i bytes, __m512i by, __m512i onto)
{
    const int exclusive_or = 0x96;
    __m512i early = _mm512_clmulepi64_epi128(bytes, by, 0x00), late = _mm512_clmulepi64_epi128(bytes, by, 0x11);
    return _mm512_ternarylogic_epi64(early, late, onto, exclusive_or);
}

static inline WIDE __m128i lane_moved(__m128i bytes, __m128i by, __m128i onto)
{
    __m128i early = _mm_clmulepi64_si128(bytes, by, 0x00), late = _mm_clmulepi64_si128(bytes, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(early, late), onto);
}

/* Compute the CRC of all complete strides at the beginning; return where they end. */
static WIDE const uint8_t *sum_strides(const uint8_t *at, size_t size, uint64_t *sum)
{
    __m512i a = _mm512_loadu_si512(at), b = _mm512_loadu_si512(at + BLOCK);
    __m512i c = _mm512_loadu_si512(at + 2 * BLOCK), d = _mm512_loadu_si512(at + 3 * BLOCK);
    a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)*sum)));
    __m512i by = all_lanes(by_stride);
    for (at += STRIDE, size -= STRIDE; size >= STRIDE; at += STRIDE, size -= STRIDE) {
        a = moved(a, by, _mm512_loadu_si512(at));
        b = moved(b, by, _mm512_loadu_si512(at + BLOCK));
        c = moved(c, by, _mm512_loadu_si512(at + 2 * BLOCK));
        d = moved(d, by, _mm512_loadu_si512(at + 3 * BLOCK));
    }
    by = all_lanes(by_block);
    a = moved(moved(moved(a, by, b), by, c), by, d);
    __m128i by_one = _mm_set_epi64x((long long)by_lane.late, (long long)by_lane.early);
    __m128i left = lane_moved(_mm512_castsi512_si128(a), by_one, _mm512_extracti32x4_epi32(a, 1));
    left = lane_moved(left, by_one, _mm512_extracti32x4_epi32(a, 2));
    left = lane_moved(left, by_one, _mm512_extracti32x4_epi32(a, 3));
    *sum = _mm_crc32_u64(_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(left)), (uint64_t)_mm_extract_epi64(left, 1));
    return at;
}

WIDE uint32_t crc_of(const uint8_t *at, size_t size)
{
    uint64_t sum = 0xFFFFFFFF, word;
    const uint8_t *end = at + size;
    if (size >= STRIDE)
        at = sum_strides(at, size, &sum);
    for (; end - at >= 8; at += 8) {
        memcpy(&word, at, 8);
        sum = _mm_crc32_u64(sum, word);
    }
    for (; at < end; at++)
        sum = _mm_crc32_u8((uint32_t)sum, *at);
    return ~(uint32_t)sum;
}

int set_up_crc(void)
{
    by_lane = moving(LANE);
    by_block = moving(BLOCK);
    by_stride = moving(STRIDE);
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("vpclmulqdq") &&
           __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.2");
}

#else

uint32_t crc_of(const uint8_t *at, size_t size)
{
    (void)at, (void)size;
    return 0;
}

int set_up_crc(void)
{
    return 0;
}

#endif

PyObject *crc32c_of(PyObject *Py_UNUSED(module), PyObject *data)
{
    Py_buffer view;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    uint32_t sum = crc_of(view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    return PyLong_FromUnsignedLong(sum);
}
