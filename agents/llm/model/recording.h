/*
 * Stores requests and responses in files, and replays them without a network and without a key. One
 * file per call, HASH-N.json in a directory; N counts the calls with the same URL and body. Keys
 * are not recorded.
 */
#ifndef LLM_RECORDING_H
#define LLM_RECORDING_H

#include "agents/llm/model/net.h"
#include "agents/web/secret.h"

struct recording;

enum { RECORDING_CALLS_MAX = 100000, RECORDING_FILE_MAX = 80 * 1024 * 1024 };

/* dir and secrets are borrowed. The directory must exist. */
BT_MUST_CHECK enum bt_code recording_new(const char *dir, bool replay,
                                         const struct secrets *secrets, struct recording **ret,
                                         struct bt_error *err);
/* Accepts NULL. */
void recording_free(struct recording *t);
bool recording_replays(const struct recording *t);

/* Records a request and its response; code and why: the call's result. Thread-safe. */
BT_MUST_CHECK enum bt_code recording_record(struct recording *t, const struct net_spec *spec,
                                            const struct net_answer *answer, enum bt_code ended,
                                            const char *why, struct str body, struct bt_error *err);
/* As net_post, from the file. BT_NOT_FOUND when the request was not recorded. Thread-safe. */
BT_MUST_CHECK enum bt_code recording_play(struct recording *t, const struct net_spec *spec,
                                          struct net_answer *ret, struct bt_error *err);
#endif
