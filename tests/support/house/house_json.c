/* Texts of the house, and looking into JSON. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/house/house_internal.h"

char *house_keep(struct house *h, const void *bytes, size_t len)
{
    char *to = arena_alloc(&h->arena, len + 1);

    assert_non_null(to);
    if (len > 0) {
        memcpy(to, bytes, len);
    }
    to[len] = 0;
    return to;
}

char *house_text_of(struct house *h, const char *fmt, va_list args)
{
    va_list again;
    char *to;
    int n;

    va_copy(again, args);
    n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    assert_true(n >= 0);
    to = arena_alloc(&h->arena, (size_t)n + 1);
    assert_non_null(to);
    (void)vsnprintf(to, (size_t)n + 1, fmt, args);
    for (int i = 0; i < n; i++) {
        to[i] = to[i] == '\'' ? '"' : to[i];
    }
    return to;
}

const char *house_text(struct house *h, const char *fmt, ...)
{
    va_list args;
    const char *text;

    va_start(args, fmt);
    text = house_text_of(h, fmt, args);
    va_end(args);
    return text;
}

static const cJSON *walk(const cJSON *at, const char *path)
{
    while (at != NULL && *path != 0) {
        const char *end = strchr(path, '.');
        const size_t n = end != NULL ? (size_t)(end - path) : strlen(path);
        char name[80];

        assert_true(n < sizeof name);
        (void)snprintf(name, sizeof name, "%.*s", (int)n, path);
        at = cJSON_IsArray(at) ? cJSON_GetArrayItem(at, (int)strtol(name, NULL, 10))
                               : cJSON_GetObjectItemCaseSensitive(at, name);
        path += n + (end != NULL);
    }
    return at;
}

const char *house_get(struct house *h, const char *json, const char *path)
{
    const size_t len = strlen(path);
    const bool count = len >= 1 && path[len - 1] == '#';
    cJSON *root = NULL;
    const char *ret = NULL;
    struct bt_error err;
    const cJSON *at;
    char *way;

    assert_non_null(json); /* there was no answer */
    if (json_parse_exact(str_from(json), &root, &err) != BT_OK) {
        fail_msg("%s in %s", err.msg, json);
    }
    way = house_keep(h, path, count ? (len > 1 ? len - 2 : 0) : len);
    at = walk(root, way);
    if (at != NULL && count) {
        ret = house_text(h, "%d", cJSON_GetArraySize(at));
    } else if (cJSON_IsString(at)) {
        ret = house_keep(h, at->valuestring, strlen(at->valuestring));
    } else if (at != NULL) {
        char *text = cjson_print(at, false, NULL);
        assert_non_null(text);
        ret = house_keep(h, text, strlen(text));
        cJSON_free(text);
    }
    cJSON_Delete(root);
    return ret;
}

void house_is(struct house *h, const char *json, const char *path, const char *want)
{
    const char *have = house_get(h, json, path);

    if ((have == NULL) != (want == NULL) || (want != NULL && strcmp(have, want) != 0)) {
        fail_msg("%s is %s, not %s, in %.3000s", path, have != NULL ? have : "missing",
                 want != NULL ? want : "missing", json);
    }
}

void house_has(struct house *h, const char *json, const char *path, const char *words)
{
    const char *have = house_get(h, json, path);

    if (have == NULL || strstr(have, words) == NULL) {
        fail_msg("%s is %s, without '%s', in %.3000s", path, have != NULL ? have : "missing", words,
                 json);
    }
}

static bool is_wanted(const char *have, const char *want)
{
    if (strcmp(want, "-") == 0 || have == NULL) {
        return have == NULL && strcmp(want, "-") == 0;
    }
    return strcmp(want, "*") == 0 ||
           (want[0] == '~' ? strstr(have, want + 1) != NULL : strcmp(have, want) == 0);
}

void house_says(struct house *h, const char *json, const char *wants)
{
    char *list = house_keep(h, wants, strlen(wants));
    char *rest = NULL;
    bool bad = false;

    for (char *at = strtok_r(list, ";", &rest); at != NULL; at = strtok_r(NULL, ";", &rest)) {
        char *equals;
        const char *have;
        at += strspn(at, " ");
        equals = strchr(at, '=');
        assert_non_null(equals);
        *equals = 0;
        have = house_get(h, json, at);
        if (!is_wanted(have, equals + 1)) {
            print_error("%s is %s, not %s\n", at, have != NULL ? have : "missing", equals + 1);
            bad = true;
        }
    }
    if (bad) {
        fail_msg("in %.6000s", json);
    }
}

/* Only what is wrong in a request has a class, and only what may go by waiting has a time. */
void house_check_error(struct house *h, const char *answer)
{
    const char *code = house_get(h, answer, "error.code");
    const char *cls = house_get(h, answer, "error.class");
    const char *wait = house_get(h, answer, "error.retryAfterMs");

    const char *text = house_get(h, answer, "error.message");
    const bool in_request = strcmp(code, "INVALID") == 0 || strcmp(code, "LIMIT") == 0 ||
                            strncmp(text, "stepId: ", 8) == 0 ||
                            strncmp(text, "there is no planner ", 20) == 0;

    if (cls != NULL && (!in_request || strcmp(cls, "VALIDATION_ERROR") != 0)) {
        fail_msg("%s has the class %s in %s", code, cls, answer);
    }
    if (wait != NULL && strlen(wait) < 3) {
        fail_msg("%s is to be tried again after %s ms in %s", code, wait, answer);
    }
}
