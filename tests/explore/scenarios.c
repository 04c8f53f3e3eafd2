#include "tests/explore/scenarios.h"

#include <stdio.h>
#include <string.h>

/* Every kind of trouble, `n` of them on a path. */
#define TROUBLES(n)                                                                                \
    {                                                                                              \
        .faults = (n), .registrations = 1, .gones = 1, .restarts = 1, .losses = 1, .unsent = 1,    \
        .strays = 1, .pauses = 1, .modifies = 1, .cancels = 1                                      \
    }

/* Small plans, one feature each. */
static const struct scenario features[] = {
    {"gate", "A; B<A(gate=y retries=1 timeout=30)", "xy", TROUBLES(2)},
    {"gate", "A; B<A(gate=y closed check=30 skip)", "xy", TROUBLES(2)},
    {"gate", "A; B<A(gate=x approve check=30 approval=30 continue)", "x", TROUBLES(2)},
    {"verify", "A(verify=y retries=1 timeout=30)", "xy", TROUBLES(2), SAYS(UNVERIFIED)},
    {"verify", "A(verify=x open check=30 timeout=30 retries=1)", "xx", TROUBLES(2)},
    {"verify", "A(verify=y onverify=ask unsafe timeout=30 retries=1)", "xy", TROUBLES(2),
     SAYS(UNVERIFIED)},
    {"people", "A(review); B<A(approve approval=60 retries=1 timeout=30)", "x", TROUBLES(2)},
    {"people", "A(unsafe retries=1 timeout=30 approval=60); B@y", "xy", TROUBLES(2), SAYS(AGAIN)},
    {"people", "signoff: A(retries=1); B<A(review approval=30)", "x", TROUBLES(2)},
};

static const char *const shapes_policies[][4] = {
    {"(retries=1 timeout=30)", "@y(timeout=30)", "(continue timeout=30)", "@y(always timeout=30)"},
};

static int each_shape(bool deep, int (*explore)(const struct scenario *s, void *arg), void *arg)
{
    char text[256];
    struct scenario s = {.family = "shapes", .plan = text, .bodies = "xy", .left = TROUBLES(1)};
    (void)deep;
    for (uint32_t n = 1; n <= 4; n++) {
        for (uint32_t edges = 0; edges < 1u << (n * (n - 1) / 2); edges++) {
            (void)snprintf(text, sizeof text, "par: ");
            uint32_t bit = 0;
            for (uint32_t i = 0; i < n; i++) {
                const char *policy = shapes_policies[0][i];
                char deps[16] = "";
                for (uint32_t k = 0; k < i; k++, bit++) {
                    if ((edges & 1u << bit) != 0) {
                        (void)snprintf(deps + strlen(deps), sizeof deps - strlen(deps), "%s%c",
                                       deps[0] == '\0' ? "<" : ",", 'A' + (int)k);
                    }
                }
                const char *options = strchr(policy, '(');
                (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%c%.*s%s%s",
                               i == 0 ? "" : "; ", 'A' + (int)i, (int)(options - policy), policy,
                               deps, options);
            }
            const int result = explore(&s, arg);
            if (result != 0) {
                return result;
            }
        }
    }
    return 0;
}

int scenarios_each(bool deep, int (*explore)(const struct scenario *s, void *arg), void *arg)
{
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++) {
        const int result = explore(&features[i], arg);
        if (result != 0) {
            return result;
        }
    }
    return each_shape(deep, explore, arg);
}
