/*
 * The words that work begins with, as far as the cards of the registered agents tell: "count" in
 * "read a.log and count the installs" begins a thing to do, "counts" in "the logs and counts" does
 * not. Private to this folder.
 */
#ifndef PLANNER_VERBS_H
#define PLANNER_VERBS_H

#include "protocol/base/arena.h"
#include "protocol/base/err.h"
#include "protocol/base/map.h"
#include "registry/registry.h"

struct verbs {
    struct arena *arena;
    struct map known; /* word -> how it is known */
    struct map stems;
};

/* NULL for no cards. Everything but the maps lives in the arena. */
BT_MUST_CHECK enum bt_code verbs_init(struct verbs *v, const struct registry *registry,
                                      struct arena *arena, struct bt_error *err);
void verbs_done(struct verbs *v);
/* Whether the text begins with something to do. */
bool verbs_begin(const struct verbs *v, struct str text);
/* Whether the word, in any form, is one that work begins with. */
bool verbs_know(const struct verbs *v, struct str word);
/* A skill that the supervisor asks with questions of its own: no work of a goal. */
bool verbs_is_question(struct str skill_id);
#endif
