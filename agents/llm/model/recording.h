/*
 * Requests and answers in files, so that a run can be had again without a network and without a
 * key. One file per call, HASH-N.json in a directory: N counts the calls with the same URL and
 * body. Keys are neither recorded nor needed.
 */
#ifndef LLM_TAPE_H
#define LLM_TAPE_H

#include "agents/llm/model/net.h"
#include "agents/llm/model/secret.h"

struct tape;

enum { TAPE_CALLS_MAX = 100000, TAPE_FILE_MAX = 80 * 1024 * 1024 };

/* dir and secrets are borrowed. The directory must exist. */
BT_MUST_CHECK enum bt_code tape_new(const char *dir, bool replay, const struct secrets *secrets,
                                    struct tape **ret, struct bt_error *err);
/* Accepts NULL. */
void tape_free(struct tape *t);
bool tape_replays(const struct tape *t);

/* What went and came. code and why: how the call ended. Any thread. */
BT_MUST_CHECK enum bt_code tape_record(struct tape *t, const struct net_spec *spec,
                                       const struct net_answer *answer, enum bt_code ended,
                                       const char *why, struct str body, struct bt_error *err);
/* As net_post, out of the file. BT_NOT_FOUND when this was never recorded. Any thread. */
BT_MUST_CHECK enum bt_code tape_play(struct tape *t, const struct net_spec *spec,
                                     struct net_answer *ret, struct bt_error *err);
#endif
