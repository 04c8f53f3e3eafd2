/* Two agents for fuzzers that plan. */
#ifndef FUZZ_HOUSE_H
#define FUZZ_HOUSE_H

#include <stdlib.h>

#include "protocol/wire/doc.h"
#include "protocol/wire/msg.h"
#include "registry/registry.h"

static const char *const house_cards[] = {
    "{\"agentId\":\"files\",\"name\":\"Files\",\"skills\":[{\"id\":\"read\",\"name\":\"Read a "
    "file\","
    "\"tags\":[\"file\",\"log\"],\"examples\":[\"read the "
    "log\"],\"inputSchema\":{\"type\":\"object\","
    "\"properties\":{\"path\":{\"type\":\"string\",\"x-baton-fill\":\"path\"}},\"required\":["
    "\"path\"]}"
    "},{\"id\":\"list\",\"tags\":[\"folder\"],\"examples\":[\"list the files\"]}]}",
    "{\"agentId\":\"calc\",\"skills\":[{\"id\":\"count\",\"examples\":[\"count the lines\"],"
    "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\","
    "\"x-baton-fill\":\"previous or quoted\"},\"n\":{\"x-baton-fill\":\"number\"}}}},"
    "{\"id\":\"report\",\"examples\":[\"report it\"],\"inputSchema\":{\"type\":\"object\","
    "\"properties\":{\"data\":{\"x-baton-fill\":\"previous\"}}}},{\"id\":\"gate\"}]}",
};

static inline void require(bool ok)
{
    if (!ok) {
        abort();
    }
}

static inline struct registry *house(struct arena *arena)
{
    const struct registry_limits limits = {
        .agents = 8, .instances = 8, .lease_ms = 3000, .suspect_ms = 2000};
    struct registry *registry = registry_init(malloc(registry_size(&limits)), &limits);
    struct bt_error err;
    for (size_t i = 0; i < sizeof house_cards / sizeof house_cards[0]; i++) {
        struct msg_card *card = arena_alloc(arena, sizeof *card);
        const struct uuid id = {.b = {(uint8_t)(i + 1)}};
        struct buf doc;
        buf_init(&doc, 1 << 16);
        require(json_to_doc(str_from(house_cards[i]), NULL, &doc, &err) == BT_OK);
        require(msg_read_doc(arena, doc_copy(arena, doc_from_buf(&doc)), MSG_card, card, &err) ==
                BT_OK);
        const uint32_t agent = registry_agent_add(registry, card->agent_id, 1);
        registry_agent_card(registry, agent, card);
        require(registry_register(registry, agent, id, 2, 1) != REGISTRY_NONE);
        buf_done(&doc);
    }
    return registry;
}
#endif
