#include "supervisor/config/yaml_marks.h"

#include <stdlib.h>

#include <cjson/cJSON.h>

#include "protocol/limits.h"

struct mark {
    const cJSON *item;
    struct yaml_place place;
};

struct yaml_marks {
    cJSON *tree;
    struct mark *at; /* sorted by item once sealed */
    uint32_t n;
    uint32_t cap;
};

struct yaml_marks *yaml_marks_new(void)
{
    return calloc(1, sizeof(struct yaml_marks));
}

void yaml_marks_free(struct yaml_marks *marks)
{
    if (marks != NULL) {
        free(marks->at);
        free(marks);
    }
}

enum bt_code yaml_marks_add(struct yaml_marks *m, const cJSON *item, struct yaml_place place)
{
    if (m->n == LIMIT_NODES) {
        return BT_LIMIT;
    }
    if (m->n == m->cap) {
        uint32_t cap = m->cap == 0 ? 64 : m->cap * 2;
        struct mark *bigger = realloc(m->at, cap * sizeof *bigger);
        if (bigger == NULL) {
            return BT_NOMEM;
        }
        m->at = bigger;
        m->cap = cap;
    }
    m->at[m->n++] = (struct mark){item, place};
    return BT_OK;
}

static int by_item(const void *a, const void *b)
{
    const struct mark *x = a;
    const struct mark *y = b;

    return ((uintptr_t)x->item > (uintptr_t)y->item) - ((uintptr_t)x->item < (uintptr_t)y->item);
}

void yaml_marks_seal(struct yaml_marks *m, cJSON *tree)
{
    m->tree = tree;
    qsort(m->at, m->n, sizeof *m->at, by_item);
}

/* Whether the token of a JSON pointer at `at` is this key; ~0 and ~1 stand for ~ and /. */
static bool token_is(const char *at, size_t len, const char *key)
{
    const char *end = at + len;

    for (; at < end && *key != '\0'; at++, key++) {
        char c = *at;
        if (c == '~' && at + 1 < end) {
            at++;
            c = *at == '1' ? '/' : '~';
        }
        if (c != *key) {
            return false;
        }
    }
    return at == end && *key == '\0';
}

static cJSON *child_at(const cJSON *v, const char *token, size_t len)
{
    char digits[12] = "";

    if (cJSON_IsArray(v) && len > 0 && len < sizeof digits) {
        memcpy(digits, token, len);
        if (strspn(digits, "0123456789") != len) {
            return NULL;
        }
        return cJSON_GetArrayItem(v, (int)strtol(digits, NULL, 10));
    }
    if (!cJSON_IsObject(v)) {
        return NULL;
    }
    for (cJSON *child = v->child; child != NULL; child = child->next) {
        if (token_is(token, len, child->string)) {
            return child;
        }
    }
    return NULL;
}

struct yaml_place yaml_place(const struct yaml_marks *marks, const char *pointer)
{
    struct mark wanted = {.item = marks->tree};
    const struct mark *found;

    while (*pointer == '/') {
        size_t len = strcspn(pointer + 1, "/");
        const cJSON *next = child_at(wanted.item, pointer + 1, len);
        if (next == NULL) {
            break;
        }
        wanted.item = next;
        pointer += 1 + len;
    }
    found = bsearch(&wanted, marks->at, marks->n, sizeof wanted, by_item);
    return found == NULL ? (struct yaml_place){1, 1} : found->place;
}
