#include "supervisor/gateway/webhook/webhook.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "protocol/base/clock.h"
#include "protocol/base/log.h"
#include "protocol/base/uuid.h"
#include "supervisor/gateway/a2a/a2a.h"
#include "supervisor/gateway/webhook/body.h"
#include "supervisor/gateway/webhook/sign.h"
#include "supervisor/gateway/webhook/webhook_internal.h"

enum {
    SCAN_MS = 500,  /* how soon a changed file counts */
    READ_MS = 5000, /* how soon events are looked for that the reader of events missed */
    WRITE_MS = 200, /* how far one is, while events are taken */
    POST_MS = 15000,
    PAGE = 64,
    PAGE_BYTES = 1024 * 1024
};

enum bt_code webhooks_new(const char *state_dir, const char *url, struct watch *watch,
                          struct egress *out, struct webhooks **ret, struct bt_error *err)
{
    struct webhooks *w = calloc(1, sizeof *w);

    *ret = w;
    if (w == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for webhooks");
    }
    w->dir = state_dir;
    w->url = url;
    w->watch = watch;
    w->out = out;
    return BT_OK;
}

static void write_state(struct hook *h)
{
    struct bt_error err;

    h->dirty = false;
    h->written = h->of->now;
    if (!h->gone && hook_state_write(h->of->dir, h->name, &h->spec, &h->state, &err) != BT_OK) {
        log_warn("gateway.webhook", "%s: %s", h->name, err.msg);
    }
}

/* ---- the files ---- */

static void drop_page(struct hook *h)
{
    h->left = 0;
    h->event.ptr = NULL;
    h->page_next = 0;
    h->read_again = 0;
    h->read_once = false;
    h->serial++;
    if (h->call != NULL) {
        call_abandon(h->call);
        h->call = NULL;
    }
}

static void obey(struct hook *h)
{
    if (h->spec.resend != h->state.resent) {
        h->state.resent = h->spec.resend;
        hook_resend(&h->state.at, h->spec.resend_from);
        drop_page(h);
        write_state(h);
    }
}

static void take_event(void *self, struct doc event)
{
    struct webhooks *w = self;
    const struct doc seq = doc_get(event, STR_LIT("seq"));

    w->last = seq.ptr == NULL ? w->last : doc_head(seq).u;
    for (int i = HOOKS_MAX; i < HOOK_PLACES; i++) {
        struct hook *h = w->hooks[i];
        if (h != NULL && str_is(doc_string(doc_get(event, STR_LIT("planId"))), h->spec.plan)) {
            h->last = w->last;
        }
    }
}

/* The last event that it may want. */
static uint64_t last_of(const struct hook *h)
{
    return hook_is_push(&h->spec) ? h->last : h->of->last;
}

static struct hook *find(struct webhooks *w, const char *name, struct hook ***ret_free)
{
    const bool push = strncmp(name, "push-", 5) == 0;

    *ret_free = NULL;
    for (int i = 0; i < HOOK_PLACES; i++) {
        if (w->hooks[i] == NULL) {
            *ret_free = *ret_free == NULL && (i >= HOOKS_MAX) == push ? &w->hooks[i] : *ret_free;
        } else if (strcmp(w->hooks[i]->name, name) == 0) {
            return w->hooks[i];
        }
    }
    return NULL;
}

static struct hook *add(struct webhooks *w, const char *name, struct hook **place)
{
    struct hook *h = place == NULL ? NULL : calloc(1, sizeof *h);

    if (h == NULL) {
        return NULL;
    }
    h->of = w;
    (void)snprintf(h->name, sizeof h->name, "%s", name);
    buf_init(&h->page, PAGE_BYTES + 1024);
    buf_init(&h->answer, PAGE_BYTES + 1024);
    *place = h;
    if (!w->watches) {
        w->watches = true;
        watch_add(w->watch, take_event, w);
    }
    return h;
}

static void load(struct webhooks *w, const char *name, const struct stat *st)
{
    struct hook **place;
    struct hook *h = find(w, name, &place);
    const bool is_new = h == NULL;
    struct hook_spec spec;
    struct bt_error err;

    if (h != NULL && h->gone) {
        return; /* it ends first */
    }
    if (is_new) {
        h = add(w, name, place);
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
        hook_state_read(w->dir, name, &spec, &h->state);
        drop_page(h);
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
        load(w, name, &st);
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

/* ---- the events ---- */

static void on_page(void *self, const struct reply *reply)
{
    struct hook *h = self;
    const struct doc events = doc_get(reply->body, STR_LIT("events"));
    struct doc_head head = {.kind = DOC_NIL};
    uint64_t last;

    h->call = NULL;
    h->read_again = h->of->now + (reply->ok ? READ_MS : HOOK_AGAIN_MS);
    if (!reply->ok) {
        h->read_once = false;
        if (hook_is_push(&h->spec) &&
            (reply->problem.code == BT_NOT_FOUND || reply->problem.code == BT_GONE)) {
            push_end(h, "its plan was deleted");
        }
        return;
    }
    buf_clear(&h->page);
    buf_add(&h->page, events.ptr, events.ptr == NULL ? 0 : events.len);
    if (buf_check(&h->page, NULL) != BT_OK) {
        log_warn("gateway.webhook", "%s: out of memory for events", h->name);
        h->read_once = false;
        return;
    }
    h->at = doc_cursor(doc_from_buf(&h->page));
    h->left = doc_next(&h->at, &head) && head.kind == DOC_ARRAY ? head.n : 0;
    h->page_next = doc_head(doc_get(reply->body, STR_LIT("nextSeq"))).u;
    h->known = h->page_next > h->state.at.seq + 1 ? 0 : h->known;
    last = doc_head(doc_get(reply->body, STR_LIT("lastSeq"))).u;
    if (h->state.at.seq > last) { /* a journal of before was put in its place */
        log_warn("gateway.webhook",
                 "%s: the journal ends at event %" PRIu64 " and event %" PRIu64
                 " was sent; it goes on with the next one",
                 h->name, last, h->state.at.seq);
        hook_taken(&h->state.at, last);
        h->dirty = true;
    }
    h->of->last = last > h->of->last ? last : h->of->last;
}

static void read_page(struct hook *h)
{
    struct webhooks *w = h->of;
    struct caller *caller = watch_caller(w->watch, w->now);
    struct call_spec spec = {.type = MSG_events_read,
                             .answer = MSG_events_read_ok,
                             .reads = true,
                             .done = on_page,
                             .self = h};
    struct bt_error err;
    struct buf fields;

    h->read_again = w->now + HOOK_AGAIN_MS;
    h->known = last_of(h);
    if (caller == NULL) {
        return;
    }
    buf_init(&fields, 64);
    doc_put_map(&fields, 2u + hook_is_push(&h->spec));
    if (hook_is_push(&h->spec)) {
        doc_put_cstr(&fields, "planId");
        doc_put_cstr(&fields, h->spec.plan);
    }
    doc_put_cstr(&fields, "fromSeq");
    doc_put_u64(&fields, h->state.at.seq + 1);
    doc_put_cstr(&fields, "limit");
    doc_put_u64(&fields, PAGE);
    spec.fields = doc_from_buf(&fields);
    h->read_once = caller_call(caller, &spec, w->now, &h->call, &err) == BT_OK;
    buf_done(&fields);
}

/* The next event that is wanted, in h->event. False: there is none now. */
static bool next_event(struct hook *h)
{
    while (h->event.ptr == NULL && h->left > 0) {
        const struct doc event = doc_skip(&h->at);
        const struct doc seq = doc_get(event, STR_LIT("seq"));
        const uint64_t n = seq.ptr == NULL ? 0 : doc_head(seq).u;
        h->left--;
        if (n <= h->state.at.seq) {
            continue;
        }
        if (hook_is_push(&h->spec)
                ? a2a_push_wants(event)
                : hook_wants(&h->spec, doc_string(doc_get(event, STR_LIT("type"))))) {
            h->event = event;
            h->event_seq = n;
        } else {
            hook_taken(&h->state.at, n);
            h->dirty = true;
        }
    }
    if (h->event.ptr != NULL) {
        return true;
    }
    if (h->page_next > h->state.at.seq + 1) { /* what was deleted with its plan */
        hook_taken(&h->state.at, h->page_next - 1);
        h->dirty = true;
    }
    h->page_next = 0;
    return false;
}

/* ---- requests ---- */

static void on_sent(void *self, unsigned status, uint64_t retry_after_ms, const char *why)
{
    struct hook *h = self;
    struct hook_state *s = &h->state;
    const uint32_t tries = s->at.tries;

    h->out = false;
    if (h->out_test) {
        s->test_status = status;
        (void)snprintf(s->test_why, sizeof s->test_why, "%s", why);
        s->tested = h->spec.test;
        write_state(h);
        return;
    }
    if (h->out_serial != h->serial) {
        return; /* it was told to go on from elsewhere */
    }
    if (status / 100 == 2) {
        h->delivered++;
        if (tries > 0) {
            log_info("gateway.webhook", "%s: its receiver takes events again", h->name);
        }
        hook_taken(&s->at, h->event_seq);
        h->dirty = true;
        if (hook_is_push(&h->spec) && a2a_push_ends(h->event)) {
            push_end(h, NULL);
        }
        h->event.ptr = NULL;
        return;
    }
    h->failed++;
    hook_failed(&s->at, clock_wall_ms(), status, retry_after_ms, why,
                (uint32_t)(clock_mono_ns() * 2654435761u >> 7));
    if (tries == 0 || s->at.parked) {
        log_warn("gateway.webhook", "%s: event %" PRIu64 "%s: %s", h->name, h->event_seq,
                 s->at.parked ? ": it is parked until `baton webhook resend`" : "", s->at.why);
    }
    write_state(h);
    if (s->at.parked && hook_is_push(&h->spec)) {
        push_end(h, "its receiver has not taken it");
    }
}

struct letter {
    struct buf body, signature;
    char id[96], stamp[64], token[PUSH_TEXT_MAX + 40];
};

/* What a receiver of push notifications knows them by. */
static void show_push(const struct hook_spec *s, struct letter *l)
{
    if (s->token[0] != 0) {
        (void)snprintf(l->token, sizeof l->token, "X-A2A-Notification-Token: %s", s->token);
    }
    if (s->scheme[0] != 0 && s->credentials[0] != 0) {
        buf_printf(&l->signature, "Authorization: %s %s", s->scheme, s->credentials);
    }
}

static enum bt_code sign(struct hook *h, struct str id, uint64_t time_s, struct letter *l,
                         struct bt_error *err)
{
    struct sign_secrets secrets;
    char text[SIGN_TEXT_MAX];
    enum bt_code code = hook_secret_read(&h->spec, text, sizeof text, err);

    if (code == BT_OK) {
        code = sign_read(str_from(text), &secrets, err);
        explicit_bzero(text, sizeof text);
    }
    if (code == BT_OK) {
        buf_add_cstr(&l->signature, "webhook-signature: ");
        code = sign_put(&secrets, id, time_s, buf_str(&l->body), &l->signature, err);
        sign_forget(&secrets);
    }
    return code;
}

static enum bt_code seal(struct hook *h, struct str id, struct letter *l, struct bt_error *err)
{
    const uint64_t time_s = clock_wall_ms() / 1000;
    enum bt_code code = BT_OK;

    l->token[0] = 0;
    if (hook_is_push(&h->spec)) {
        show_push(&h->spec, l);
    } else {
        code = sign(h, id, time_s, l, err);
    }
    (void)snprintf(l->id, sizeof l->id, "webhook-id: %.*s", (int)id.len, id.ptr);
    (void)snprintf(l->stamp, sizeof l->stamp, "webhook-timestamp: %" PRIu64, time_s);
    return code;
}

static void send_event(struct hook *h, struct doc event)
{
    struct egress_spec spec = {
        .url = h->spec.url, .timeout_ms = POST_MS, .done = on_sent, .self = h};
    struct letter l;
    struct bt_error err;
    enum bt_code code;
    size_t n = 0;

    buf_init(&l.body, hook_is_push(&h->spec) ? 8 * PAGE_BYTES : 256 * 1024);
    buf_init(&l.signature, 2 * PUSH_TEXT_MAX);
    if (hook_is_push(&h->spec)) {
        push_put_body(h, &l.body);
    } else {
        hook_put_body(h->spec.form, event, h->of->url, &l.body);
    }
    code = buf_check(&l.body, &err);
    if (code == BT_OK) {
        code = seal(h, doc_string(doc_get(event, STR_LIT("eventId"))), &l, &err);
    }
    if (code == BT_OK) {
        spec.headers[n++] = hook_content_type(h->spec.form);
        spec.headers[n++] = l.id;
        spec.headers[n++] = l.stamp;
        spec.headers[n++] = "Expect:";
        if (l.signature.len > 0) {
            spec.headers[n++] = buf_cstr(&l.signature);
        }
        if (l.token[0] != 0) {
            spec.headers[n++] = l.token;
        }
        spec.body = buf_str(&l.body);
        code = egress_post(h->of->out, &spec, &err);
    }
    if (code == BT_OK) {
        h->out = true;
        h->out_serial = h->serial;
    } else if (code == BT_BUSY) {
        h->post_again = h->of->now + HOOK_AGAIN_MS;
    } else {
        h->out_serial = h->serial;
        on_sent(h, 0, 0, err.msg);
    }
    if (l.signature.at != NULL) {
        explicit_bzero(l.signature.at, l.signature.cap);
    }
    buf_done(&l.signature);
    buf_done(&l.body);
}

static void send_test(struct hook *h)
{
    char id[UUID_TEXT_LEN + 1];
    char at[CLOCK_ISO_LEN + 1];
    struct buf event;

    uuid_format(uuid_new(), id);
    clock_iso(clock_wall_ms(), at);
    buf_init(&event, 512);
    doc_put_map(&event, 4);
    doc_put_cstr(&event, "seq"); /* of the last one that was taken: the next one is above it */
    doc_put_u64(&event, h->state.at.seq);
    doc_put_cstr(&event, "eventId");
    doc_put_cstr(&event, id);
    doc_put_cstr(&event, "type");
    doc_put_cstr(&event, "webhook_test");
    doc_put_cstr(&event, "timestamp");
    doc_put_cstr(&event, at);
    h->out_test = true;
    send_event(h, doc_from_buf(&event));
    buf_done(&event);
}

/* ---- one turn ---- */

/* Whether there are events that were not read. */
static bool has_more(const struct hook *h)
{
    const uint64_t last = last_of(h);

    return h->read_once && h->state.at.seq < last && h->known < last;
}

static bool is_due(const struct hook *h)
{
    const msec wall = clock_wall_ms();

    return h->post_again <= h->of->now && hook_due(&h->state.at, wall) <= wall;
}

static void turn(struct hook *h)
{
    struct webhooks *w = h->of;

    if (h->out || h->spec.url[0] == 0) {
        return;
    }
    if (h->spec.test != h->state.tested && h->post_again <= w->now && !hook_is_push(&h->spec)) {
        send_test(h);
        return;
    }
    if (!is_due(h)) {
        return;
    }
    if (next_event(h)) {
        h->out_test = false;
        if (!hook_is_push(&h->spec) || !push_asks(h)) {
            send_event(h, h->event);
        }
    } else if (h->call == NULL && (h->read_again <= w->now || has_more(h))) {
        read_page(h);
    }
    if (h->dirty && w->now - h->written >= WRITE_MS) {
        write_state(h);
    }
}

static void end(struct hook *h)
{
    if (h->call != NULL) {
        call_abandon(h->call);
    }
    buf_done(&h->page);
    buf_done(&h->answer);
    explicit_bzero(&h->spec, sizeof h->spec);
    free(h);
}

void webhooks_run(struct webhooks *w, msec now)
{
    w->now = now;
    if (now - w->scanned >= SCAN_MS) {
        w->scanned = now;
        webhooks_scan(w);
    }
    for (int i = 0; i < HOOK_PLACES; i++) {
        struct hook *h = w->hooks[i];
        if (h == NULL) {
            continue;
        }
        if (!h->gone) {
            turn(h);
        } else if (!h->out) {
            end(h);
            w->hooks[i] = NULL;
        }
    }
}

static msec deadline_of(const struct hook *h, msec now)
{
    const msec wall = clock_wall_ms();
    const msec due = hook_due(&h->state.at, wall);
    msec at = h->dirty ? h->written + WRITE_MS : MSEC_NEVER;

    if (h->out || h->gone || due == MSEC_NEVER) {
        return at;
    }
    if (due > wall) {
        return now + (due - wall) < at ? now + (due - wall) : at;
    }
    if (h->post_again > now) {
        return h->post_again < at ? h->post_again : at;
    }
    if (h->call == NULL && (h->event.ptr != NULL || h->left > 0)) {
        return now;
    }
    if (h->call == NULL) {
        const msec read = has_more(h) ? now : h->read_again;
        at = read < at ? read : at;
    }
    return at;
}

msec webhooks_deadline(const struct webhooks *w, msec now)
{
    msec due = w->scanned + SCAN_MS;

    for (int i = 0; i < HOOK_PLACES; i++) {
        const msec at = w->hooks[i] == NULL ? MSEC_NEVER : deadline_of(w->hooks[i], now);
        due = at < due ? at : due;
    }
    return due;
}

void webhooks_flush(struct webhooks *w)
{
    for (int i = 0; i < HOOK_PLACES; i++) {
        if (w->hooks[i] != NULL && w->hooks[i]->dirty) {
            write_state(w->hooks[i]);
        }
    }
}
