/*
 * Prompts out of instructions, which are ours and the plan's, and data, which came from other
 * agents. Data stands in frames that say where it is from and whose mark occurs in none of the
 * data, so that no text can end its frame:
 *
 *     [data 5f0c from the result of step s1]
 *     ...
 *     [end 5f0c]
 *
 * The same parts give the same prompt: no chance, no clock (recordings are found by it). Pure but
 * for the heap.
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
};

/* data_bytes: room for all frames together; a text that does not fit is cut, and the cut is told.
 */
void prompt_init(struct prompt *p);
void prompt_done(struct prompt *p);
/* Instructions: of this program, its owner, or the plan. Borrowed until prompt_make. */
void prompt_instruct(struct prompt *p, const char *text);
/* Data. from is ours. An empty or NULL text is left out. Borrowed until prompt_make. */
void prompt_data(struct prompt *p, const char *from, const char *text);
/* Makes user and system; extra: the owner's addition to the rules, or NULL. */
BT_MUST_CHECK enum bt_code prompt_make(struct prompt *p, const char *extra, size_t data_bytes,
                                       struct bt_error *err);
/* A mark that occurs in no part: made from h, and made again when it does. Looking is what makes it
 * safe, not that it is hard to guess. False when a thousand marks all occur. */
bool prompt_mark(const struct prompt *p, uint64_t h, char ret[PROMPT_MARK_LEN + 1]);
#endif
