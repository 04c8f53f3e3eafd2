/* The skills of the rag agent: index, retrieve. */
#ifndef RAG_RAG_H
#define RAG_RAG_H

#include <limits.h>

#include "agents/sdk/confine.h"
#include "agents/sdk/store/store.h"
#include "agents/web/secret.h"
#include "agents/web/web.h"
#include "protocol/base/arena.h"

struct cJSON;

enum {
    RAG_DEPTH_MAX = 32,        /* of folders */
    RAG_CHUNKS_MAX = 200000,   /* all vectors are compared for a question */
    RAG_DIMENSIONS_MAX = 8192, /* of a vector */
    RAG_CHUNK_BYTES = 1200,    /* a chunk ends at the next good place after so many */
    RAG_CHUNK_MAX = 4000
};

struct rag_embeddings {
    const char *url; /* .../embeddings; NULL = not configured */
    const char *model;
    const char *key; /* NULL = none */
    struct web_policy policy;
    struct secrets secrets;
};

struct rag {
    struct confine folder; /* one root */
    char database[PATH_MAX];
    const char *const *include; /* globs of names, NULL-terminated; never NULL */
    uint64_t max_files, max_file_bytes, max_bytes;
    struct rag_embeddings embeddings;
    struct arena arena;
};

extern const struct bt_skill rag_skills[];
extern const size_t rag_skill_count;

/* settings.c. BT_INVALID names the member and what would be right. */
BT_MUST_CHECK enum bt_code rag_new(const char *settings_json, struct rag **ret,
                                   struct bt_error *err);
/* Accepts NULL. */
void rag_free(struct rag *r);

/* The handlers; self is the struct rag. Thread-safe: each call has its own connection. */
void rag_index(struct bt_step *step, void *self);
void rag_retrieve(struct bt_step *step, void *self);

/* ---- shared by the handlers ---- */

BT_MUST_CHECK enum bt_code rag_open(const struct rag *r, struct bt_step *step, bool may_make,
                                    struct store *ret, struct bt_error *err);

/* chunks.c: calls `put` for each piece of a text, with its lines from 1; stops at an error. */
typedef enum bt_code (*rag_put_chunk)(void *self, struct str text, uint32_t first, uint32_t last,
                                      struct bt_error *err);
BT_MUST_CHECK enum bt_code rag_chunks(struct str text, rag_put_chunk put, void *self,
                                      struct bt_error *err);

/* walk.c: the files below the folder that fit the globs, by path. */
struct rag_file {
    char *path; /* relative to the folder */
    uint64_t size, inode;
    int64_t changed; /* nanoseconds */
};
struct rag_files {
    struct rag_file *at;
    size_t n, cap;
    uint64_t others; /* that fit no glob */
};
/* BT_LIMIT over max_files. Links are not followed; hidden names and the supervisor's are left out.
 */
BT_MUST_CHECK enum bt_code rag_walk(const struct rag *r, struct bt_step *step,
                                    struct rag_files *ret, struct bt_error *err);
void rag_files_done(struct rag_files *f);
/* Reads a whole file of the walk. */
BT_MUST_CHECK enum bt_code rag_read(const struct rag *r, const char *path, struct buf *out,
                                    struct bt_error *err);

/* embed.c: the vectors of n texts, each of *ret_dimensions floats and of length 1, one after the
 * other; the caller frees. BT_INVALID when the answer is not what an OpenAI-compatible endpoint
 * sends. */
BT_MUST_CHECK enum bt_code rag_embed(const struct rag *r, struct bt_step *step,
                                     const struct str *texts, size_t n, float **ret,
                                     uint32_t *ret_dimensions, struct bt_error *err);
#endif
