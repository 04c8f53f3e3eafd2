/*
 * The allocations of a program in the hands of its test: one fails, or all from it on; what is
 * still there is counted, and no block that is given back may have a secret in it. For one source
 * of a program that is linked with
 *
 *     target_link_options(NAME PRIVATE ${BT_MEMORY})
 *
 * Either memory_left is set, and -1 again; or memory_begin and memory_end stand around what is
 * tested. What libraries allocate for themselves is theirs; cJSON's allocations are those of the
 * program when it has hooks that call malloc and free there. memory_left is the thread's own: what
 * other threads allocate does not fail. A source that defines MEMORY_OF as _Atomic has one of all
 * threads.
 */
#ifndef SUPPORT_MEMORY_H
#define SUPPORT_MEMORY_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *at, size_t n);
void __real_free(void *at);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *at, size_t n);
void __wrap_free(void *at);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t n);

#ifndef MEMORY_OF
#define MEMORY_OF _Thread_local
#endif

enum { MEMORY_BLOCKS = 4096 };

struct memory_block {
    void *at;
    size_t n;
};

/* So many allocations succeed, then one fails, and this is -1: all do. */
static MEMORY_OF long memory_left = -1;
/* All others fail, too, and memory_left stays 0. */
static bool memory_for_good;
/* While it is not 0, none fails: a fake is at work. NULL = none is. */
static const int *memory_pause;
static MEMORY_OF bool memory_failed; /* one has, since a test set this to false */
static MEMORY_OF long memory_pieces; /* allocated, and not given back */

/* The allocation that fails, counted from memory_begin; 0 = none. */
static long memory_fails;
static long memory_made;
static bool memory_watched;
static struct memory_block memory_blocks[MEMORY_BLOCKS];
static int memory_top; /* the first that was never in use */
/* Bytes that no block may have when it is given back; NULL = none. */
static const void *memory_secret;
static size_t memory_secret_n;
static unsigned memory_told; /* blocks that had it */

static inline void *memory_note(void *at, size_t n)
{
    memory_pieces += at != NULL;
    for (int i = 0; at != NULL && memory_watched && i < MEMORY_BLOCKS; i++) {
        if (memory_blocks[i].at == NULL) {
            memory_blocks[i] = (struct memory_block){at, n};
            memory_top = i < memory_top ? memory_top : i + 1;
            break;
        }
    }
    return at;
}

static inline void memory_forget(void *at)
{
    memory_pieces -= at != NULL;
    for (int i = 0; at != NULL && i < memory_top; i++) {
        if (memory_blocks[i].at == at) {
            if (memory_secret != NULL &&
                memmem(at, memory_blocks[i].n, memory_secret, memory_secret_n) != NULL) {
                memory_told++;
            }
            memory_blocks[i].at = NULL;
        }
    }
}

static inline bool memory_is_out(void)
{
    const bool out = memory_left == 0;

    if (memory_pause != NULL && *memory_pause != 0) {
        return false;
    }
    memory_made += memory_watched;
    memory_left -= memory_left > 0 || (out && !memory_for_good);
    memory_failed = memory_failed || out;
    return out;
}

void *__wrap_malloc(size_t n)
{
    return memory_is_out() ? NULL : memory_note(__real_malloc(n), n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return memory_is_out() ? NULL : memory_note(__real_calloc(n, size), n * size);
}

/* A block that is watched moves in any case. */
void *__wrap_realloc(void *at, size_t n)
{
    void *ret;

    if (memory_is_out()) {
        return NULL;
    }
    for (int i = 0; at != NULL && i < memory_top; i++) {
        if (memory_blocks[i].at == at) {
            const size_t was = memory_blocks[i].n;
            ret = memory_note(__real_malloc(n), n);
            assert_non_null(ret);
            memcpy(ret, at, was < n ? was : n);
            __wrap_free(at);
            return ret;
        }
    }
    memory_pieces -= at != NULL;
    ret = __real_realloc(at, n);
    return memory_note(ret, n);
}

void __wrap_free(void *at)
{
    memory_forget(at);
    __real_free(at);
}

char *__wrap_strndup(const char *text, size_t n)
{
    const size_t len = strnlen(text, n);
    char *at = __wrap_malloc(len + 1);

    if (at != NULL) {
        memcpy(at, text, len);
        at[len] = 0;
    }
    return at;
}

char *__wrap_strdup(const char *text)
{
    return __wrap_strndup(text, strlen(text));
}

/* From now on; the n-th allocation fails, 0 = none. */
static inline void memory_begin(long fails)
{
    memset(memory_blocks, 0, sizeof memory_blocks);
    memory_top = 0;
    memory_left = fails - 1;
    memory_fails = fails;
    memory_made = 0;
    memory_told = 0;
    memory_watched = true;
}

/* Whether the allocation that was to fail was asked for. Fails the test when anything is left of
 * what was allocated since memory_begin. */
static inline bool memory_end(void)
{
    memory_watched = false;
    memory_left = -1;
    for (int i = 0; i < memory_top; i++) {
        if (memory_blocks[i].at != NULL) {
            fail_msg("%zu bytes are left, of allocations without number %ld", memory_blocks[i].n,
                     memory_fails);
        }
    }
    return memory_fails > 0 && memory_made >= memory_fails;
}
#endif
