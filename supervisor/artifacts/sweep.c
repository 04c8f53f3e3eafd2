#include "supervisor/artifacts/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/artifact/artifact.h"
#include "protocol/base/log.h"
#include "supervisor/artifacts/taken.h"
#include "supervisor/engine/open_plan.h"

enum {
    HEIRS_MAX = 256,    /* plans that took results of one plan over */
    ENDED_MAX = 256,    /* ends that wait for their slice; more make a pass over all */
    OLDEST_MAX = 256,   /* plans that one pass removes for max_bytes; more need another pass */
    SLICE_PLANS = 16,   /* directories of one slice */
    SLICE_FILES = 1000, /* files that one slice removes */
    PASS_EVERY_MS = 3600 * 1000,
    BYTES_EVERY_MS = 10 * 1000 /* max_bytes is looked after so long after the end of a plan */
};

/* The marker of an ended plan: 0600 while its files are sorted out, 0400 when that is done. */
enum { MARK_BEGUN = 0600, MARK_DONE = 0400 };

struct old_plan {
    char id[UUID_TEXT_LEN + 1];
    msec ended_wall;
    uint64_t bytes;
};

struct sweep {
    struct sweep_options opt;
    struct engine *engine;
    struct uuid ended[ENDED_MAX];
    uint32_t ended_n;
    DIR *pass; /* over all directories; NULL = none is under way */
    msec due;  /* of the next pass */
    struct old_plan oldest[OLDEST_MAX];
    uint32_t oldest_n;
    uint64_t total; /* bytes of ended plans */
};

enum bt_code sweep_new(const struct sweep_options *opt, struct engine *engine, struct sweep **ret,
                       struct bt_error *err)
{
    struct sweep *s = calloc(1, sizeof *s);

    if (s == NULL) {
        return err_set(err, BT_NOMEM, "out of memory");
    }
    s->opt = *opt;
    s->engine = engine;
    if (opt->root != NULL && mkdir(opt->root, 0700) < 0 && errno != EEXIST) {
        free(s);
        return err_errno(err, errno, "making the directory '%.200s'", opt->root);
    }
    *ret = s;
    return BT_OK;
}

static void due_by(struct sweep *s, msec when)
{
    s->due = when < s->due ? when : s->due;
}

/* Another pass, as soon as this one is over. */
static void due_now(struct sweep *s)
{
    s->due = 0;
}

void sweep_plan_ended(struct sweep *s, struct uuid plan_id)
{
    if (s->opt.root == NULL) {
        return;
    }
    if (s->ended_n == ENDED_MAX) {
        due_now(s);
        return;
    }
    s->ended[s->ended_n++] = plan_id;
}

msec sweep_deadline(const struct sweep *s)
{
    if (s->opt.root == NULL) {
        return MSEC_NEVER;
    }
    return s->ended_n > 0 || s->pass != NULL ? 0 : s->due;
}

/* ---- files of one plan ---- */

/* The names in the directory, for closedir; NULL: it cannot be read. */
static DIR *list_of(int dir)
{
    const int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);

    if (list == NULL && fd >= 0) {
        (void)close(fd);
    }
    return list;
}

#define LEFT_UNKNOWN UINT32_MAX /* the directory cannot be read now: it stays */

/* Removes the files that are not `kept` (NULL: all), and counts the others. False: there are more
 * than one slice removes. */
static bool remove_files(int dir, const struct map *kept, uint32_t *ret_left)
{
    DIR *list = list_of(dir);
    const struct dirent *entry;
    uint32_t removed = 0;

    *ret_left = 0;
    if (list == NULL) {
        *ret_left = LEFT_UNKNOWN;
        return true;
    }
    while (removed < SLICE_FILES && (entry = readdir(list)) != NULL) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
            (kept != NULL && strcmp(name, ARTIFACT_ENDED) == 0)) {
            continue;
        }
        if ((kept != NULL && map_get(kept, str_from(name)) != MAP_NONE) ||
            unlinkat(dir, name, 0) < 0) {
            ++*ret_left;
        } else {
            removed++;
        }
    }
    (void)closedir(list);
    return removed < SLICE_FILES;
}

/* Opens the directory of a plan; -1: there is none. */
static int open_plan(const struct sweep *s, const char *id)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    const int root = open(s->opt.root, flags);
    const int dir = root < 0 ? -1 : openat(root, id, flags);

    if (root >= 0) {
        (void)close(root);
    }
    return dir;
}

static bool remove_dir(const struct sweep *s, const char *id)
{
    const int root = open(s->opt.root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const bool ok = root >= 0 && unlinkat(root, id, AT_REMOVEDIR) == 0;

    if (root >= 0) {
        (void)close(root);
    }
    return ok;
}

/* False: a part is left for another slice. */
static bool remove_plan(struct sweep *s, int dir, const char *id, const char *why)
{
    uint32_t left;

    if (!remove_files(dir, NULL, &left)) {
        return false;
    }
    if (remove_dir(s, id)) {
        log_info("artifacts.removed", "plan=%s reason=%s", id, why);
    }
    return true;
}

static bool is_marked_done(int dir)
{
    struct stat st;

    return fstatat(dir, ARTIFACT_ENDED, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           (st.st_mode & 0777) == MARK_DONE;
}

/* From now on no attempt puts a file there. -1: it cannot be marked. */
static int mark(int dir)
{
    return openat(dir, ARTIFACT_ENDED, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
                  (mode_t)MARK_BEGUN);
}

/* Removes what no result of the ended plan names. False: a part is left for another slice. */
static bool sort_out(struct sweep *s, int dir, const char *id)
{
    struct taken taken;
    struct bt_error err;
    uint32_t left = 1;
    bool all = true;
    const int marker = is_marked_done(dir) ? -1 : mark(dir);

    if (marker < 0) {
        return true;
    }
    if (taken_read(s->engine, s->opt.root, str_from(id), &taken, &err) != BT_OK) {
        log_warn("artifacts.unread", "plan=%s %s; its files stay", id, err.msg);
    } else {
        all = remove_files(dir, &taken.names, &left);
        if (all && left != LEFT_UNKNOWN) {
            (void)fchmod(marker, (mode_t)MARK_DONE);
        }
    }
    (void)close(marker);
    if (all && left == 0) {
        (void)unlinkat(dir, ARTIFACT_ENDED, 0);
        (void)remove_dir(s, id);
    }
    taken_done(&taken);
    return all;
}

/* ---- the end of a plan ---- */

/* The wall time at which the plan ended; 0: it is open. False: the journal does not know it. */
static bool ended_at(struct sweep *s, struct uuid id, msec *ret)
{
    struct journal_plan plan;
    struct bt_error err;
    const enum bt_code code = journal_plan_by_id(engine_journal(s->engine), id, &plan, &err);

    *ret = code == BT_OK ? plan.ended_wall : 0;
    return code != BT_NOT_FOUND; /* a damaged plan keeps its files */
}

static void after_end(struct sweep *s, struct uuid plan)
{
    char id[UUID_TEXT_LEN + 1];
    msec ended;
    int dir;

    uuid_format(plan, id);
    dir = open_plan(s, id);
    if (dir < 0) {
        return;
    }
    if (!ended_at(s, plan, &ended)) {
        if (!remove_plan(s, dir, id, "deleted")) {
            sweep_plan_ended(s, plan);
        }
    } else if (ended != 0) {
        if (!sort_out(s, dir, id)) {
            sweep_plan_ended(s, plan);
        }
        due_by(s, engine_now(s->engine) + s->opt.keep_ms);
        if (s->opt.max_bytes > 0) {
            due_by(s, engine_now(s->engine) + BYTES_EVERY_MS);
        }
    }
    (void)close(dir);
}

/* ---- a pass over all directories ---- */

static uint64_t bytes_of(int dir)
{
    DIR *list = list_of(dir);
    const struct dirent *entry;
    uint64_t total = 0;
    struct stat st;

    while (list != NULL && (entry = readdir(list)) != NULL) {
        if (fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)) {
            total += (uint64_t)st.st_size;
        }
    }
    if (list != NULL) {
        (void)closedir(list);
    }
    return total;
}

/* Keeps the plans that ended first, sorted by that. */
static void note_old(struct sweep *s, const char *id, msec ended_wall, uint64_t bytes)
{
    uint32_t at = s->oldest_n;

    s->total += bytes;
    while (at > 0 && s->oldest[at - 1].ended_wall > ended_wall) {
        at--;
    }
    if (at == OLDEST_MAX) {
        return;
    }
    if (s->oldest_n < OLDEST_MAX) {
        s->oldest_n++;
    }
    memmove(&s->oldest[at + 1], &s->oldest[at], (s->oldest_n - at - 1) * sizeof s->oldest[0]);
    s->oldest[at] = (struct old_plan){.ended_wall = ended_wall, .bytes = bytes};
    memcpy(s->oldest[at].id, id, UUID_TEXT_LEN + 1);
}

static void look_at_ended(struct sweep *s, int dir, const char *id, msec ended)
{
    const msec wall = engine_wall(s->engine);
    const msec gone = msec_add(ended, s->opt.keep_ms);

    if (gone <= wall) {
        if (!remove_plan(s, dir, id, "keepMs")) {
            due_now(s);
        }
        return;
    }
    due_by(s, msec_add(engine_now(s->engine), gone - wall));
    if (!sort_out(s, dir, id)) {
        due_now(s);
    }
    note_old(s, id, ended, bytes_of(dir));
}

static void look_at(struct sweep *s, const char *name)
{
    char id[UUID_TEXT_LEN + 1];
    struct uuid uuid;
    msec ended;
    int dir;

    if (!uuid_parse(str_from(name), &uuid)) {
        return;
    }
    uuid_format(uuid, id); /* in other letters it is not a name of ours */
    dir = open_plan(s, id);
    if (dir < 0) {
        return;
    }
    if (!ended_at(s, uuid, &ended)) {
        if (!remove_plan(s, dir, id, "unknown")) {
            due_now(s);
        }
    } else if (ended != 0) {
        look_at_ended(s, dir, id, ended);
    }
    (void)close(dir);
}

/* The oldest plans make room for the newer ones. */
static void make_room(struct sweep *s)
{
    for (uint32_t i = 0; i < s->oldest_n && s->total > s->opt.max_bytes; i++) {
        const struct old_plan *p = &s->oldest[i];
        int dir = open_plan(s, p->id);
        if (dir >= 0) {
            if (!remove_plan(s, dir, p->id, "maxBytes")) {
                due_now(s);
            }
            (void)close(dir);
        }
        s->total -= p->bytes;
    }
    if (s->total > s->opt.max_bytes) {
        due_now(s); /* more plans than one pass remembers */
    }
}

static void begin_pass(struct sweep *s)
{
    s->pass = opendir(s->opt.root);
    s->due = msec_add(engine_now(s->engine), PASS_EVERY_MS);
    s->oldest_n = 0;
    s->total = 0;
}

static void continue_pass(struct sweep *s)
{
    const struct dirent *entry = NULL;

    for (int i = 0; i < SLICE_PLANS && (entry = readdir(s->pass)) != NULL; i++) {
        look_at(s, entry->d_name);
    }
    if (entry == NULL) {
        (void)closedir(s->pass);
        s->pass = NULL;
        if (s->opt.max_bytes > 0) {
            make_room(s);
        }
    }
}

void sweep_cycle(struct sweep *s)
{
    if (s->opt.root == NULL) {
        return;
    }
    if (s->ended_n > 0) {
        after_end(s, s->ended[--s->ended_n]);
    } else if (s->pass != NULL) {
        continue_pass(s);
    } else if (engine_now(s->engine) >= s->due) {
        begin_pass(s);
    }
}

/* ---- who reads files ---- */

bool sweep_is_read(const struct sweep *s, struct uuid plan_id, uint64_t plan_ix)
{
    const char *root = engine_options(s->engine)->artifact_root;
    uint64_t heirs[HEIRS_MAX];
    char path[PATH_MAX];
    char id[UUID_TEXT_LEN + 1];
    uint32_t n = 0;

    uuid_format(plan_id, id);
    if (root == NULL || snprintf(path, sizeof path, "%s/%s", root, id) >= (int)sizeof path ||
        access(path, F_OK) != 0 ||
        journal_plan_heirs(engine_journal(s->engine), plan_ix, heirs, HEIRS_MAX, &n, NULL) !=
            BT_OK) {
        return false;
    }
    for (const struct open_plan *p = open_plan_next(s->engine, NULL); p != NULL;
         p = open_plan_next(s->engine, p)) {
        for (uint32_t i = 0; i < n; i++) {
            if (p->ix == heirs[i]) {
                return true;
            }
        }
    }
    return false;
}
