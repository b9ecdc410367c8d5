/* Matrix products for the instruction set ISA, small and medium sizes. Included after kernels_vector.h.
 * A tile of rows × vectors stays in registers while the depth is walked along; its rows are added to the result one
 * after the other, so rows of the result may overlap. */

#define TILE_ROWS 4

/* Where size counts more than speed, one narrow tile does it all, to the same bits: each sum is a sum of its own. */
#if defined(BUILT_SMALL) && !FUSED
#define FITS(tile, room) 0
#else
#define FITS(tile, room) ((tile) <= (room))
#endif

#if defined(__GNUC__) && !defined(__clang__)
#define UNROLLED _Pragma("GCC unroll 8")
#else
#define UNROLLED
#endif

/* `rows` and `vectors` are known where it is inlined. `rest`: lanes of the last vector, if not all of them. */
INLINE void NAME(tile)(const int rows, const int vectors, const Product *p, Count i, Count j, Count rest)
{
    const int turns = TILE_ROWS / rows; /* few rows take turns with several sums each: none waits for the one before */
    vec sums[TILE_ROWS][2];
    UNROLLED
    for (int r = 0; r < TILE_ROWS; r++) {
        UNROLLED
        for (int v = 0; v < vectors; v++)
            sums[r][v] = SPLAT(0.0);
    }
    const double *left = p->left + i * p->left_row, *right = p->right + j;
    for (Count k = 0; k < p->depth; k += turns) {
        UNROLLED
        for (int turn = 0; turn < turns; turn++, left += p->left_depth, right += p->right_depth) {
            if (turns > 1 && k + turn >= p->depth)
                break;
            vec across[2];
            across[0] = rest && vectors == 1 ? NAME(load_part)(right, rest) : LOAD(right);
            if (vectors == 2)
                across[1] = rest ? NAME(load_part)(right + LANES, rest) : LOAD(right + LANES);
            UNROLLED
            for (int r = 0; r < rows; r++) {
                vec down = SPLAT(left[r * p->left_row]);
                UNROLLED
                for (int v = 0; v < vectors; v++)
                    sums[turn * rows + r][v] = FMA(down, across[v], sums[turn * rows + r][v]);
            }
        }
    }
    UNROLLED
    for (int r = rows; r < turns * rows; r++) {
        UNROLLED
        for (int v = 0; v < vectors; v++)
            sums[r % rows][v] += sums[r][v];
    }
    UNROLLED
    for (int r = 0; r < rows; r++) {
        double *out = p->out + (i + r) * p->out_row + j;
        UNROLLED
        for (int v = 0; v < vectors; v++, out += LANES) {
            if (rest && v == vectors - 1)
                NAME(store_part)(out, p->add ? NAME(load_part)(out, rest) + sums[r][v] : sums[r][v], rest);
            else
                STORE(out, p->add ? LOAD(out) + sums[r][v] : sums[r][v]);
        }
    }
}

INLINE void NAME(column_of_tiles)(const int vectors, const Product *p, Count j, Count rest)
{
    Count i = 0;
    for (; i + 4 <= p->rows; i += 4)
        NAME(tile)(4, vectors, p, i, j, rest);
    if (i + 2 <= p->rows) {
        NAME(tile)(2, vectors, p, i, j, rest);
        i += 2;
    }
    if (i < p->rows)
        NAME(tile)(1, vectors, p, i, j, rest);
}

static void NAME(product)(const Product *p)
{
    for (Count i = 0; p->depth == 1 && p->add && i < p->rows; i++)
        NAME(add_scaled)(p->columns, p->left[i * p->left_row], p->right, p->out + i * p->out_row);
    if (p->depth == 1 && p->add)
        return;
    Count j = 0, rest = p->columns;
    for (; FITS(2 * LANES, rest); j += 2 * LANES, rest -= 2 * LANES)
        NAME(column_of_tiles)(2, p, j, 0);
    if (FITS(LANES + 1, rest)) {
        NAME(column_of_tiles)(2, p, j, rest - LANES);
        return;
    }
    for (; rest >= LANES; j += LANES, rest -= LANES)
        NAME(column_of_tiles)(1, p, j, 0);
    if (LANES > 1 && rest > 0)
        NAME(column_of_tiles)(1, p, j, rest);
}

/* ---------------------------------------------------------------- rows by rows */

#if LANES >= 4
/* The total of each. */
INLINE __m256d NAME(totals)(__m256d a, __m256d b, __m256d c, __m256d d)
{
    __m256d ab = _mm256_hadd_pd(a, b), cd = _mm256_hadd_pd(c, d); /* a₀ + a₁, b₀ + b₁, a₂ + a₃, b₂ + b₃ */
    return _mm256_add_pd(_mm256_permute2f128_pd(ab, cd, 0x20), _mm256_permute2f128_pd(ab, cd, 0x31));
}
#endif

/* The same of four vectors of any size. */
INLINE void NAME(four_totals)(const vec *sums, double *out)
{
#if LANES >= 4
#if LANES == 8
#define HALVES(v) _mm256_add_pd(_mm512_castpd512_pd256((__m512d)(v)), _mm512_extractf64x4_pd((__m512d)(v), 1))
#else
#define HALVES(v) ((__m256d)(v))
#endif
    _mm256_storeu_pd(out, NAME(totals)(HALVES(sums[0]), HALVES(sums[1]), HALVES(sums[2]), HALVES(sums[3])));
#undef HALVES
#elif FUSED
    STORE(out, (vec)vpaddq_f64((float64x2_t)sums[0], (float64x2_t)sums[1]));
    STORE(out + 2, (vec)vpaddq_f64((float64x2_t)sums[2], (float64x2_t)sums[3]));
#else
    for (int k = 0; k < 4; k++)
        out[k] = NAME(total)(sums[k]);
#endif
}

/* `rows` times `columns` dots side by side, both known where it is inlined. */
INLINE void NAME(tile_of_dots)(const int rows, const int columns, Count depth, const double *left, Count left_row,
                               const double *right, Count right_row, double *out, Count out_row)
{
    vec sums[2][4];
    UNROLLED
    for (int r = 0; r < rows; r++) {
        UNROLLED
        for (int c = 0; c < columns; c++)
            sums[r][c] = SPLAT(0.0);
    }
    for (Count k = 0; k < depth; k += LANES) {
        Count here = depth - k;
        vec down[2];
        UNROLLED
        for (int r = 0; r < rows; r++)
            down[r] = here < LANES ? NAME(load_part)(left + r * left_row + k, here) : LOAD(left + r * left_row + k);
        UNROLLED
        for (int c = 0; c < columns; c++) {
            const double *entries = right + c * right_row + k;
            vec across = here < LANES ? NAME(load_part)(entries, here) : LOAD(entries);
            UNROLLED
            for (int r = 0; r < rows; r++)
                sums[r][c] = FMA(down[r], across, sums[r][c]);
        }
    }
    UNROLLED
    for (int r = 0; r < rows; r++) {
        if (columns == 4)
            NAME(four_totals)(sums[r], out + r * out_row);
        else
            out[r * out_row] = NAME(total)(sums[r][0]);
    }
}

static void NAME(dots)(Count rows, Count columns, Count depth, const double *left, Count left_row, const double *right,
                       Count right_row, double *out)
{
#define TILE(r, c) \
    NAME(tile_of_dots)(r, c, depth, left + i * left_row, left_row, right + j * right_row, right_row, \
                       out + i * columns + j, columns)
    for (Count j = 0; j < columns; j += FITS(4, columns - j) ? 4 : 1) { /* which stay in the cache for all rows */
        for (Count i = 0; i < rows; i += FITS(2, rows - i) ? 2 : 1) {
            if (FITS(4, columns - j) && FITS(2, rows - i))
                TILE(2, 4);
            else if (FITS(4, columns - j))
                TILE(1, 4);
            else if (FITS(2, rows - i))
                TILE(2, 1);
            else
                TILE(1, 1);
        }
    }
#undef TILE
}

/* ---------------------------------------------------------------- transposing */

#if LANES < 8
/* SIDE rows of as many entries, to as many columns. */
#if LANES == 4
#define SIDE 4
INLINE void NAME(transpose_square)(const double *from, Count from_row, double *into, Count into_row)
{
    __m256d a = _mm256_loadu_pd(from), b = _mm256_loadu_pd(from + from_row);
    __m256d c = _mm256_loadu_pd(from + 2 * from_row), d = _mm256_loadu_pd(from + 3 * from_row);
    __m256d ab_even = _mm256_unpacklo_pd(a, b), ab_odd = _mm256_unpackhi_pd(a, b);
    __m256d cd_even = _mm256_unpacklo_pd(c, d), cd_odd = _mm256_unpackhi_pd(c, d);
    _mm256_storeu_pd(into, _mm256_permute2f128_pd(ab_even, cd_even, 0x20));
    _mm256_storeu_pd(into + into_row, _mm256_permute2f128_pd(ab_odd, cd_odd, 0x20));
    _mm256_storeu_pd(into + 2 * into_row, _mm256_permute2f128_pd(ab_even, cd_even, 0x31));
    _mm256_storeu_pd(into + 3 * into_row, _mm256_permute2f128_pd(ab_odd, cd_odd, 0x31));
}
#else
#define SIDE 1
INLINE void NAME(transpose_square)(const double *from, Count from_row, double *into, Count into_row)
{
    (void)from_row, (void)into_row;
    *into = *from;
}
#endif

static void NAME(transpose)(Count rows, Count columns, const double *from, Count from_row, double *into)
{
    Count i = 0;
    for (; i + SIDE <= rows; i += SIDE) {
        Count j = 0;
        for (; j + SIDE <= columns; j += SIDE)
            NAME(transpose_square)(from + i * from_row + j, from_row, into + j * rows + i, rows);
        for (; j < columns; j++) {
            for (Count r = i; r < i + SIDE; r++)
                into[j * rows + r] = from[r * from_row + j];
        }
    }
    for (; i < rows; i++) {
        for (Count j = 0; j < columns; j++)
            into[j * rows + i] = from[i * from_row + j];
    }
}
#undef SIDE
#endif

/* ---------------------------------------------------------------- over a batch: every entry is BATCH numbers */

/* out[k] += the total of sums[k], for k from 0 to 3. */
INLINE void NAME(add_totals)(const vec *sums, double *out)
{
    double totals[4];
    NAME(four_totals)(sums, totals);
    for (int k = 0; k < 4; k++)
        out[k] += totals[k];
}

/* By 4 columns: sums and what they are made of fit 32 registers, or 16; and what is left over is as few rows. */
#undef BATCH_ROWS
#undef FEWER_ROWS
#undef ROW_COLUMNS
#define BATCH_ROWS (LANES == 8 ? 4 : 3)
#define FEWER_ROWS (LANES == 8 ? 1 : 2)
#define ROW_COLUMNS 8 /* of a single row, as the next term of a sum waits for the last: 4 sums would wait for each other */

/* Whether the right side is shared and the total asked for is known where it is inlined, too. */
INLINE void NAME(batch_tile)(const int rows, const int columns, const int shared, const int total,
                             const BatchProduct *p, Count i, int part)
{
    vec sums[BATCH_ROWS][ROW_COLUMNS];
    UNROLLED
    for (int r = 0; r < rows; r++) {
        UNROLLED
        for (int c = 0; c < columns; c++)
            sums[r][c] = SPLAT(0.0);
    }
    const Count right_width = shared ? 1 : BATCH;
    const double *left = p->left + BATCH * i * p->left_row + part, *right = p->right + (shared ? 0 : part);
    for (Count k = 0; k < p->depth; k++, left += BATCH * p->left_depth, right += right_width * p->right_depth) {
        vec down[BATCH_ROWS];
        UNROLLED
        for (int r = 0; r < rows; r++)
            down[r] = LOAD(left + BATCH * r * p->left_row);
        UNROLLED
        for (int c = 0; c < columns; c++) {
            const double *entry = right + right_width * c * p->right_column;
            vec across = shared ? SPLAT(*entry) : LOAD(entry);
            UNROLLED
            for (int r = 0; r < rows; r++)
                sums[r][c] = FMA(down[r], across, sums[r][c]);
        }
    }
    UNROLLED
    for (int r = 0; r < rows; r++) {
        if (total && columns == 4 && p->out_column == 1) {
            NAME(add_totals)(sums[r], p->out + (i + r) * p->out_row);
            continue;
        }
        UNROLLED
        for (int c = 0; c < columns; c++) {
            Count entry = (i + r) * p->out_row + c * p->out_column;
            double *out = p->out + BATCH * entry + part;
            if (total)
                p->out[entry] += NAME(total)(sums[r][c]);
            else
                STORE(out, p->add ? LOAD(out) + sums[r][c] : sums[r][c]);
        }
    }
}

/* All rows of some columns. */
INLINE void NAME(batch_column_of_tiles)(const int columns, const int shared, const int total, const BatchProduct *p)
{
    for (Count i = 0, here; i < p->rows; i += here) {
        Count rest = p->rows - i;
        int most = FITS(BATCH_ROWS, rest) && rest != 2 * FEWER_ROWS;
        here = most ? BATCH_ROWS : FITS(FEWER_ROWS, rest) ? FEWER_ROWS : 1;
        for (int part = 0; part < BATCH; part += LANES) {
            if (most)
                NAME(batch_tile)(BATCH_ROWS, columns, shared, total, p, i, part);
            else if (FEWER_ROWS > 1 && here == FEWER_ROWS)
                NAME(batch_tile)(FEWER_ROWS, columns, shared, total, p, i, part);
            else
                NAME(batch_tile)(1, columns, shared, total, p, i, part);
        }
    }
}

INLINE void NAME(batch_tiles)(const int shared, const int total, const BatchProduct *p)
{
    const Count right_width = shared ? 1 : BATCH, out_width = total ? 1 : BATCH;
    for (Count j = 0, here; j < p->columns; j += here) {
        BatchProduct columns = *p;
        int of_a_row = shared && p->rows == 1 && FITS(ROW_COLUMNS, p->columns - j);
        here = of_a_row ? ROW_COLUMNS : FITS(4, p->columns - j) ? 4 : 1;
        columns.right += right_width * j * p->right_column;
        columns.out += out_width * j * p->out_column;
        if (of_a_row) {
            for (int part = 0; part < BATCH; part += LANES)
                NAME(batch_tile)(1, ROW_COLUMNS, shared, total, &columns, 0, part);
        }
        else if (here == 4)
            NAME(batch_column_of_tiles)(4, shared, total, &columns);
        else
            NAME(batch_column_of_tiles)(1, shared, total, &columns);
    }
}

static void NAME(batch_product)(const BatchProduct *p)
{
    if (p->total) {
        NAME(batch_tiles)(0, 1, p);
    }
    else if (p->left_shared || p->right_shared) {
        BatchProduct turned = { /* as if it were the right side that is shared: the product's transpose */
            .rows = p->columns, .columns = p->rows, .depth = p->depth, .left = p->right, .left_row = p->right_column,
            .left_depth = p->right_depth, .right = p->left, .right_depth = p->left_depth, .right_column = p->left_row,
            .out = p->out, .out_row = p->out_column, .out_column = p->out_row, .add = p->add};
        NAME(batch_tiles)(1, 0, p->left_shared ? &turned : p);
    }
    else {
        NAME(batch_tiles)(0, 0, p);
    }
}
