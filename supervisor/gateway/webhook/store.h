/*
 * Webhooks as files of STATE/webhooks: NAME.json, what `baton webhook` writes, and NAME.at, how far
 * it is, which only this program writes. Both are replaced as a whole. NAME.at is not flushed to
 * the disk: an older one, or none, sends events again, and never leaves one out. One thread.
 */
#ifndef GATEWAY_WEBHOOK_STORE_H
#define GATEWAY_WEBHOOK_STORE_H

#include "protocol/base/err.h"
#include "protocol/base/str.h"
#include "protocol/wire/hook_name.h"
#include "supervisor/gateway/webhook/progress.h"

enum {
    HOOKS_MAX = 32,
    PUSHES_MAX = 256, /* configurations of push notifications at a time */
    HOOK_URL_MAX = 2048,
    HOOK_TOPICS_MAX = 16,
    HOOK_TOPIC_MAX = 64,
    HOOK_PATH_MAX = 4095,
    HOOK_ENV_MAX = 127,
    HOOK_FILE_MAX = 32 * 1024,
    PUSH_TEXT_MAX = 1024
};

#define HOOKS_DIR "webhooks"

/* HOOK_A2A, HOOK_A2A_OLD: push notifications of A2A, 1.0 and 0.3, about one plan. */
enum hook_form { HOOK_CLOUDEVENTS, HOOK_CHAT, HOOK_MAIL, HOOK_A2A, HOOK_A2A_OLD, HOOK_FORMS };

/* What was asked for. */
struct hook_spec {
    char url[HOOK_URL_MAX + 1];
    char topics[HOOK_TOPICS_MAX][HOOK_TOPIC_MAX + 1]; /* globs of event types */
    uint32_t topics_n;                                /* 0 = every event */
    enum hook_form form;
    char secret_file[HOOK_PATH_MAX + 1]; /* "" = none */
    char secret_env[HOOK_ENV_MAX + 1];   /* a variable of this program; "" = none */
    uint64_t made; /* a number of this webhook: another one of its name has another */
    uint64_t from; /* the first event */
    uint64_t resend, resend_from; /* a number of the order to go on, and from where; 0 */
    uint64_t test;                /* a number of the order to send a test; 0 = none */
    /* push notifications: no secret, but what the receiver wants to see; "" = none */
    char plan[65], context[65], config[65];
    char token[PUSH_TEXT_MAX + 1], scheme[65], credentials[PUSH_TEXT_MAX + 1];
};

/* Whether it is about one plan, ends with it, and is made by a client of A2A. */
bool hook_is_push(const struct hook_spec *spec);
/* The name of a configuration's file: "push-PLAN-HASH". */
void hook_push_name(const char *plan, const char *config, char ret[HOOK_NAME_MAX + 1]);
/* Makes the directory when there is none. */
BT_MUST_CHECK enum bt_code hook_push_write(const char *dir, const struct hook_spec *spec,
                                           struct bt_error *err);
/* NAME.json and NAME.at. False: there was none. */
bool hook_remove(const char *dir, const char *name);

struct hook_state {
    struct hook_progress at;
    uint64_t resent, tested; /* the orders that were done */
    unsigned test_status;    /* what came of the test; 0 = no answer, and why */
    char test_why[HOOK_WHY_MAX + 1];
};

/* BT_INVALID: a sentence with the member. BT_NOT_FOUND: it is gone. */
BT_MUST_CHECK enum bt_code hook_spec_read(const char *dir, const char *name, struct hook_spec *ret,
                                          struct bt_error *err);
BT_MUST_CHECK enum bt_code hook_spec_parse(struct str json, struct hook_spec *ret,
                                           struct bt_error *err);
/* NAME.at, of another shard than 0 NAME.SN.at. False, and as it is
 * without one: there is no file of this webhook that can be read: at
 * the first event of the spec. */
bool hook_state_read(const char *dir, const char *name, uint32_t shard,
                     const struct hook_spec *spec, struct hook_state *ret);
BT_MUST_CHECK enum bt_code hook_state_write(const char *dir, const char *name, uint32_t shard,
                                            const struct hook_spec *spec,
                                            const struct hook_state *s, struct bt_error *err);
/* The file of another shard than 0. */
void hook_state_remove(const char *dir, const char *name, uint32_t shard);
/* The text of the secrets, from a file that only its owner may read, or a variable. */
BT_MUST_CHECK enum bt_code hook_secret_read(const struct hook_spec *spec, char *ret, size_t cap,
                                            struct bt_error *err);
/* Whether the type of an event fits a topic. */
bool hook_wants(const struct hook_spec *spec, struct str type);
#endif
