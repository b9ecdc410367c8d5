/* Memory for nodes: 2 MiB slabs, each with a bit per node that says it is free.
 *
 * The free node with the lowest address is handed out first, whatever the order in which nodes were freed. So a
 * graph lies in memory in the order in which it was made, which is what backward() and freeing then walk along,
 * and a training loop builds its graph in the same warm memory again and again. Empty slabs go back to the system. */

#include "value.h"

#if defined(_WIN32)
#include <malloc.h>
#else
#include <sys/mman.h>
#endif

/* In a sanitizer build, a node that was given back must not be touched. */
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define FORBID(node) ASAN_POISON_MEMORY_REGION(node, sizeof(Value))
#define ALLOW(node) ASAN_UNPOISON_MEMORY_REGION(node, sizeof(Value))
#define ALLOW_ALL(slab) ASAN_UNPOISON_MEMORY_REGION(slab, SLAB_BYTES)
#else
#define FORBID(node) ((void)0)
#define ALLOW(node) ((void)0)
#define ALLOW_ALL(slab) ((void)0)
#endif

#define SLAB_BYTES (UINT64_C(2) << 20)
#define EMPTY_SLABS_KEPT 40 /* 80 MiB: graphs of a million nodes find their memory warm */

#define NODES (SLAB_BYTES / sizeof(Value))
#define WORDS ((NODES + 63) / 64)
#define SUMMARY_WORDS ((WORDS + 63) / 64)

typedef struct Slab Slab;
struct Slab {
    uint64_t free[WORDS];            /* a bit per node: it is free */
    uint64_t summary[SUMMARY_WORDS]; /* a bit per word of `free`: it has a free node */
    size_t live;                     /* nodes handed out, or in hand */
    int listed;                      /* in the list of slabs with room */
    uint32_t *scopes;                /* the scope each node was made in; NULL as long as none was made in one */
    Slab *next;                      /* in that list, or in the list of empty slabs */
};

/* The slab's own facts lie where its first nodes would. */
#define HEADER_NODES ((sizeof(Slab) + sizeof(Value) - 1) / sizeof(Value))

/* The slab that nodes are taken from, and those in hand: the set bits of one word of it. */
static Slab *current;
static uint64_t in_hand;
static Value *in_hand_first;

static Slab *with_room;
static Slab *empty_slabs;
static size_t empty_count;

static inline Slab *slab_of(Value *node)
{
    return (Slab *)((uintptr_t)node & ~(uintptr_t)(SLAB_BYTES - 1));
}

#if defined(__GNUC__)
static inline int slab_lowest_bit(uint64_t bits) { return __builtin_ctzll(bits); }
static inline int slab_count_bits(uint64_t bits) { return __builtin_popcountll(bits); }
#else
static inline int slab_lowest_bit(uint64_t bits)
{
    int n = 0;
    while (!(bits >> n & 1))
        n++;
    return n;
}

static inline int slab_count_bits(uint64_t bits)
{
    int n = 0;
    for (; bits; bits &= bits - 1)
        n++;
    return n;
}
#endif

#if defined(_WIN32)

static void *slab_map(void)
{
    return _aligned_malloc(SLAB_BYTES, SLAB_BYTES);
}

static void slab_unmap(Slab *slab)
{
    _aligned_free(slab);
}

#else

static void *slab_map(void)
{
    /* twice the size, so that an aligned slab is inside; the rest goes back at once */
    char *start = mmap(NULL, 2 * SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    char *slab = (char *)(((uintptr_t)start + SLAB_BYTES - 1) & ~(uintptr_t)(SLAB_BYTES - 1));
    if (slab > start)
        munmap(start, (size_t)(slab - start));
    char *end = start + 2 * SLAB_BYTES;
    if (end > slab + SLAB_BYTES)
        munmap(slab + SLAB_BYTES, (size_t)(end - slab - SLAB_BYTES));
#ifdef MADV_HUGEPAGE
    madvise(slab, SLAB_BYTES, MADV_HUGEPAGE);
#endif
    return slab;
}

static void slab_unmap(Slab *slab)
{
    munmap(slab, SLAB_BYTES);
}

#endif

/* Scopes cost nothing until the first is opened; from then on, four bytes a node beside the nodes themselves. */
int scopes_in_use;

INTERNAL void slab_tag(Value *node)
{
    Slab *slab = slab_of(node);
    modes_look();
    if (slab->scopes == NULL) {
        if (modes.scope == 0)
            return;
        slab->scopes = PyMem_RawCalloc(NODES, sizeof *slab->scopes);
        if (slab->scopes == NULL)
            return; /* the node is shown outside its scope, which is better than not at all */
    }
    slab->scopes[node - (Value *)slab] = modes.scope;
}

INTERNAL unsigned slab_scope(Value *node)
{
    Slab *slab = slab_of(node);
    return slab->scopes == NULL ? 0 : slab->scopes[node - (Value *)slab];
}

static Slab *slab_new(void)
{
    Slab *slab = slab_map();
    if (slab == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    memset(slab, 0, sizeof *slab);
    for (size_t i = HEADER_NODES; i < NODES; i++)
        slab->free[i / 64] |= UINT64_C(1) << (i % 64);
    for (size_t word = 0; word < WORDS; word++) {
        if (slab->free[word] != 0)
            slab->summary[word / 64] |= UINT64_C(1) << (word % 64);
    }
    return slab;
}

/* Takes the lowest word of the slab that has a free node in hand; false if the slab is full. */
static int slab_take_in_hand(Slab *slab)
{
    for (size_t i = 0; i < SUMMARY_WORDS; i++) {
        if (slab->summary[i] != 0) {
            size_t word = i * 64 + (size_t)slab_lowest_bit(slab->summary[i]);
            slab->summary[i] &= slab->summary[i] - 1;
            in_hand = slab->free[word];
            in_hand_first = (Value *)slab + word * 64;
            slab->free[word] = 0;
            slab->live += (size_t)slab_count_bits(in_hand);
            return 1;
        }
    }
    return 0;
}

static int slab_find_room(void)
{
    while (current == NULL || !slab_take_in_hand(current)) {
        if (with_room != NULL) {
            current = with_room;
            with_room = current->next;
            current->listed = 0;
        }
        else if (empty_slabs != NULL) {
            current = empty_slabs;
            empty_slabs = current->next;
            empty_count--;
        }
        else {
            Slab *slab = slab_new();
            if (slab == NULL)
                return -1;
            current = slab;
        }
    }
    return 0;
}

INTERNAL inline Value *slab_take(void)
{
    if (in_hand == 0 && slab_find_room() < 0)
        return NULL;
    Value *node = in_hand_first + slab_lowest_bit(in_hand);
    in_hand &= in_hand - 1;
    ALLOW(node);
    return node;
}

static void slab_fell_empty(Slab *slab)
{
    if (slab->listed) {
        Slab **place = &with_room; /* usually the first: it was listed when its first node was freed */
        while (*place != slab)
            place = &(*place)->next;
        *place = slab->next;
        slab->listed = 0;
    }
    if (empty_count >= EMPTY_SLABS_KEPT) {
        PyMem_RawFree(slab->scopes);
        ALLOW_ALL(slab);
        slab_unmap(slab);
        return;
    }
    slab->next = empty_slabs;
    empty_slabs = slab;
    empty_count++;
}

INTERNAL inline void slab_give(Value *node)
{
    Slab *slab = slab_of(node);
    size_t index = (size_t)(node - (Value *)slab), word = index / 64;
    FORBID(node);
    if (slab->free[word] == 0)
        slab->summary[word / 64] |= UINT64_C(1) << (word % 64);
    slab->free[word] |= UINT64_C(1) << (index % 64);
    slab->live--;
    if (slab == current)
        return;
    if (slab->live == 0) {
        slab_fell_empty(slab);
    }
    else if (!slab->listed) {
        slab->next = with_room;
        with_room = slab;
        slab->listed = 1;
    }
}
