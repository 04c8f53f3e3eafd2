/*
 * What became of a plan, read from its rows in the journal: the same for a running plan and for one
 * that ended last year. Everything lives in the story's arena.
 */
#ifndef BUS_STORY_H
#define BUS_STORY_H

#include "protocol/base/arena.h"
#include "protocol/wire/msg.h"
#include "supervisor/core/record.h"

struct bus;
struct plan;

struct story {
    struct arena arena;
    struct plan *plan;
    struct msg_plan_view view; /* steps filled in */
    struct blob_ref *results;  /* by step */
    struct blob_ref summary;   /* the aggregated result */
    struct msg_handoff_record *handoffs;
    uint32_t handoffs_n, handoffs_cap;
    uint64_t last_seq;
    bool ended;
};

/* BT_NOT_FOUND "No state found for <id>"; BT_IO when the journal is damaged there. story_done in
 * every case. */
BT_MUST_CHECK enum bt_code story_read(struct bus *b, struct str plan_id, struct story *ret,
                                      struct bt_error *err);
void story_done(struct story *s);
#endif
