/* Waits until this daemon may lead. What it waits for is read over a connection of its own; to take
 * the journal is one attempt, which the server decides. */
#include "supervisor/standby.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "supervisor/journal/owner.h"
#include "supervisor/notify.h"

enum {
    LEASE_MS = 3000,  /* as the journal's */
    AWAY_MS = 1000,   /* between two attempts to reach the server */
    AFTER_MS = 10,    /* the lease */
    LOOKS = 3,        /* in a lease: an owner may let go before its end */
    LOOKS_FLEET = 10, /* of several shards, which move */
    SAID_MAX = 512
};

struct standby {
    const struct standby_options *opt;
    uint32_t lease_ms;
    struct journal_look *look;
    char node[JOURNAL_NODE_MAX + 1];
    char said[SAID_MAX];           /* to the service manager: what it waits for */
    uint64_t seen_epoch, seen_seq; /* the most that it has seen of the journal */
    bool lost;                     /* the server, since it was last seen */
    msec not_before;               /* it may take the journal */
};

/* Once for each thing that it waits for. */
static void say(struct standby *s, const char *what)
{
    char status[SAID_MAX];

    (void)snprintf(status, sizeof status, "READY=1\nSTATUS=standby: %s", what);
    if (strcmp(status, s->said) == 0) {
        return;
    }
    (void)snprintf(s->said, sizeof s->said, "%s", status);
    log_info("supervisor.standby", "%s", what);
    notify_service_manager(status);
}

/* True: it was asked to stop. */
static bool pause_for(const struct standby *s, int64_t ms)
{
    struct pollfd fd = {.fd = s->opt->signals, .events = POLLIN};
    struct signalfd_siginfo info;

    if (poll(&fd, 1, (int)ms) <= 0 ||
        read(s->opt->signals, &info, sizeof info) != (ssize_t)sizeof info) {
        return false;
    }
    return info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT;
}

/* Another server has the journal now, and lacks what this one had. Without a take-over since, all
 * that is there is as it was. */
static enum bt_code check_history(struct standby *s, const struct journal_owner *now,
                                  struct bt_error *err)
{
    enum bt_code code = BT_OK;

    if (now->seq < s->seen_seq || now->epoch < s->seen_epoch) {
        log_err("journal.rewound", "the server lacks events up to %llu",
                (unsigned long long)s->seen_seq);
        code = journal_look_rewound(s->look, now->epoch == s->seen_epoch ? now->seq : 0,
                                    s->seen_seq, err);
    }
    if (code == BT_OK) {
        s->seen_epoch = now->epoch;
        s->seen_seq = now->seq;
    }
    return code;
}

static enum bt_code look(struct standby *s, struct journal_owner *ret, struct bt_error *err)
{
    const bool is_new = s->look == NULL;
    enum bt_code code = BT_OK;

    if (is_new) {
        code = journal_look_open(s->opt->fleet_url, s->lease_ms, s->opt->journal->shard, &s->look,
                                 err);
    }
    if (code == BT_OK && is_new) {
        code = journal_look_expand(s->look, err);
    }
    code = code == BT_OK ? journal_look(s->look, ret, err) : code;
    if (code == BT_OK && s->opt->shards <= 1 && ret->format > 0) { /* of several the node does */
        code =
            journal_look_beat(s->look, s->node, "",
                              s->opt->journal->config != NULL ? s->opt->journal->config : "", err);
    }
    code = code == BT_OK ? check_history(s, ret, err) : code;
    if (code != BT_OK) {
        journal_look_close(s->look);
        s->look = NULL;
        s->lost = true;
    } else if (s->lost) {
        /* Every lease is over after that time. The owner has lost the server, too, and goes on when
         * it is back: it gets a lease's time for that. */
        s->lost = false;
        s->not_before = clock_mono_ms() + s->lease_ms;
    }
    return code;
}

/* What no wait changes. */
static enum bt_code check(const struct standby *s, const struct journal_owner *now,
                          struct bt_error *err)
{
    if (now->format > now->format_known) {
        return err_set(err, BT_INVALID,
                       "the journal has format %d, and this Baton knows formats up to %d: use the "
                       "newer program",
                       now->format, now->format_known);
    }
    if (s->opt->journal->durability == DURABILITY_REPLICATED && now->standbys[0] == 0) {
        return err_set(err, BT_INVALID,
                       "fleet.durability \"replicated\" needs a synchronous standby, and "
                       "synchronous_standby_names of this PostgreSQL is empty: set it, or set "
                       "fleet.durability: power");
    }
    if (now->shards > 1 && now->shards != s->opt->shards) { /* who started it begins it again */
        return err_set(err, BT_IO,
                       "the fleet has %u shards now, and this process was started for "
                       "%u",
                       now->shards, s->opt->shards == 0 ? 1 : s->opt->shards);
    }
    return BT_OK;
}

static int64_t wait_for(const struct standby *s, const struct journal_owner *now)
{
    const int64_t often = s->lease_ms / (s->opt->shards > 1 ? LOOKS_FLEET : LOOKS);
    const int64_t left = now->lease_left_ms + AFTER_MS;

    return left < often ? left : often;
}

static void say_who(struct standby *s, const char *node)
{
    char what[SAID_MAX / 2];

    if (s->opt->shards > 1) {
        (void)snprintf(what, sizeof what, "the node \"%s\" leads shard %u", node,
                       s->opt->journal->shard);
    } else {
        (void)snprintf(what, sizeof what, "the node \"%s\" leads", node);
    }
    say(s, what);
}

/* Of several shards a node takes its share, and what is left by the others. BT_BUSY: not now. */
static enum bt_code leave_to_others(struct standby *s, int64_t *ret_ms, struct bt_error *err)
{
    int64_t ms = 0;
    enum bt_code code =
        s->opt->shards > 1 ? journal_look_wait(s->look, s->opt->journal->node, &ms, err) : BT_OK;

    if (code == BT_OK && ms > 0) {
        *ret_ms = ms < s->lease_ms / LOOKS_FLEET ? ms : s->lease_ms / LOOKS_FLEET;
        return BT_BUSY;
    }
    return code;
}

/* One attempt. BT_BUSY: not yet; *ret_ms is the time until the next one. */
static enum bt_code attempt(struct standby *s, struct journal **ret, int64_t *ret_ms,
                            struct bt_error *err)
{
    struct journal_owner now;
    enum bt_code code = look(s, &now, err);

    *ret_ms = AWAY_MS;
    if (code == BT_OK) {
        code = check(s, &now, err);
    }
    if (code == BT_OK && now.lease_left_ms > 0) {
        say_who(s, now.node);
        *ret_ms = wait_for(s, &now);
        return BT_BUSY;
    }
    if (code == BT_OK && now.node[0] != 0 && clock_mono_ms() < s->not_before) {
        say(s, "the server is back: its owner goes on, or this node leads after a lease");
        *ret_ms = (int64_t)s->lease_ms / LOOKS;
        return BT_BUSY;
    }
    code = code == BT_OK ? leave_to_others(s, ret_ms, err) : code;
    if (code == BT_OK) {
        code = journal_open(s->opt->fleet_url, s->opt->journal, ret, err);
    }
    if (code == BT_CONFLICT) { /* another one was faster */
        *ret_ms = AFTER_MS;
        return BT_BUSY;
    }
    if (code == BT_UNAVAILABLE) {
        say(s, err->msg);
        return BT_BUSY;
    }
    return code;
}

static enum bt_code wait_to_lead(struct standby *s, struct journal **ret, bool *ret_stop,
                                 struct bt_error *err)
{
    enum bt_code code = BT_BUSY;
    int64_t ms = 0;

    while (code == BT_BUSY && !*ret_stop) {
        code = attempt(s, ret, &ms, err);
        *ret_stop = code == BT_BUSY && pause_for(s, ms);
    }
    journal_look_close(s->look);
    if (code == BT_OK) {
        log_info("supervisor.leads", "shard=%u epoch=%llu", s->opt->journal->shard,
                 (unsigned long long)journal_boot(*ret));
    }
    return *ret_stop ? BT_OK : code;
}

enum bt_code standby_open(const struct standby_options *opt, struct journal **ret, bool *ret_stop,
                          struct bt_error *err)
{
    struct standby s = {.opt = opt, .lease_ms = opt->journal->lease_ms};
    enum bt_code code;

    *ret = NULL;
    *ret_stop = false;
    if (opt->fleet_url[0] == 0) {
        return journal_open(opt->state_dir, opt->journal, ret, err);
    }
    s.lease_ms = s.lease_ms == 0 ? LEASE_MS : s.lease_ms;
    if (opt->journal->node != NULL && opt->journal->node[0] != 0) {
        (void)snprintf(s.node, sizeof s.node, "%s", opt->journal->node);
    } else if (gethostname(s.node, sizeof s.node) != 0) {
        (void)snprintf(s.node, sizeof s.node, "unknown");
    }
    code = journal_lock_dir(opt->state_dir, err);
    return code == BT_OK ? wait_to_lead(&s, ret, ret_stop, err) : code;
}
