/* Loops over a flat graph (compiler/flat.py) that go from node to node, as NumPy cannot; their twins in Python are in
 * compiler/loops.py. The children of node i are children[starts[i]] …, and have smaller numbers. */

#include "flat.h"

/* ---------------------------------------------------------------- arguments */

/* Holds a contiguous buffer of items of this size; `count` -1: of any length. */
static int flat_hold_items(PyObject *given, const char *what, Count size, Count count, int writable, Py_buffer *buffer)
{
    if (PyObject_GetBuffer(given, buffer, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)) < 0)
        return -1;
    if (buffer->itemsize == size && (count < 0 || (buffer->len % size == 0 && buffer->len / size == count)))
        return 0; /* without a product, which a count from somebody's array may overflow */
    PyErr_Format(PyExc_ValueError, "flat: expected %zd items of %zd bytes as %s, got %zd bytes in all", count, size,
                 what, buffer->len);
    PyBuffer_Release(buffer);
    return -1;
}

/* A graph, and one array with an entry for each node. */
typedef struct {
    Py_buffer starts_buffer, children_buffer, nodes_buffer;
    const int64_t *starts, *children;
    Count size;
    void *of_nodes;
} Graph;

static void flat_release(Graph *graph)
{
    PyBuffer_Release(&graph->starts_buffer);
    PyBuffer_Release(&graph->children_buffer);
    PyBuffer_Release(&graph->nodes_buffer);
}

static int flat_is_apart(const Py_buffer *filled, const Py_buffer *read)
{
    const char *one = filled->buf, *other = read->buf;
    return one + filled->len <= other || other + read->len <= one;
}

/* Holds (starts, children, an array of nodes to be filled), and sees to it that every child comes before its node, and
 * that this stays so while the array is filled. */
static int flat_hold(PyObject *const *args, Count item, Graph *graph)
{
    if (flat_hold_items(args[0], "starts", 8, -1, 0, &graph->starts_buffer) < 0)
        return -1;
    graph->starts = graph->starts_buffer.buf;
    graph->size = graph->starts_buffer.len / 8 - 1;
    Count edges = graph->size >= 0 ? (Count)graph->starts[graph->size] : 0;
    if (flat_hold_items(args[1], "children", 8, edges, 0, &graph->children_buffer) < 0) {
        PyBuffer_Release(&graph->starts_buffer);
        return -1;
    }
    if (flat_hold_items(args[2], "nodes", item, graph->size, 1, &graph->nodes_buffer) < 0) {
        PyBuffer_Release(&graph->starts_buffer);
        PyBuffer_Release(&graph->children_buffer);
        return -1;
    }
    graph->children = graph->children_buffer.buf;
    graph->of_nodes = graph->nodes_buffer.buf;
    int wrong = graph->size < 0 || graph->starts[0] != 0 || !flat_is_apart(&graph->nodes_buffer, &graph->starts_buffer)
             || !flat_is_apart(&graph->nodes_buffer, &graph->children_buffer);
    for (Count i = 0; i < graph->size; i++)
        wrong |= graph->starts[i] > graph->starts[i + 1];
    for (Count i = 0; i < graph->size && !wrong; i++) {
        int64_t end = graph->starts[i + 1];
        for (int64_t e = graph->starts[i]; e < end; e++)
            wrong |= (uint64_t)graph->children[e] >= (uint64_t)i;
    }
    if (!wrong)
        return 0;
    PyErr_SetString(PyExc_ValueError, "flat: expected a graph whose children come before the nodes that use them");
    flat_release(graph);
    return -1;
}

static int flat_expect_count(const char *name, Py_ssize_t count, Py_ssize_t expected)
{
    if (count == expected)
        return 0;
    PyErr_Format(PyExc_TypeError, "%s: expected %zd arguments, got %zd", name, expected, count);
    return -1;
}

/* ---------------------------------------------------------------- levels */

static PyObject *flat_levels(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    Graph graph;
    if (flat_expect_count("levels", count, 3) < 0 || flat_hold(args, 8, &graph) < 0)
        return NULL;
    int64_t *level = graph.of_nodes;
    for (Count i = 0; i < graph.size; i++) {
        int64_t highest = -1;
        for (int64_t e = graph.starts[i]; e < graph.starts[i + 1]; e++) {
            int64_t below = level[graph.children[e]];
            highest = below > highest ? below : highest;
        }
        level[i] = highest + 1;
    }
    flat_release(&graph);
    Py_RETURN_NONE;
}

static PyObject *flat_latest_levels(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    Graph graph;
    if (flat_expect_count("latest_levels", count, 3) < 0 || flat_hold(args, 8, &graph) < 0)
        return NULL;
    int64_t *latest = graph.of_nodes;
    for (Count i = graph.size; i-- > 0;) {
        int64_t below = latest[i] - 1;
        for (int64_t e = graph.starts[i]; e < graph.starts[i + 1]; e++) {
            int64_t *child = &latest[graph.children[e]];
            *child = *child > below ? below : *child;
        }
    }
    flat_release(&graph);
    Py_RETURN_NONE;
}

/* ---------------------------------------------------------------- what is needed */

static PyObject *flat_mark_needed(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    Graph graph;
    if (flat_expect_count("mark_needed", count, 3) < 0 || flat_hold(args, 1, &graph) < 0)
        return NULL;
    unsigned char *needed = graph.of_nodes;
    for (Count i = graph.size; i-- > 0;) {
        int64_t end = needed[i] ? graph.starts[i + 1] : 0;
        for (int64_t e = graph.starts[i]; e < end; e++)
            needed[graph.children[e]] = 1;
    }
    flat_release(&graph);
    Py_RETURN_NONE;
}

static PyObject *flat_mark_users(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    Graph graph;
    if (flat_expect_count("mark_users", count, 3) < 0 || flat_hold(args, 1, &graph) < 0)
        return NULL;
    unsigned char *marked = graph.of_nodes;
    for (Count i = 0; i < graph.size; i++) {
        for (int64_t e = graph.starts[i]; !marked[i] && e < graph.starts[i + 1]; e++)
            marked[i] = marked[graph.children[e]];
    }
    flat_release(&graph);
    Py_RETURN_NONE;
}

/* ---------------------------------------------------------------- replacements */

static PyObject *flat_follow(PyObject *module, PyObject *given)
{
    (void)module;
    Py_buffer buffer;
    if (flat_hold_items(given, "replacements", 8, -1, 1, &buffer) < 0)
        return NULL;
    int64_t *ends = buffer.buf, count = buffer.len / 8;
    int sane = 1;
    for (int64_t i = 0; i < count && sane; i++)
        sane = ends[i] >= 0 && ends[i] < count;
    for (int64_t i = 0; i < count && sane; i++) {
        int64_t end = i, steps = 0;
        while (ends[end] != end && steps++ < count)
            end = ends[end];
        sane = ends[end] == end;
        for (int64_t node = i, next; sane && node != end; node = next) {
            next = ends[node];
            ends[node] = end;
        }
    }
    PyBuffer_Release(&buffer);
    if (!sane)
        PyErr_SetString(PyExc_ValueError, "follow: expected chains of replacements that end");
    return sane ? Py_NewRef(Py_None) : NULL;
}

/* ---------------------------------------------------------------- equal rows, equal nodes */

static inline uint64_t flat_mixed(uint64_t hash, uint64_t fact)
{
    hash = (hash ^ fact) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ (hash >> 32);
}

/* Numbers by hash: a table of twice as many places, a power of two, each empty (-1) or a number. */
typedef struct {
    int32_t *places;
    uint64_t mask;
} Table;

static int flat_table_make(Table *table, Count count)
{
    uint64_t places = 16;
    while (places < 2 * (uint64_t)count)
        places *= 2;
    table->mask = places - 1;
    table->places = count < INT32_MAX ? PyMem_RawMalloc(places * sizeof *table->places) : NULL;
    if (table->places == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    memset(table->places, -1, places * sizeof *table->places);
    return 0;
}

static int flat_nodes_equal(const Graph *graph, const int64_t *doing, const int64_t *first, Count i, Count j)
{
    Count begin = (Count)graph->starts[i], other = (Count)graph->starts[j];
    Count count = (Count)graph->starts[i + 1] - begin;
    if (doing[i] != doing[j] || count != (Count)graph->starts[j + 1] - other)
        return 0;
    for (Count e = 0; e < count; e++) {
        if (first[graph->children[begin + e]] != first[graph->children[other + e]])
            return 0;
    }
    return 1;
}

static PyObject *flat_first_equals(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    Graph graph;
    Py_buffer doing_buffer;
    Table table;
    if (flat_expect_count("first_equals", count, 4) < 0 || flat_hold(args, 8, &graph) < 0)
        return NULL;
    if (flat_hold_items(args[3], "what nodes do", 8, graph.size, 0, &doing_buffer) < 0) {
        flat_release(&graph);
        return NULL;
    }
    int failed = flat_table_make(&table, graph.size) < 0;
    const int64_t *doing = doing_buffer.buf;
    int64_t *first = graph.of_nodes;
    Count repeated = 0;
    for (Count i = 0; i < graph.size && !failed; i++) {
        first[i] = i;
        if (graph.starts[i] == graph.starts[i + 1])
            continue;
        uint64_t hash = flat_mixed(0, (uint64_t)doing[i]);
        for (int64_t e = graph.starts[i]; e < graph.starts[i + 1]; e++)
            hash = flat_mixed(hash, (uint64_t)first[graph.children[e]]);
        uint64_t place = hash & table.mask;
        while (table.places[place] >= 0 && !flat_nodes_equal(&graph, doing, first, i, table.places[place]))
            place = (place + 1) & table.mask;
        if (table.places[place] < 0)
            table.places[place] = (int32_t)i;
        first[i] = table.places[place];
        repeated += first[i] != i;
    }
    if (!failed)
        PyMem_RawFree(table.places);
    PyBuffer_Release(&doing_buffer);
    flat_release(&graph);
    return failed ? NULL : PyLong_FromSsize_t(repeated);
}

static PyObject *flat_row_numbers(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    Py_buffer rows_buffer, firsts_buffer, numbers_buffer;
    Table table;
    if (flat_expect_count("row_numbers", count, 3) < 0 || flat_hold_items(args[0], "rows", 8, -1, 0, &rows_buffer) < 0)
        return NULL;
    if (flat_hold_items(args[1], "numbers", 8, -1, 1, &numbers_buffer) < 0) {
        PyBuffer_Release(&rows_buffer);
        return NULL;
    }
    Count rows = numbers_buffer.len / 8, width = rows > 0 ? rows_buffer.len / 8 / rows : 0, made = 0;
    int held = flat_hold_items(args[2], "firsts", 8, rows, 1, &firsts_buffer) == 0;
    int failed = !held || flat_table_make(&table, rows) < 0;
    if (!failed && rows_buffer.len != 8 * width * rows) {
        PyErr_SetString(PyExc_ValueError, "row_numbers: expected a number for each row");
        PyMem_RawFree(table.places);
        failed = 1;
    }
    const uint64_t *facts = rows_buffer.buf;
    int64_t *numbers = numbers_buffer.buf, *firsts = held ? firsts_buffer.buf : NULL;
    for (Count i = 0; i < rows && !failed; i++) {
        const uint64_t *row = facts + i * width;
        uint64_t hash = 0;
        for (Count k = 0; k < width; k++)
            hash = flat_mixed(hash, row[k]);
        uint64_t place = hash & table.mask;
        while (table.places[place] >= 0
               && memcmp(facts + firsts[table.places[place]] * width, row, (size_t)width * sizeof *row) != 0)
            place = (place + 1) & table.mask;
        if (table.places[place] < 0) {
            firsts[made] = i;
            table.places[place] = (int32_t)made++;
        }
        numbers[i] = table.places[place];
    }
    if (!failed)
        PyMem_RawFree(table.places);
    if (held)
        PyBuffer_Release(&firsts_buffer);
    PyBuffer_Release(&numbers_buffer);
    PyBuffer_Release(&rows_buffer);
    return failed ? NULL : PyLong_FromSsize_t(made);
}

#define LOOP(name, doc) {#name, (PyCFunction)(void (*)(void))flat_##name, METH_FASTCALL, INSIDE(doc)}

PyMethodDef flat_functions[] = {
    LOOP(levels, "levels(starts, children, levels, /)\n--\n\nFills in the level of every node."),
    LOOP(latest_levels, "latest_levels(starts, children, levels, /)\n--\n\nLowers levels below those of the users."),
    LOOP(mark_needed, "mark_needed(starts, children, needed, /)\n--\n\nMarks what the marked nodes depend on."),
    LOOP(mark_users, "mark_users(starts, children, marked, /)\n--\n\nMarks what depends on the marked nodes."),
    LOOP(first_equals,
         "first_equals(starts, children, firsts, doing, /)\n--\n\n"
         "Fills in, for every node, the first that equals it; returns how many have another before them."),
    {"follow", flat_follow, METH_O,
     INSIDE("follow(ends, /)\n--\n\nReplaces each node's replacement by the end of its chain of replacements.")},
    LOOP(row_numbers,
         "row_numbers(rows, numbers, firsts, /)\n--\n\nNumbers equal rows alike; returns how many are different."),
    {NULL, NULL, 0, NULL},
};
