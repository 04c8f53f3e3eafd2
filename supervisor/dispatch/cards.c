#include "supervisor/dispatch/cards.h"

#include "protocol/base/log.h"
#include "supervisor/dispatch/dispatch_internal.h"

struct agent_card *agent_card_of(struct engine *engine, uint32_t agent)
{
    struct agent_card *kept = &dispatch_of(engine)->cards[agent];
    const uint32_t generation = registry_agent_generation(engine_registry(engine), agent);

    if (kept->generation != generation) {
        arena_done(&kept->arena);
        *kept = (struct agent_card){.generation = generation};
    }
    return kept;
}

static enum bt_code copy_card(struct agent_card *kept, struct doc bytes, uint64_t hash,
                              struct bt_error *err)
{
    struct arena fresh = {0};
    struct msg_card copy;
    struct doc doc = doc_copy(&fresh, bytes);
    enum bt_code code = doc.ptr == NULL ? err_set(err, BT_NOMEM, "out of memory for a card")
                                        : msg_read_doc(&fresh, doc, MSG_card, &copy, err);

    if (code != BT_OK) {
        arena_done(&fresh);
        return code;
    }
    arena_done(&kept->arena);
    kept->arena = fresh;
    kept->card = copy;
    kept->hash = hash;
    return BT_OK;
}

enum bt_code agent_card_keep(struct engine *engine, uint32_t agent, const struct msg_card *card,
                             struct bt_error *err)
{
    struct agent_card *kept = agent_card_of(engine, agent);
    struct msg_part part = {MSG_card, card};
    struct buf bytes;
    uint64_t hash;
    enum bt_code code;

    buf_init(&bytes, LIMIT_STEP_BYTES);
    code = msg_write(&bytes, WIRE_MSGPACK, &part, 1, err);
    if (code == BT_OK) {
        hash = str_hash(buf_str(&bytes));
        if (kept->hash != hash) {
            code = copy_card(kept, doc_from_buf(&bytes), hash, err);
            if (code == BT_OK) {
                registry_agent_card(engine_registry(engine), agent, &kept->card);
            }
        }
    }
    buf_done(&bytes);
    return code;
}

/* ---- what outlives the daemon ---- */

enum bt_code agent_remember(struct engine *engine, uint32_t agent, struct bt_error *err)
{
    const struct agent_view view = registry_agent_view(engine_registry(engine), agent);
    const struct msg_part part = {MSG_card, view.card};
    struct buf bytes;
    enum bt_code code;

    if (view.card == NULL) {
        return BT_OK;
    }
    buf_init(&bytes, LIMIT_STEP_BYTES);
    code = msg_write(&bytes, WIRE_MSGPACK, &part, 1, err);
    if (code == BT_OK) {
        const struct journal_agent a = {
            .id = view.id, .seen_wall = engine_wall(engine), .card = buf_str(&bytes)};
        code = journal_agent_put(engine_journal(engine), &a, err);
    }
    buf_done(&bytes);
    return code;
}

static void recall(const struct journal_agent *a, void *self)
{
    struct engine *engine = self;
    struct registry *registry = engine_registry(engine);
    const uint32_t known = registry_agent(registry, a->id);
    struct agent_card *kept;
    struct bt_error err;
    uint32_t agent;

    if (known != REGISTRY_NONE && registry_agent_view(registry, known).card != NULL) {
        return;
    }
    agent = registry_agent_add(registry, a->id, engine_now(engine));
    if (agent == REGISTRY_NONE) {
        return; /* those that are there need the room */
    }
    kept = agent_card_of(engine, agent);
    if (copy_card(kept, (struct doc){(const uint8_t *)a->card.ptr, a->card.len}, str_hash(a->card),
                  &err) == BT_OK) {
        registry_agent_recall(registry, agent, &kept->card);
    } else {
        log_warn("agent.not_recalled", "agent=%.*s %s", STR_ARG(a->id), err.msg);
    }
}

enum bt_code agents_recall(struct engine *engine, struct bt_error *err)
{
    return journal_agents(engine_journal(engine), recall, engine, err);
}
