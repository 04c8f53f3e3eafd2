/* A registry with small numbers: leases of 300 ms, suspicion after 200 ms. */
#ifndef TEST_REGISTRY_FIXTURE_H
#define TEST_REGISTRY_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "protocol/wire/msg.h"
#include "registry/card.h"
#include "registry/registry.h"

static const struct registry_limits small = {
    .agents = 4, .instances = 4, .lease_ms = 300, .suspect_ms = 200, .epoch_base = 10};

static inline int registry_setup(void **state)
{
    void *mem = malloc(registry_size(&small));
    if (mem == NULL) {
        return -1;
    }
    *state = registry_init(mem, &small);
    return 0;
}

static inline int registry_teardown(void **state)
{
    free(*state);
    return 0;
}

static inline struct uuid id_of(uint8_t n)
{
    return (struct uuid){.b = {n, 1, 2, 3, (uint8_t)(n * 7)}};
}

/* A live instance with all its lanes up. */
static inline uint32_t ready(struct registry *r, uint32_t agent, uint8_t n, uint32_t capacity,
                             msec now)
{
    const uint32_t slot = registry_register(r, agent, id_of(n), capacity, now);
    assert_int_not_equal(slot, REGISTRY_NONE);
    for (uint32_t lane = 0; lane < capacity; lane++) {
        registry_lane_set(r, slot, lane, true);
    }
    return slot;
}

static inline struct instance_view view_of(const struct registry *r, uint32_t slot)
{
    struct instance_view v;
    assert_true(registry_instance_view(r, slot, &v));
    return v;
}

#define add(r, name, now) registry_agent_add(r, STR_LIT(name), now)
#endif
