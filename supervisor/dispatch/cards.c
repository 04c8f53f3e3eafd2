#include "supervisor/dispatch/cards.h"

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
