#include "supervisor/gateway/webhook/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/base/glob.h"
#include "protocol/base/replace.h"
#include "protocol/wire/doc.h"
#include "supervisor/gateway/json.h"

enum { ENDING_BYTES = 16 };
enum { PATH_BYTES = 4400 };

/* The bytes of a file, or why not. *ret_mode: of the file. */
static enum bt_code read_all(const char *path, struct buf *out, mode_t *ret_mode,
                             struct bt_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st = {0};
    uint8_t *room = buf_reserve(out, HOOK_FILE_MAX);
    ssize_t n = -1;
    int why = errno;

    if (fd >= 0) {
        const bool is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
        n = room != NULL && is_file ? read(fd, room, HOOK_FILE_MAX) : -1;
        why = is_file ? errno : EINVAL;
        (void)close(fd);
    }
    if (n < 0) {
        return err_errno(err, why, "cannot read %s", path);
    }
    out->len += (size_t)n;
    *ret_mode = st.st_mode;
    return BT_OK;
}

static enum bt_code read_doc(const char *dir, const char *name, const char *ending, struct buf *out,
                             struct bt_error *err)
{
    char path[PATH_BYTES];
    struct buf text;
    mode_t mode;
    enum bt_code code;

    (void)snprintf(path, sizeof path, "%s/" HOOKS_DIR "/%s%s", dir, name, ending);
    buf_init(&text, HOOK_FILE_MAX + 1);
    code = read_all(path, &text, &mode, err);
    if (code == BT_OK) {
        code = json_to_doc(buf_str(&text), NULL, out, err);
    }
    buf_done(&text);
    return code;
}

static uint64_t number(struct doc d, const char *name)
{
    const struct doc v = doc_get(d, str_from(name));

    return v.ptr != NULL && doc_head(v).kind == DOC_UINT ? doc_head(v).u : 0;
}

/* False: it is there, and no text of at most max bytes without a zero byte. */
static bool take_text(struct doc d, const char *name, char *ret, size_t max)
{
    const struct doc v = doc_get(d, str_from(name));
    const struct str s = doc_string(v);

    ret[0] = 0;
    if (v.ptr == NULL) {
        return true;
    }
    if (s.ptr == NULL || s.len > max || memchr(s.ptr, 0, s.len) != NULL) {
        return false;
    }
    memcpy(ret, s.ptr, s.len);
    ret[s.len] = 0;
    return true;
}

static bool take_form(struct doc d, enum hook_form *ret)
{
    static const char *const names[HOOK_FORMS] = {"cloudevents", "chat", "mail", "a2a-1.0",
                                                  "a2a-0.3"};
    char text[16];

    *ret = HOOK_CLOUDEVENTS;
    if (!take_text(d, "body", text, sizeof text - 1)) {
        return false;
    }
    for (int i = 0; i < HOOK_FORMS; i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret = (enum hook_form)i;
            return true;
        }
    }
    return text[0] == 0;
}

static bool take_topics(struct doc d, struct hook_spec *ret)
{
    const struct doc list = doc_get(d, STR_LIT("topics"));
    const struct doc_head head =
        list.ptr == NULL ? (struct doc_head){.kind = DOC_ARRAY} : doc_head(list);

    if (head.kind != DOC_ARRAY || head.n > HOOK_TOPICS_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < head.n; i++) {
        const struct str s = doc_string(doc_at(list, i));
        if (s.len == 0 || s.len > HOOK_TOPIC_MAX) {
            return false;
        }
        memcpy(ret->topics[i], s.ptr, s.len);
    }
    ret->topics_n = head.n;
    return true;
}

bool hook_is_push(const struct hook_spec *spec)
{
    return spec->form == HOOK_A2A || spec->form == HOOK_A2A_OLD;
}

static bool take_push(struct doc d, struct hook_spec *ret)
{
    return take_text(d, "planId", ret->plan, sizeof ret->plan - 1) &&
           take_text(d, "contextId", ret->context, sizeof ret->context - 1) &&
           take_text(d, "configId", ret->config, sizeof ret->config - 1) &&
           take_text(d, "token", ret->token, PUSH_TEXT_MAX) &&
           take_text(d, "scheme", ret->scheme, sizeof ret->scheme - 1) &&
           take_text(d, "credentials", ret->credentials, PUSH_TEXT_MAX) &&
           hook_is_push(ret) == (ret->plan[0] != 0);
}

static const char *take_spec(struct doc d, struct hook_spec *ret)
{
    const struct doc resend = doc_get(d, STR_LIT("resend"));

    if (!take_text(d, "url", ret->url, HOOK_URL_MAX) ||
        (strncmp(ret->url, "http://", 7) != 0 && strncmp(ret->url, "https://", 8) != 0)) {
        return "url: expected an address with http:// or https://";
    }
    if (!take_topics(d, ret)) {
        return "topics: expected at most 16 globs of event types, each of 1 to 64 bytes";
    }
    if (!take_form(d, &ret->form)) {
        return "body: expected cloudevents, chat or mail";
    }
    if (!take_push(d, ret)) {
        return "planId: expected the plan of a push notification, with its texts";
    }
    if (!take_text(d, "secretFile", ret->secret_file, HOOK_PATH_MAX) ||
        !take_text(d, "secretEnv", ret->secret_env, HOOK_ENV_MAX) ||
        (!hook_is_push(ret) && (ret->secret_file[0] == 0) == (ret->secret_env[0] == 0))) {
        return "expected secretFile or secretEnv, where the secret is";
    }
    ret->made = number(d, "made");
    ret->from = number(d, "fromSeq");
    ret->test = number(d, "test");
    ret->resend = number(resend, "order");
    ret->resend_from = number(resend, "fromSeq");
    return NULL;
}

enum bt_code hook_spec_parse(struct str json, struct hook_spec *ret, struct bt_error *err)
{
    struct buf doc;
    const char *wrong;
    enum bt_code code;

    *ret = (struct hook_spec){.from = 0};
    buf_init(&doc, json_doc_capacity(json.len));
    code = json_to_doc(json, NULL, &doc, err);
    wrong = code == BT_OK ? take_spec(doc_from_buf(&doc), ret) : NULL;
    buf_done(&doc);
    return wrong == NULL ? code : err_set(err, BT_INVALID, "%s", wrong);
}

enum bt_code hook_spec_read(const char *dir, const char *name, struct hook_spec *ret,
                            struct bt_error *err)
{
    char path[PATH_BYTES];
    struct buf text;
    mode_t mode;
    enum bt_code code;

    (void)snprintf(path, sizeof path, "%s/" HOOKS_DIR "/%s.json", dir, name);
    buf_init(&text, HOOK_FILE_MAX + 1);
    code = read_all(path, &text, &mode, err);
    if (code == BT_OK) {
        code = hook_spec_parse(buf_str(&text), ret, err);
    }
    buf_done(&text);
    return code;
}

/* Names have no dot. */
static void write_ending(uint32_t shard, char ret[ENDING_BYTES])
{
    if (shard == 0) {
        (void)snprintf(ret, ENDING_BYTES, ".at");
    } else {
        (void)snprintf(ret, ENDING_BYTES, ".S%u.at", (unsigned)shard);
    }
}

bool hook_state_read(const char *dir, const char *name, uint32_t shard,
                     const struct hook_spec *spec, struct hook_state *ret)
{
    struct buf bytes;
    struct doc d = {.ptr = NULL};
    char ending[ENDING_BYTES];
    bool found = false;

    *ret = (struct hook_state){.at.seq = spec->from > 0 ? spec->from - 1 : 0};
    buf_init(&bytes, json_doc_capacity(HOOK_FILE_MAX));
    write_ending(shard, ending);
    if (read_doc(dir, name, ending, &bytes, NULL) == BT_OK) {
        d = doc_from_buf(&bytes);
    }
    if (doc_get(d, STR_LIT("seq")).ptr != NULL && number(d, "made") == spec->made) {
        const struct doc parked = doc_get(d, STR_LIT("parked"));
        found = true;
        ret->at.seq = number(d, "seq");
        ret->at.tries = (uint32_t)number(d, "tries");
        ret->at.failed = number(d, "failedMs");
        ret->at.due = number(d, "dueMs");
        ret->at.parked = parked.ptr != NULL && doc_head(parked).b;
        (void)take_text(d, "eventId", ret->at.id, UUID_TEXT_LEN);
        (void)take_text(d, "why", ret->at.why, HOOK_WHY_MAX);
        ret->resent = number(d, "resent");
        ret->tested = number(d, "tested");
        ret->test_status = (unsigned)number(d, "testStatus");
        (void)take_text(d, "testWhy", ret->test_why, HOOK_WHY_MAX);
    }
    buf_done(&bytes);
    return found;
}

static void put_state(struct buf *out, const struct hook_spec *spec, const struct hook_state *s)
{
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {{"made", spec->made},   {"seq", s->at.seq},
                   {"tries", s->at.tries}, {"failedMs", s->at.failed},
                   {"dueMs", s->at.due},   {"resent", s->resent},
                   {"tested", s->tested},  {"testStatus", s->test_status}};

    json_open(out, '{');
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        json_key(out, numbers[i].name);
        json_u64(out, numbers[i].value);
    }
    json_key(out, "parked");
    json_bool(out, s->at.parked);
    if (s->at.id[0] != 0) {
        json_member(out, "eventId", str_from(s->at.id));
    }
    json_member(out, "why", str_from(s->at.why));
    json_member(out, "testWhy", str_from(s->test_why));
    json_close(out, '}');
}

enum bt_code hook_state_write(const char *dir, const char *name, uint32_t shard,
                              const struct hook_spec *spec, const struct hook_state *s,
                              struct bt_error *err)
{
    char path[PATH_BYTES];
    char ending[ENDING_BYTES];
    struct buf text;
    enum bt_code code;

    write_ending(shard, ending);
    (void)snprintf(path, sizeof path, "%s/" HOOKS_DIR "/%s%s", dir, name, ending);
    buf_init(&text, HOOK_FILE_MAX);
    put_state(&text, spec, s);
    code = buf_check(&text, err);
    if (code == BT_OK) {
        code = file_replace(path, text.at, text.len, err);
    }
    buf_done(&text);
    return code;
}

void hook_state_remove(const char *dir, const char *name, uint32_t shard)
{
    char path[PATH_BYTES];
    char ending[ENDING_BYTES];

    write_ending(shard, ending);
    (void)snprintf(path, sizeof path, "%s/" HOOKS_DIR "/%s%s", dir, name, ending);
    (void)unlink(path);
}

enum bt_code hook_secret_read(const struct hook_spec *spec, char *ret, size_t cap,
                              struct bt_error *err)
{
    const char *value = spec->secret_env[0] != 0 ? getenv(spec->secret_env) : NULL;
    struct buf text;
    mode_t mode = 0;
    enum bt_code code = BT_OK;

    ret[0] = 0;
    if (spec->secret_env[0] != 0) {
        if (value == NULL || strlen(value) >= cap) {
            return err_set(err, BT_NOT_FOUND, "the gateway has no variable %s with the secret",
                           spec->secret_env);
        }
        (void)snprintf(ret, cap, "%s", value);
        return BT_OK;
    }
    buf_init(&text, HOOK_FILE_MAX + 1);
    code = read_all(spec->secret_file, &text, &mode, err);
    if (code == BT_OK && (mode & 077) != 0) {
        code = err_set(err, BT_UNAUTHORIZED, "%s: others may read it; chmod 600 it",
                       spec->secret_file);
    } else if (code == BT_OK && text.len >= cap) {
        code = err_set(err, BT_INVALID, "%s: is longer than two secrets", spec->secret_file);
    } else if (code == BT_OK) {
        memcpy(ret, text.at, text.len);
        ret[text.len] = 0;
    }
    if (text.at != NULL) {
        explicit_bzero(text.at, text.cap);
    }
    buf_done(&text);
    return code;
}

bool hook_wants(const struct hook_spec *spec, struct str type)
{
    for (uint32_t i = 0; i < spec->topics_n; i++) {
        if (glob_fits(str_from(spec->topics[i]), type)) {
            return true;
        }
    }
    return spec->topics_n == 0;
}

void hook_push_name(const char *plan, const char *config, char ret[HOOK_NAME_MAX + 1])
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    size_t n;

    for (const char *c = config; *c != 0; c++) {
        hash = (hash ^ (uint8_t)*c) * 1099511628211u;
    }
    n = (size_t)snprintf(ret, HOOK_NAME_MAX + 1, "push-%.40s-%016llx", plan,
                         (unsigned long long)hash);
    for (size_t i = 0; i < n && i < HOOK_NAME_MAX; i++) {
        ret[i] = (char)(ret[i] >= 'A' && ret[i] <= 'Z' ? ret[i] + 32 : ret[i]);
    }
}

enum bt_code hook_push_write(const char *dir, const struct hook_spec *spec, struct bt_error *err)
{
    const char *const texts[][2] = {
        {"url", spec->url},         {"body", spec->form == HOOK_A2A ? "a2a-1.0" : "a2a-0.3"},
        {"planId", spec->plan},     {"contextId", spec->context},
        {"configId", spec->config}, {"token", spec->token},
        {"scheme", spec->scheme},   {"credentials", spec->credentials}};
    char path[PATH_BYTES];
    char name[HOOK_NAME_MAX + 1];
    struct buf text;
    enum bt_code code;

    (void)snprintf(path, sizeof path, "%s/" HOOKS_DIR, dir);
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return err_errno(err, errno, "cannot make %s", path);
    }
    hook_push_name(spec->plan, spec->config, name);
    (void)snprintf(path, sizeof path, "%s/" HOOKS_DIR "/%s.json", dir, name);
    buf_init(&text, HOOK_FILE_MAX);
    json_open(&text, '{');
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        json_member(&text, texts[i][0], str_from(texts[i][1]));
    }
    json_key(&text, "made");
    json_u64(&text, spec->made);
    json_key(&text, "fromSeq");
    json_u64(&text, spec->from);
    json_close(&text, '}');
    code = buf_check(&text, err);
    if (code == BT_OK) {
        code = file_replace(path, text.at, text.len, err);
    }
    if (text.at != NULL) {
        explicit_bzero(text.at, text.cap);
    }
    buf_done(&text);
    return code;
}

bool hook_remove(const char *dir, const char *name)
{
    char path[PATH_BYTES];
    bool was;

    (void)snprintf(path, sizeof path, "%s/" HOOKS_DIR "/%s.json", dir, name);
    was = unlink(path) == 0;
    (void)snprintf(path, sizeof path, "%s/" HOOKS_DIR "/%s.at", dir, name);
    (void)unlink(path);
    return was;
}
