#include "supervisor/auth/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/base/log.h"
#include "supervisor/audit/audit.h"

enum { LOOK_MS = 1000, PATH_BYTES = 4096, NOTICE_BYTES = 4096 };

struct auth_store {
    struct sessions *sessions;
    char state_dir[PATH_BYTES];
    char dir[PATH_BYTES + sizeof CREDENTIALS_DIR + 1];
    int notice; /* inotify; -1 = none */
    struct stat seen;
    msec looked;
    struct audit *audit; /* NULL = none yet */
    struct credential *files, *processes;
    uint32_t files_n, processes_n;
};

struct loading {
    struct credential *at;
    uint32_t n, cap;
    bool bad; /* out of memory */
};

static void forget(struct credential *at, uint32_t n)
{
    if (at != NULL) {
        explicit_bzero(at, n * sizeof *at);
    }
    free(at);
}

/* Room for more, without a copy of a key in the memory of before. */
static bool grow(struct loading *l)
{
    const uint32_t cap = l->cap == 0 ? 16 : l->cap * 2;
    struct credential *at = calloc(cap, sizeof *at);

    if (at == NULL) {
        return false;
    }
    if (l->n > 0) {
        memcpy(at, l->at, l->n * sizeof *at);
    }
    forget(l->at, l->n);
    l->at = at;
    l->cap = cap;
    return true;
}

static void take(void *self, const char *name, const struct credential *c,
                 const struct bt_error *why)
{
    struct loading *l = self;

    if (c == NULL) {
        log_warn("auth.credential", "the credential %s is refused: %s", name, why->msg);
        return;
    }
    if (l->n == l->cap && !grow(l)) {
        l->bad = true;
        return;
    }
    l->at[l->n++] = *c;
}

/* " sees ann ci-*" */
static size_t describe_grants(const struct identity *who, char *ret, size_t cap)
{
    size_t at = 0;

    ret[0] = 0;
    for (uint32_t i = 0; i < who->sees_n && at < cap; i++) {
        at += (size_t)snprintf(ret + at, cap - at, "%s %s", i == 0 ? " sees" : "", who->sees[i]);
    }
    return at;
}

/* "submitter sees ann (revoked)" */
static size_t describe_one(const struct credential *c, msec wall, char *ret, size_t cap)
{
    const char *note = c->revoked != 0                ? " (revoked)"
                       : credential_is_valid(c, wall) ? ""
                                                      : " (expired)";
    const size_t at = (size_t)snprintf(ret, cap, "%s%s", role_name(c->who.role), note);

    return at + (at < cap ? describe_grants(&c->who, ret + at, cap - at) : 0);
}

/* "ann submitter, bob submitter sees ann, calc agent (revoked)": all of them, as they are now. */
static void describe(const struct loading *l, msec wall, char *ret, size_t cap)
{
    size_t at = 0;

    ret[0] = 0;
    for (uint32_t i = 0; i < l->n && at < cap; i++) {
        const struct credential *c = &l->at[i];
        at += (size_t)snprintf(ret + at, cap - at, "%s%s ", i > 0 ? ", " : "", c->who.id);
        at += at < cap ? describe_one(c, wall, ret + at, cap - at) : 0;
    }
}

/* Gives the sessions all credentials, of files and of processes. Without memory, none. */
static uint32_t give(struct auth_store *store, struct session_time time)
{
    const uint32_t n = store->files_n + store->processes_n;
    struct credential *all = calloc(n + 1, sizeof *all);

    if (all == NULL) {
        log_warn("auth.credentials", "out of memory: no credential is known");
        return sessions_set(store->sessions, NULL, 0, time);
    }
    if (store->files_n > 0) {
        memcpy(all, store->files, store->files_n * sizeof *all);
    }
    if (store->processes_n > 0) {
        memcpy(all + store->files_n, store->processes, store->processes_n * sizeof *all);
    }
    return sessions_set(store->sessions, all, n, time);
}

void auth_store_processes(struct auth_store *store, struct credential *at, uint32_t n,
                          struct session_time time)
{
    forget(store->processes, store->processes_n);
    store->processes = at;
    store->processes_n = n;
    (void)give(store, time);
}

static void tell(struct auth_store *store, struct session_time time, const char *id,
                 const char *text)
{
    audit_add(store->audit, time.now, time.wall,
              &(struct audit_entry){.kind = AUDIT_CREDENTIAL,
                                    .type = STR_LIT("credentials"),
                                    .about = str_from(id),
                                    .outcome = bt_code_name(BT_OK),
                                    .text = str_from(text)});
}

/* The directory is mostly in the order of before: `hint` is where it was then. */
static const struct credential *find(const struct credential *at, uint32_t n, uint32_t hint,
                                     const char *id)
{
    if (hint < n && strcmp(at[hint].who.id, id) == 0) {
        return &at[hint];
    }
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(at[i].who.id, id) == 0) {
            return &at[i];
        }
    }
    return NULL;
}

/* What differs between the files that were read before and those that were read now. */
static void tell_changes(struct auth_store *store, const struct loading *l,
                         struct session_time time)
{
    char text[1024];

    for (uint32_t i = 0; i < l->n; i++) {
        const struct credential *c = &l->at[i];
        const struct credential *was = find(store->files, store->files_n, i, c->who.id);
        if (was == NULL || memcmp(was, c, sizeof *c) != 0) {
            const bool key = was != NULL && memcmp(was->key, c->key, sizeof c->key) != 0;
            const int n = snprintf(text, sizeof text, "%s",
                                   was == NULL ? "added: "
                                   : key       ? "changed, another key: "
                                               : "changed: ");
            (void)describe_one(c, time.wall, text + n, sizeof text - (size_t)n);
            tell(store, time, c->who.id, text);
        }
    }
    for (uint32_t i = 0; i < store->files_n; i++) {
        if (find(l->at, l->n, i, store->files[i].who.id) == NULL) {
            tell(store, time, store->files[i].who.id, "removed, or no longer to be read");
        }
    }
}

/* What cannot be read opens nothing. */
static void load(struct auth_store *store, struct session_time time, bool begins)
{
    struct loading l = {.n = 0};
    char text[2048];
    struct bt_error err;
    uint32_t ended;

    if (credential_each(store->state_dir, take, &l, &err) != BT_OK) {
        log_warn("auth.credentials", "%s", err.msg);
    } else if (l.bad) {
        log_warn("auth.credentials", "out of memory: some credentials are not known");
    }
    if (begins) {
        describe(&l, time.wall, text, sizeof text);
        tell(store, time, "", text);
    } else {
        tell_changes(store, &l, time);
    }
    forget(store->files, store->files_n);
    store->files = l.at;
    store->files_n = l.n;
    ended = give(store, time);
    log_info("auth.credentials", "known=%u sessions_ended=%u", l.n, ended);
}

static void watch(struct auth_store *store)
{
    const uint32_t what = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ATTRIB |
                          IN_DELETE_SELF | IN_MOVE_SELF;

    (void)inotify_add_watch(store->notice, store->dir, what); /* else its time is looked at */
}

/* Another directory, another time of its last change, or none any more. */
static bool is_changed(struct auth_store *store)
{
    const struct stat was = store->seen;

    if (stat(store->dir, &store->seen) != 0) {
        memset(&store->seen, 0, sizeof store->seen);
    }
    return was.st_ino != store->seen.st_ino ||
           memcmp(&was.st_ctim, &store->seen.st_ctim, sizeof was.st_ctim) != 0;
}

enum bt_code auth_store_new(const char *state_dir, struct sessions *sessions, struct audit *audit,
                            struct session_time time, struct auth_store **ret, struct bt_error *err)
{
    struct auth_store *store = calloc(1, sizeof *store);

    if (store == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for credentials");
    }
    store->sessions = sessions;
    store->audit = audit;
    (void)snprintf(store->state_dir, sizeof store->state_dir, "%s", state_dir);
    (void)snprintf(store->dir, sizeof store->dir, "%s/%s", state_dir, CREDENTIALS_DIR);
    if (mkdir(store->dir, 0700) != 0 && errno != EEXIST) {
        log_warn("auth.credentials", "%s: cannot be created", store->dir);
    }
    store->notice = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    watch(store);
    (void)is_changed(store);
    load(store, time, true);
    *ret = store;
    return BT_OK;
}

void auth_store_free(struct auth_store *store)
{
    if (store != NULL) {
        (void)close(store->notice);
        forget(store->files, store->files_n);
        forget(store->processes, store->processes_n);
    }
    free(store);
}

int auth_store_fd(const struct auth_store *store)
{
    return store->notice;
}

static bool is_noticed(const struct auth_store *store)
{
    char bytes[NOTICE_BYTES];
    bool any = false;

    while (read(store->notice, bytes, sizeof bytes) > 0) {
        any = true;
    }
    return any;
}

void auth_store_refresh(struct auth_store *store, struct session_time time, bool at_once)
{
    bool changed = is_noticed(store);

    if (changed || at_once || time.now - store->looked >= LOOK_MS) {
        store->looked = time.now;
        changed = is_changed(store) || changed;
    }
    if (changed) {
        watch(store); /* the directory may be another one */
        load(store, time, false);
    }
}
