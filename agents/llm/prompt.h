/*
 * Builds prompts from instructions (of this program and the plan) and data (of other agents). Data
 * is framed with its source and a mark that occurs in none of the data. So no text can close its
 * own frame:
 *
 *   [data 5f0c from the result of step s1]
 *   ...
 *   [end 5f0c]
 *
 * The same parts give the same prompt, without randomness or time, because recordings are found by
 * it. Pure except for the heap.
 */
#ifndef LLM_AGENT_PROMPT_H
#define LLM_AGENT_PROMPT_H

#include "protocol/base/buf.h"

enum { PROMPT_PARTS_MAX = 16, PROMPT_MARK_LEN = 16 };

struct prompt_part {
    const char *from; /* NULL: an instruction */
    struct str text;  /* borrowed */
};

struct prompt {
    struct prompt_part parts[PROMPT_PARTS_MAX];
    uint32_t n;
    struct buf user;
    struct buf system;
    size_t left_out; /* bytes of data that did not fit */
};

/* data_bytes: room for all frames together. A text that does not fit is cut and marked as cut. */
void prompt_init(struct prompt *p);
void prompt_done(struct prompt *p);
/* Adds an instruction of this program, its operator, or the plan. Borrowed until prompt_make. */
void prompt_instruct(struct prompt *p, const char *text);
/* Adds data. `from` is this program's text. An empty or NULL text is left out. Borrowed until
 * prompt_make. */
void prompt_data(struct prompt *p, const char *from, const char *text);
/* Makes user and system. extra: the operator's addition to the instructions, or NULL. */
BT_MUST_CHECK enum bt_code prompt_make(struct prompt *p, const char *extra, size_t data_bytes,
                                       struct bt_error *err);
/* A mark that occurs in no part, derived from h; retried when it does occur. The search makes it
 * safe, not that it is hard to guess. False when a thousand marks all occur. */
bool prompt_mark(const struct prompt *p, uint64_t h, char ret[PROMPT_MARK_LEN + 1]);
#endif
