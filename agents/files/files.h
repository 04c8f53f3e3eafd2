/* The skills of the files agent, and their shared helpers. */
#ifndef FILES_FILES_H
#define FILES_FILES_H

#include "agents/sdk/confine.h"
#include "agents/sdk/step.h"
#include "baton/agent.h"

enum {
    FILES_READ_DEFAULT = 2 * 1024 * 1024,
    FILES_READ_MAX = 2560 * 1024 /* with its envelope a result stays within 3 MiB */
};

struct files {
    struct confine read;
    struct confine write;
    size_t max_bytes;
};

extern const struct bt_skill files_skills[];
extern const size_t files_skill_count;

/* Reads {roots, writeRoots, maxBytes} and opens the roots. BT_INVALID names the wrong member. */
BT_MUST_CHECK enum bt_code files_new(const char *settings_json, struct files **ret,
                                     struct bt_error *err);
/* Accepts NULL. */
void files_free(struct files *f);

/* The handlers; self is the struct files. Thread-safe. */
void files_read(struct bt_step *step, void *self);
void files_list(struct bt_step *step, void *self);
void files_grep(struct bt_step *step, void *self);
void files_count(struct bt_step *step, void *self);
void files_csv(struct bt_step *step, void *self);
void files_write(struct bt_step *step, void *self);
void files_render(struct bt_step *step, void *self);

/* ---- shared by the handlers ---- */

/* A parameter as bytes; {NULL, 0} when it is missing or not a string. Zero bytes in it are kept. */
struct str files_param(const struct bt_step *step, const char *name);
/* A parameter as a whole number within bounds, or the fallback. */
uint32_t files_param_count(struct bt_step *step, const char *name, uint32_t fallback, uint32_t max);
/* Replies with the document and, when not NULL, a text. Fails the step when a buffer is bad. */
void files_reply(struct bt_step *step, const struct buf *data, const struct buf *text);
/* Appends up to `want` bytes from `offset` on; fewer at the end of the file. */
BT_MUST_CHECK enum bt_code files_read_bytes(int fd, uint64_t offset, size_t want, struct buf *out,
                                            struct bt_error *err);
/* Append one member to a map under construction. */
void files_put_text(struct buf *out, const char *key, struct str value);
void files_put_count(struct buf *out, const char *key, uint64_t value);
void files_put_bool(struct buf *out, const char *key, bool value);
#endif
