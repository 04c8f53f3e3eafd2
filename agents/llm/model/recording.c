#include "agents/llm/model/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "protocol/base/map.h"
#include "protocol/wire/doc.h"

struct recording {
    const char *dir;
    const struct secrets *secrets;
    bool replay;
    pthread_mutex_t lock; /* guards the members below */
    struct map counts;    /* hash -> number of calls */
    struct arena names;
    uint32_t calls;
};

enum bt_code recording_new(const char *dir, bool replay, const struct secrets *secrets,
                           struct recording **ret, struct bt_error *err)
{
    struct recording *t;

    if (access(dir, replay ? R_OK | X_OK : W_OK | X_OK) != 0) {
        return err_errno(err, errno, "the directory of recordings %s", dir);
    }
    t = calloc(1, sizeof *t);
    if (t == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for recordings");
    }
    t->dir = dir;
    t->secrets = secrets;
    t->replay = replay;
    (void)pthread_mutex_init(&t->lock, NULL);
    *ret = t;
    return BT_OK;
}

void recording_free(struct recording *t)
{
    if (t != NULL) {
        map_done(&t->counts);
        arena_done(&t->names);
        (void)pthread_mutex_destroy(&t->lock);
        free(t);
    }
}

bool recording_replays(const struct recording *t)
{
    return t->replay;
}

/* The file name of this call. */
static enum bt_code next_path(struct recording *t, const struct net_spec *spec, char *path,
                              size_t room, struct bt_error *err)
{
    uint64_t hash = str_hash(spec->body) * 31 + str_hash(str_from(spec->url));
    enum bt_code code = BT_OK;
    char name[32];
    uint32_t n;
    int len = snprintf(name, sizeof name, "%016llx", (unsigned long long)hash);
    struct str key = {name, (size_t)len};

    (void)pthread_mutex_lock(&t->lock);
    n = map_get(&t->counts, key) + 1; /* MAP_NONE + 1 is 0 */
    n = n == 0 ? 1 : n;
    /* An equal key is replaced by the new copy, so RECORDING_CALLS_MAX bounds the copies too. */
    key = t->calls++ < RECORDING_CALLS_MAX ? arena_str(&t->names, key) : (struct str){0};
    if (key.ptr == NULL || map_put(&t->counts, key, n) != BT_OK) {
        code = err_set(err, BT_LIMIT, "more than %d recordings", RECORDING_CALLS_MAX);
    }
    (void)pthread_mutex_unlock(&t->lock);
    if (code == BT_OK && snprintf(path, room, "%s/%s-%u.json", t->dir, name, n) >= (int)room) {
        code = err_set(err, BT_LIMIT, "the path of a recording is too long");
    }
    return code;
}

/* ---- recording ---- */

static void put_text(struct buf *out, const char *name, struct str text)
{
    doc_put_cstr(out, name);
    doc_put_str(out, text);
}

static void put_call(struct buf *out, const struct net_spec *spec, const struct net_answer *answer,
                     enum bt_code ended, const char *why)
{
    doc_put_map(out, 10);
    put_text(out, "url", str_from(spec->url));
    put_text(out, "code", str_from(bt_code_name(ended)));
    put_text(out, "why", str_from(why));
    doc_put_cstr(out, "status");
    doc_put_u64(out, (uint64_t)answer->status);
    put_text(out, "retryAfter", str_from(answer->retry_after));
    put_text(out, "retryAfterMs", str_from(answer->retry_after_ms));
    put_text(out, "shouldRetry", str_from(answer->should_retry));
    put_text(out, "requestId", str_from(answer->request_id));
}

static enum bt_code write_file(const char *path, const struct buf *json, struct bt_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    size_t at = 0;

    if (fd < 0) {
        return err_errno(err, errno, "%s", path);
    }
    while (at < json->len) {
        ssize_t n = write(fd, json->at + at, json->len - at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            int errnum = errno;
            (void)close(fd);
            return err_errno(err, errnum, "%s", path);
        }
        at += (size_t)n;
    }
    return close(fd) == 0 ? BT_OK : err_errno(err, errno, "%s", path);
}

enum bt_code recording_record(struct recording *t, const struct net_spec *spec,
                              const struct net_answer *answer, enum bt_code ended, const char *why,
                              struct str body, struct bt_error *err)
{
    struct buf came;
    struct buf sent;
    struct buf doc;
    struct buf json;
    char path[1200];
    enum bt_code code = next_path(t, spec, path, sizeof path, err);

    buf_init(&came, RECORDING_FILE_MAX);
    buf_init(&sent, RECORDING_FILE_MAX);
    buf_init(&doc, RECORDING_FILE_MAX * 2);
    buf_init(&json, RECORDING_FILE_MAX * 2);
    if (code == BT_OK) {
        (void)buf_add_repaired(&came, body);
        secrets_redact(t->secrets, &came);
        buf_add_str(&sent, spec->body);
        secrets_redact(t->secrets, &sent);
        put_call(&doc, spec, answer, ended, why);
        put_text(&doc, "request", buf_str(&sent));
        put_text(&doc, "response", buf_str(&came));
        code = buf_check(&came, err);
        code = code == BT_OK ? buf_check(&sent, err) : code;
        code = code == BT_OK ? buf_check(&doc, err) : code;
    }
    if (code == BT_OK) {
        code = doc_to_json(doc_from_buf(&doc), true, &json, err);
    }
    if (code == BT_OK) {
        secrets_redact(t->secrets, &json); /* also in the headers */
        code = write_file(path, &json, err);
    }
    buf_done(&came);
    buf_done(&sent);
    buf_done(&doc);
    buf_done(&json);
    return code;
}

/* ---- replay ---- */

static enum bt_code read_file(const char *path, struct buf *out, struct bt_error *err)
{
    FILE *f = fopen(path, "re");
    char chunk[8192];
    size_t n;
    enum bt_code code;

    if (f == NULL) {
        return errno == ENOENT
                   ? err_set(err, BT_NOT_FOUND, "%s: this call was never recorded", path)
                   : err_errno(err, errno, "%s", path);
    }
    while ((n = fread(chunk, 1, sizeof chunk, f)) > 0) {
        buf_add(out, chunk, n);
    }
    code = ferror(f) ? err_errno(err, errno, "%s", path) : buf_check(out, err);
    (void)fclose(f);
    return code;
}

static void copy_text(const cJSON *map, const char *name, char ret[NET_FIELD_MAX])
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(map, name);

    if (cJSON_IsString(item)) {
        (void)snprintf(ret, NET_FIELD_MAX, "%s", item->valuestring);
    }
}

static const char *text_of(const cJSON *map, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(map, name);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static enum bt_code play(const struct net_spec *spec, const cJSON *call, struct net_answer *ret,
                         struct bt_error *err)
{
    const cJSON *status = cJSON_GetObjectItemCaseSensitive(call, "status");
    struct str code = str_from(text_of(call, "code"));
    struct str body = str_from(text_of(call, "response"));

    if (!cJSON_IsNumber(status) || !(status->valuedouble >= 0 && status->valuedouble < 1000)) {
        return err_set(err, BT_INVALID, "status: expected a number");
    }
    *ret = (struct net_answer){.status = (long)status->valuedouble, .bytes = body.len};
    copy_text(call, "retryAfter", ret->retry_after);
    copy_text(call, "retryAfterMs", ret->retry_after_ms);
    copy_text(call, "shouldRetry", ret->should_retry);
    copy_text(call, "requestId", ret->request_id);
    if (body.len > 0) {
        (void)spec->on_bytes(spec->self, ret->status, body);
    }
    if (str_is(code, "OK")) {
        return BT_OK;
    }
    return err_set(err, err_code_from_name(code.ptr, code.len), "%s", text_of(call, "why"));
}

enum bt_code recording_play(struct recording *t, const struct net_spec *spec,
                            struct net_answer *ret, struct bt_error *err)
{
    const struct json_limits limits = {.bytes = RECORDING_FILE_MAX, .depth = 4, .nodes = 100};
    struct buf json;
    struct buf doc;
    cJSON *call = NULL;
    char path[1200];
    enum bt_code code = next_path(t, spec, path, sizeof path, err);

    *ret = (struct net_answer){0};
    buf_init(&json, RECORDING_FILE_MAX);
    buf_init(&doc, json_doc_capacity(RECORDING_FILE_MAX));
    if (code == BT_OK) {
        code = read_file(path, &json, err);
    }
    if (code == BT_OK) {
        code = json_to_doc(buf_str(&json), &limits, &doc, err);
        code = code == BT_OK ? doc_to_cjson(doc_from_buf(&doc), &call, err) : code;
        code = code == BT_OK ? play(spec, call, ret, err) : err_wrap(err, "%s", path);
    }
    cJSON_Delete(call);
    buf_done(&json);
    buf_done(&doc);
    return code;
}
