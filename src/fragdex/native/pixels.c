/* Pixels of pictures: what a PNG's filters made of them, and RGB to BT.709 in 4:2:0.
 *
 * The conversion gives the bytes of libswscale with its filter "area", as rendering/pictures.py
 * tries before it uses it; a row is passed once instead of three times.
 */
#include "native.h"
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define HAS_AVX2 1
#endif

static void add_above(uint8_t *out, const uint8_t *in, const uint8_t *above, Py_ssize_t size)
{
    for (Py_ssize_t i = 0; i < size; i++)
        out[i] = (uint8_t)(in[i] + above[i]);
}

/* The neighbour nearest to left + above - corner (ISO/IEC 15948, 9.4). */
static inline int paeth(int left, int above, int corner)
{
    int to_left = abs(above - corner), to_above = abs(left - corner);
    int to_corner = abs(left + above - 2 * corner);
    if (to_left <= to_above && to_left <= to_corner)
        return left;
    return to_above <= to_corner ? above : corner;
}

/* Undoes the filter of a row (ISO/IEC 15948, 9.2); 0: there is no such filter. `above` is NULL for
 * the first row. */
static int unfilter_row(int filter, uint8_t *out, const uint8_t *in, const uint8_t *above,
                        Py_ssize_t size, Py_ssize_t pixel)
{
    if (filter == 2 && above) {
        add_above(out, in, above, size);
        return 1;
    }
    if (filter == 0 || filter == 2) {
        memcpy(out, in, (size_t)size);
        return 1;
    }
    if (filter > 4)
        return 0;
    for (Py_ssize_t i = 0; i < size; i++) {
        int left = i < pixel ? 0 : out[i - pixel], up = above ? above[i] : 0, guess = left;
        if (filter == 3)
            guess = (left + up) >> 1;
        else if (filter == 4)
            guess = paeth(left, up, above && i >= pixel ? above[i - pixel] : 0);
        out[i] = (uint8_t)(in[i] + guess);
    }
    return 1;
}

/* Whether rows of `size` bytes, `stride` apart, lie in a buffer of `held` bytes. */
static int has_rows(Py_ssize_t held, Py_ssize_t rows, Py_ssize_t size, Py_ssize_t stride)
{
    return rows > 0 && size > 0 && size <= stride && size <= held &&
           rows - 1 <= (held - size) / stride;
}

/* Undoes the filters of the rows of a PNG, each after the byte of its filter, into rows that are
 * `stride` bytes apart. False: a filter that there is not. */
PyObject *unfilter(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer data, into;
    Py_ssize_t rows, size, pixel, stride;
    if (!PyArg_ParseTuple(args, "y*nnnw*n", &data, &rows, &size, &pixel, &into, &stride))
        return NULL;
    int whole = pixel > 0 && has_rows(into.len, rows, size, stride) && size < PY_SSIZE_T_MAX &&
                has_rows(data.len, rows, size + 1, size + 1);
    if (!whole) {
        PyErr_SetString(PyExc_ValueError, "rows that do not fit");
    } else {
        Py_BEGIN_ALLOW_THREADS
        const uint8_t *in = data.buf, *above = NULL;
        uint8_t *out = into.buf;
        for (Py_ssize_t row = 0; row < rows && whole; row++) {
            whole = unfilter_row(*in, out, in + 1, above, size, pixel);
            above = out;
            in += size + 1;
            out += stride;
        }
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&data);
    PyBuffer_Release(&into);
    return PyErr_Occurred() ? NULL : PyBool_FromLong(whole);
}

#ifdef HAS_AVX2
/* ITU-R BT.709, limited range, as libswscale has it: times 2^15. */
enum { RY = 5983, GY = 20127, BY = 2032 };
enum { RU = -3298, GU = -11094, BU = 14392 };
enum { RV = 14392, GV = -13073, BV = -1320 };
/* Six bits below the sample stay until the end: of luma, and of chroma of two pixels. */
enum { LUMA = (32 << 14) + (1 << 8), CHROMA = (256 << 15) + (1 << 9) };

/* How a pixel lies: red, green, blue; the same and a byte without meaning; or the other way. */
enum { RGB, RGBX, BGRX, LAYOUTS };
#define SIZE_OF(layout) ((layout) == RGB ? 3 : 4)
#define RED_OF(layout) ((layout) == BGRX ? 2 : 0)
#define BLUE_OF(layout) (2 - RED_OF(layout))

static inline int luma_of(const uint8_t *p, int layout)
{
    int sum = RY * p[RED_OF(layout)] + GY * p[1] + BY * p[BLUE_OF(layout)] + LUMA;
    return ((sum >> 9) + 32) >> 6;
}

static inline int chroma_of(const uint8_t *p, int layout, int red, int green, int blue)
{
    const uint8_t *q = p + SIZE_OF(layout);
    int r = RED_OF(layout), b = BLUE_OF(layout);
    return (red * (p[r] + q[r]) + green * (p[1] + q[1]) + blue * (p[b] + q[b]) + CHROMA) >> 10;
}

/* A sample of two rows. All rows but the last are rounded twice, as libswscale's vectors do. */
static inline uint8_t mean_of(int upper, int lower, int last)
{
    return (uint8_t)(last ? (upper + lower + 64) >> 7 : ((upper >> 4) + (lower >> 4) + 4) >> 3);
}

#define PAIR(low, high) _mm256_set1_epi32((int)((uint32_t)(high) << 16 | ((uint32_t)(low) & 0xffff)))

/* Eight pixels as 16 bits each: red and green in turn, and blue. */
__attribute__((target("avx2"))) static inline void eight(const uint8_t *p, int layout,
                                                         __m256i *rg, __m256i *b)
{
    if (layout != RGB) {
        const __m256i four = _mm256_loadu_si256((const __m256i *)p);
        /* each number of four bytes of which the lowest or the third one is red */
        const __m256i low = _mm256_and_si256(four, _mm256_set1_epi32(0xff));
        const __m256i green = _mm256_slli_epi32(
            _mm256_and_si256(four, _mm256_set1_epi32(0xff00)), 8);
        const __m256i third = _mm256_and_si256(_mm256_srli_epi32(four, 16),
                                               _mm256_set1_epi32(0xff));
        *rg = _mm256_or_si256(green, layout == RGBX ? low : third);
        *b = layout == RGBX ? third : low;
        return;
    }
    const __m256i of_rg = _mm256_setr_epi8(
        0, -1, 1, -1, 3, -1, 4, -1, 6, -1, 7, -1, 9, -1, 10, -1,
        0, -1, 1, -1, 3, -1, 4, -1, 6, -1, 7, -1, 9, -1, 10, -1);
    const __m256i of_b = _mm256_setr_epi8(
        2, -1, -1, -1, 5, -1, -1, -1, 8, -1, -1, -1, 11, -1, -1, -1,
        2, -1, -1, -1, 5, -1, -1, -1, 8, -1, -1, -1, 11, -1, -1, -1);
    __m256i bytes = _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)p)),
        _mm_loadu_si128((const __m128i *)(p + 12)), 1);
    *rg = _mm256_shuffle_epi8(bytes, of_rg);
    *b = _mm256_shuffle_epi8(bytes, of_b);
}

__attribute__((target("avx2"))) static inline void eight_lumas(uint8_t *out, __m256i rg, __m256i b)
{
    __m256i sum = _mm256_add_epi32(_mm256_madd_epi16(rg, PAIR(RY, GY)),
                                   _mm256_madd_epi16(b, PAIR(BY, 0)));
    sum = _mm256_srai_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(LUMA)), 9);
    sum = _mm256_srai_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(32)), 6);
    __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    _mm_storel_epi64((__m128i *)out, _mm_packus_epi16(words, words));
}

/* Each value and its neighbour in one: valid in every second place. */
__attribute__((target("avx2"))) static inline __m256i in_pairs(__m256i values)
{
    return _mm256_add_epi16(values, _mm256_shuffle_epi32(values, _MM_SHUFFLE(2, 3, 0, 1)));
}

__attribute__((target("avx2"))) static inline __m256i chromas(__m256i rg, __m256i b, __m256i of_rg,
                                                              __m256i of_b)
{
    __m256i sum = _mm256_add_epi32(_mm256_madd_epi16(rg, of_rg), _mm256_madd_epi16(b, of_b));
    return _mm256_srai_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(CHROMA)), 14);
}

__attribute__((target("avx2"))) static inline void four_means(uint8_t *out, __m256i upper,
                                                              __m256i lower)
{
    __m256i sum = _mm256_add_epi32(_mm256_add_epi32(upper, lower), _mm256_set1_epi32(4));
    sum = _mm256_srai_epi32(sum, 3);
    /* the first byte of places 0, 2, 4 and 6 */
    const __m256i first = _mm256_setr_epi8(
        0, 8, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
        -1, -1, 0, 8, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    sum = _mm256_shuffle_epi8(sum, first);
    int four = _mm_cvtsi128_si32(_mm_or_si128(_mm256_castsi256_si128(sum),
                                              _mm256_extracti128_si256(sum, 1)));
    memcpy(out, &four, 4);
}

/* Two rows that are not the last two: eight pixels at once; how many were done. */
__attribute__((target("avx2"), always_inline)) static inline Py_ssize_t two_rows(
    const uint8_t *const rgb[2], int layout, Py_ssize_t width, uint8_t *const luma[2], uint8_t *u,
    uint8_t *v)
{
    Py_ssize_t x = 0, size = SIZE_OF(layout);
    /* of three bytes each, sixteen are read where the last twelve are wanted */
    for (; size * (x + 8) + (layout == RGB ? 4 : 0) <= size * width; x += 8) {
        __m256i rg[2], b[2];
        for (int row = 0; row < 2; row++) {
            eight(rgb[row] + size * x, layout, &rg[row], &b[row]);
            eight_lumas(luma[row] + x, rg[row], b[row]);
            rg[row] = in_pairs(rg[row]);
            b[row] = in_pairs(b[row]);
        }
        __m256i of_rg = PAIR(RU, GU), of_b = PAIR(BU, 0);
        four_means(u + x / 2, chromas(rg[0], b[0], of_rg, of_b), chromas(rg[1], b[1], of_rg, of_b));
        of_rg = PAIR(RV, GV), of_b = PAIR(BV, 0);
        four_means(v + x / 2, chromas(rg[0], b[0], of_rg, of_b), chromas(rg[1], b[1], of_rg, of_b));
    }
    return x;
}

__attribute__((target("avx2"), always_inline)) static inline void convert(
    const uint8_t *rgb, int layout, Py_ssize_t stride, Py_ssize_t width, Py_ssize_t height,
    uint8_t *const planes[3], const Py_ssize_t strides[3])
{
    const Py_ssize_t size = SIZE_OF(layout);
    for (Py_ssize_t y = 0; y < height; y += 2) {
        int last = y + 2 == height;
        const uint8_t *rows[2] = {rgb + y * stride, rgb + (y + 1) * stride};
        uint8_t *luma[2] = {planes[0] + y * strides[0], planes[0] + (y + 1) * strides[0]};
        uint8_t *u = planes[1] + y / 2 * strides[1], *v = planes[2] + y / 2 * strides[2];
        Py_ssize_t x = last ? 0 : two_rows(rows, layout, width, luma, u, v);
        for (; x < width; x += 2) {
            const uint8_t *upper = rows[0] + size * x, *lower = rows[1] + size * x;
            for (int i = 0; i < 2; i++) {
                luma[0][x + i] = (uint8_t)luma_of(upper + size * i, layout);
                luma[1][x + i] = (uint8_t)luma_of(lower + size * i, layout);
            }
            u[x / 2] = mean_of(chroma_of(upper, layout, RU, GU, BU),
                               chroma_of(lower, layout, RU, GU, BU), last);
            v[x / 2] = mean_of(chroma_of(upper, layout, RV, GV, BV),
                               chroma_of(lower, layout, RV, GV, BV), last);
        }
    }
}

/* One loop for each layout: which one is known when it is compiled. */
#define CONVERT(layout)                                                                            \
    __attribute__((target("avx2"))) static void convert_##layout(                                  \
        const uint8_t *from, Py_ssize_t stride, Py_ssize_t width, Py_ssize_t height,               \
        uint8_t *const planes[3], const Py_ssize_t strides[3])                                     \
    {                                                                                              \
        convert(from, layout, stride, width, height, planes, strides);                             \
    }
CONVERT(RGB)
CONVERT(RGBX)
CONVERT(BGRX)

/* Rows of pixels in a layout, 8 bits each colour, to three planes. False: this processor cannot. */
PyObject *to_yuv420(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer rgb, into[3];
    Py_ssize_t stride, width, height, layout, strides[3];
    if (!PyArg_ParseTuple(args, "y*nnnnw*nw*nw*n", &rgb, &layout, &stride, &width, &height,
                          &into[0], &strides[0], &into[1], &strides[1], &into[2], &strides[2]))
        return NULL;
    int can = __builtin_cpu_supports("avx2");
    int fits = layout >= 0 && layout < LAYOUTS && width > 0 && height > 0 && !(width & 1) &&
               !(height & 1) && width <= PY_SSIZE_T_MAX / 4 &&
               has_rows(rgb.len, height, SIZE_OF(layout) * width, stride);
    for (int i = 0; i < 3; i++)
        fits = fits && has_rows(into[i].len, i ? height / 2 : height, i ? width / 2 : width,
                                strides[i]);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "rows that do not fit");
    } else if (can) {
        Py_BEGIN_ALLOW_THREADS
        uint8_t *const planes[3] = {into[0].buf, into[1].buf, into[2].buf};
        (layout == RGB    ? convert_RGB
         : layout == RGBX ? convert_RGBX
                          : convert_BGRX)(rgb.buf, stride, width, height, planes, strides);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&rgb);
    for (int i = 0; i < 3; i++)
        PyBuffer_Release(&into[i]);
    return fits ? PyBool_FromLong(can) : NULL;
}
#endif
