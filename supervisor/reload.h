/* The configuration read again while the daemon runs: what differs, and what needs no restart. */
#ifndef SUPERVISOR_RELOAD_H
#define SUPERVISOR_RELOAD_H

#include "supervisor/config/config.h"
#include "supervisor/engine/engine.h"

struct roster;
struct schedules;

struct reload {
    const struct config_request *request; /* of the start; borrowed */
    const struct config *started;         /* what a restart would replace; borrowed */
    const struct config *live;            /* where settings that need no restart are from */
    struct roster *roster;                /* set by the daemon */
};

/* The defaults of plans. Texts are borrowed. */
struct plan_defaults reload_defaults(const struct config_policy *policy);
/* Declares the schedules of the configuration, which must live on. */
BT_MUST_CHECK enum bt_code reload_schedules(const struct engine *engine,
                                            struct schedules *schedules, const struct config *c,
                                            struct bt_error *err);
/* The hook `reload` of the engine; see engine.h. */
enum bt_code reload_config(struct engine *engine, struct str file, bool check,
                           struct msg_setting_change *ret, uint32_t max, uint32_t *ret_n,
                           struct bt_error *err);
/* SIGHUP: as supervisor.reload; what differs is logged. */
void reload_on_signal(struct engine *engine);
#endif
