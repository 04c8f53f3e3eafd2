/* The files of STATE/webhooks: which webhooks there are, and what was asked of them. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "protocol/base/log.h"
#include "supervisor/gateway/webhook/webhook_internal.h"

void hook_save(struct hook *h)
{
    struct bt_error err;

    h->dirty = false;
    h->written = h->of->now;
    if (!h->gone &&
        hook_state_write(h->of->dir, h->name, h->shard, &h->spec, &h->state, &err) != BT_OK) {
        log_warn("gateway.webhook", "%s: %s", h->name, err.msg);
    }
}

static void obey(struct hook *h)
{
    if (h->spec.resend != h->state.resent) {
        h->state.resent = h->spec.resend;
        hook_resend(&h->state.at, h->spec.resend_from);
        hook_drop_page(h);
        hook_save(h);
    }
}

static void take_event(void *self, struct doc event)
{
    struct webhooks *w = self;
    const struct doc seq = doc_get(event, STR_LIT("seq"));

    const uint64_t n = seq.ptr == NULL ? 0 : doc_head(seq).u;

    if (n > 0) {
        w->last[watch_shard(w->watch)] = n;
    }
    for (int i = HOOKS_PLACES; i < HOOK_PLACES; i++) {
        struct hook *h = w->hooks[i];
        if (h != NULL && str_is(doc_string(doc_get(event, STR_LIT("planId"))), h->spec.plan)) {
            h->last = n;
        }
    }
}

/* A push that was taken out has no file any more: one of its name is another one, also while the
 * last request of the first one is out. */
static struct hook *find(struct webhooks *w, const char *name, uint32_t shard,
                         struct hook ***ret_free)
{
    const bool push = strncmp(name, "push-", 5) == 0;
    int others = 0;

    *ret_free = NULL;
    for (int i = 0; i < HOOK_PLACES; i++) {
        if (w->hooks[i] == NULL) {
            *ret_free = *ret_free == NULL && (i >= HOOKS_PLACES) == push ? &w->hooks[i] : *ret_free;
        } else if (!(push && w->hooks[i]->gone) && w->hooks[i]->shard == shard &&
                   strcmp(w->hooks[i]->name, name) == 0) {
            return w->hooks[i];
        } else {
            others += i < HOOKS_PLACES && w->hooks[i]->shard == shard;
        }
    }
    if (!push && others >= HOOKS_MAX) {
        *ret_free = NULL;
    }
    return NULL;
}

static struct hook *add(struct webhooks *w, const char *name, uint32_t shard, struct hook **place)
{
    struct hook *h = place == NULL ? NULL : calloc(1, sizeof *h);

    if (h == NULL) {
        return NULL;
    }
    h->of = w;
    h->shard = shard;
    (void)snprintf(h->name, sizeof h->name, "%s", name);
    buf_init(&h->page, HOOK_PAGE_BYTES + 1024);
    buf_init(&h->answer, HOOK_PAGE_BYTES + 1024);
    *place = h;
    if (!w->watches) {
        w->watches = true;
        watch_add(w->watch, take_event, w);
    }
    return h;
}

static void load(struct webhooks *w, const char *name, uint32_t shard, const struct stat *st)
{
    struct hook **place;
    struct hook *h = find(w, name, shard, &place);
    const bool is_new = h == NULL;
    struct hook_spec spec;
    struct bt_error err;

    if (h != NULL && h->gone) {
        return; /* it ends first */
    }
    if (is_new) {
        h = add(w, name, shard, place);
        if (h == NULL) {
            return;
        }
    }
    h->seen = true;
    if (h->inode == st->st_ino && memcmp(&h->changed, &st->st_mtim, sizeof h->changed) == 0) {
        return;
    }
    h->inode = st->st_ino;
    h->changed = st->st_mtim;
    if (hook_spec_read(w->dir, name, &spec, &err) != BT_OK) {
        log_warn("gateway.webhook", "%s.json: %s", name, err.msg);
        return;
    }
    if (h->spec.made != spec.made || h->spec.url[0] == 0) {
        if (!hook_state_read(w->dir, name, shard, &spec, &h->state) && spec.from > 1 &&
            watch_shards(w->watch) > 1 && !hook_is_push(&spec)) {
            h->state.at.seq = HOOK_FROM_NOW; /* the number of the file is of one shard */
        }
        hook_drop_page(h);
    }
    h->spec = spec;
    obey(h);
}

void webhooks_scan(struct webhooks *w)
{
    char path[4400];
    const struct dirent *entry;
    DIR *dir;

    (void)snprintf(path, sizeof path, "%s/" HOOKS_DIR, w->dir);
    dir = opendir(path);
    for (int i = 0; i < HOOK_PLACES; i++) {
        if (w->hooks[i] != NULL) {
            w->hooks[i]->seen = dir == NULL && errno != ENOENT;
        }
    }
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        const size_t n = strlen(entry->d_name);
        char name[HOOK_NAME_MAX + 1];
        struct stat st;
        if (n <= 5 || n - 5 > HOOK_NAME_MAX || strcmp(entry->d_name + n - 5, ".json") != 0 ||
            !hook_name_ok((struct str){entry->d_name, n - 5}) ||
            fstatat(dirfd(dir), entry->d_name, &st, 0) != 0) {
            continue;
        }
        (void)snprintf(name, sizeof name, "%.*s", (int)(n - 5), entry->d_name);
        for (uint32_t i = 0; i < (strncmp(name, "push-", 5) == 0 ? 1 : watch_shards(w->watch));
             i++) {
            load(w, name, i, &st);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    for (int i = 0; i < HOOK_PLACES; i++) {
        if (w->hooks[i] != NULL && !w->hooks[i]->seen) {
            w->hooks[i]->gone = true;
        }
    }
}
