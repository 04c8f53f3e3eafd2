/* A model's answer as a plan: whatever it is, it is read or refused in words; what is accepted
 * comes back the same after a restart, names only agents that there are, and can be put into an
 * order. */
#include <stdlib.h>

#include "protocol/wire/doc.h"
#include "protocol/wire/msg.h"
#include "supervisor/plan/read.h"
#include "supervisor/plan/reader_internal.h"

enum { PROBLEMS_MAX = 16, AGENTS_MAX = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct registry_limits limits = {
    .agents = AGENTS_MAX, .instances = AGENTS_MAX, .lease_ms = 3000, .suspect_ms = 2000};

static const char *const cards[] = {
    "{\"agentId\":\"files\",\"name\":\"Files\",\"skills\":[{\"id\":\"read\",\"name\":\"Read\","
    "\"description\":\"Reads a file\",\"inputSchema\":{\"type\":\"object\",\"properties\":{"
    "\"path\":{\"type\":\"string\"}},\"required\":[\"path\"],\"additionalProperties\":false}}]}",
    "{\"agentId\":\"calc\",\"name\":\"Calc\",\"skills\":[{\"id\":\"evaluate\",\"name\":\"Sum\","
    "\"description\":\"Adds up\"},{\"id\":\"report\",\"name\":\"Report\","
    "\"description\":\"Writes\"}]}",
};

static void require(bool ok)
{
    if (!ok) {
        abort();
    }
}

static struct registry *house(struct arena *arena)
{
    struct registry *registry = registry_init(malloc(registry_size(&limits)), &limits);
    struct bt_error err;

    for (size_t i = 0; i < sizeof cards / sizeof cards[0]; i++) {
        struct msg_card *card = arena_alloc(arena, sizeof *card);
        struct uuid id = {.b = {(uint8_t)(i + 1)}};
        struct buf doc;
        uint32_t agent;

        buf_init(&doc, 1 << 16);
        require(json_to_doc(str_from(cards[i]), NULL, &doc, &err) == BT_OK);
        require(msg_read_doc(arena, doc_copy(arena, doc_from_buf(&doc)), MSG_card, card, &err) ==
                BT_OK);
        agent = registry_agent_add(registry, card->agent_id, 1);
        registry_agent_card(registry, agent, card);
        require(registry_register(registry, agent, id, 2, 1) != REGISTRY_NONE);
        buf_done(&doc);
    }
    return registry;
}

/* Each dependency lies on a step, and following them comes to an end. */
static void require_order(const struct plan *p)
{
    uint32_t *left = calloc(p->n_steps + 1, sizeof *left);
    uint32_t gone = 0;

    require(left != NULL);
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < p->n_steps; i++) {
            const struct plan_step *s = &p->steps[i];
            bool ready = left[i] == 0;
            for (uint32_t k = 0; ready && k < s->deps_n; k++) {
                require(p->deps[s->deps_at + k] < p->n_steps);
                ready = left[p->deps[s->deps_at + k]] != 0;
            }
            if (ready) {
                left[i] = 1;
                gone++;
                moved = true;
            }
        }
    }
    require(gone == p->n_steps);
    free(left);
}

static void accepted(struct plan *p, const struct buf *normalised, struct registry *registry,
                     struct arena *arena)
{
    struct plan_defaults defaults = plan_defaults_builtin();
    struct plan *again = NULL;
    struct bt_error err;
    struct buf out;

    buf_init(&out, 1 << 24);
    require_order(p);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        bool nobody = p->steps[i].agent_id.len == 0;
        require(nobody || str_is(p->steps[i].agent_id, "files") ||
                str_is(p->steps[i].agent_id, "calc"));
    }
    require(plan_read_canonical(doc_from_buf(normalised), &defaults, registry, arena, &again,
                                &err) == BT_OK);
    require(plan_write(again, &out, &err) == BT_OK);
    require(out.len == normalised->len && memcmp(out.at, normalised->at, out.len) == 0);
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct registry *registry;
    static struct arena kept;
    struct plan_defaults defaults = plan_defaults_builtin();
    struct problem at[PROBLEMS_MAX];
    struct problems problems = {.at = at, .cap = PROBLEMS_MAX};
    struct arena arena = {0};
    struct plan *plan = NULL;
    struct bt_error err;
    struct buf doc;
    struct buf normalised;

    if (registry == NULL) {
        registry = house(&kept);
    }
    buf_init(&doc, json_doc_capacity(size));
    buf_init(&normalised, 1 << 24);
    if (json_to_doc((struct str){(const char *)data, size}, NULL, &doc, &err) == BT_OK) {
        if (plan_read(doc_from_buf(&doc), &defaults, registry, &arena, &plan, &problems,
                      &normalised, &err) == BT_OK) {
            require(problems.errors == 0);
            accepted(plan, &normalised, registry, &arena);
        } else {
            require(err.msg[0] != 0);
        }
    }
    buf_done(&doc);
    buf_done(&normalised);
    arena_done(&arena);
    return 0;
}
