#include "agents/sdk/regex.h"

#include <stdlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum { MATCH_LIMIT = 100000, HEAP_KIB = 4096 };

struct regex {
    pcre2_code *code;
    pcre2_match_context *context;
    pcre2_match_data *data;
    struct str subject;
    int found; /* groups of the last match */
    uint32_t groups;
    const char *names[REGEX_GROUPS_MAX + 1];
};

void regex_free(struct regex *re)
{
    if (re != NULL) {
        pcre2_match_data_free(re->data);
        pcre2_match_context_free(re->context);
        pcre2_code_free(re->code);
        free(re);
    }
}

static void read_names(struct regex *re)
{
    uint32_t count = 0;
    uint32_t size = 0;
    PCRE2_SPTR table = NULL;

    (void)pcre2_pattern_info(re->code, PCRE2_INFO_NAMECOUNT, &count);
    (void)pcre2_pattern_info(re->code, PCRE2_INFO_NAMEENTRYSIZE, &size);
    (void)pcre2_pattern_info(re->code, PCRE2_INFO_NAMETABLE, &table);
    for (uint32_t i = 0; i < count; i++) {
        const unsigned char *entry = table + (size_t)i * size;
        uint32_t group = (uint32_t)entry[0] << 8 | entry[1];
        if (group <= REGEX_GROUPS_MAX) {
            re->names[group] = (const char *)entry + 2;
        }
    }
}

static enum bt_code compile(struct regex *re, struct str pattern, bool ignore_case,
                            struct bt_error *err)
{
    const uint32_t options =
        PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | (ignore_case ? PCRE2_CASELESS : 0u);
    unsigned char text[128] = "";
    PCRE2_SIZE at = 0;
    int number = 0;

    re->code = pcre2_compile((PCRE2_SPTR)pattern.ptr, pattern.len, options, &number, &at, NULL);
    if (re->code == NULL) {
        (void)pcre2_get_error_message(number, text, sizeof text);
        return err_set(err, BT_INVALID, "pattern '%.*s': at %zu: %s",
                       (int)(pattern.len > 80 ? 80 : pattern.len), pattern.ptr, (size_t)at,
                       (const char *)text);
    }
    (void)pcre2_pattern_info(re->code, PCRE2_INFO_CAPTURECOUNT, &re->groups);
    if (re->groups > REGEX_GROUPS_MAX) {
        return err_set(err, BT_LIMIT, "pattern: %u groups, at most %d", re->groups,
                       REGEX_GROUPS_MAX);
    }
    return BT_OK;
}

enum bt_code regex_new(struct str pattern, bool ignore_case, struct regex **ret,
                       struct bt_error *err)
{
    struct regex *re;
    enum bt_code code;

    if (pattern.len == 0 || pattern.len > REGEX_PATTERN_MAX) {
        return err_set(err, BT_INVALID, "pattern: expected 1 to %d bytes", REGEX_PATTERN_MAX);
    }
    re = calloc(1, sizeof *re);
    if (re == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for a pattern");
    }
    code = compile(re, pattern, ignore_case, err);
    if (code == BT_OK) {
        read_names(re);
        re->context = pcre2_match_context_create(NULL);
        re->data = pcre2_match_data_create_from_pattern(re->code, NULL);
        if (re->context == NULL || re->data == NULL) {
            code = err_set(err, BT_NOMEM, "out of memory for a pattern");
        }
    }
    if (code != BT_OK) {
        regex_free(re);
        return code;
    }
    (void)pcre2_set_match_limit(re->context, MATCH_LIMIT);
    (void)pcre2_set_heap_limit(re->context, HEAP_KIB);
    *ret = re;
    return BT_OK;
}

enum bt_code regex_find(struct regex *re, struct str subject, bool *ret_found, struct bt_error *err)
{
    const char *at = subject.len == 0 ? "" : subject.ptr;

    re->subject = (struct str){at, subject.len};
    re->found = pcre2_match(re->code, (PCRE2_SPTR)at, subject.len, 0, PCRE2_NO_UTF_CHECK, re->data,
                            re->context);
    if (re->found > 0 || re->found == PCRE2_ERROR_NOMATCH) {
        *ret_found = re->found > 0;
        return BT_OK;
    }
    if (re->found == PCRE2_ERROR_MATCHLIMIT || re->found == PCRE2_ERROR_HEAPLIMIT) {
        return err_set(err, BT_LIMIT,
                       "the pattern backtracks too much on this text; make it more exact");
    }
    return err_set(err, BT_INTERNAL, "PCRE2 error %d", re->found);
}

struct str regex_group(const struct regex *re, uint32_t ix)
{
    const PCRE2_SIZE *v = pcre2_get_ovector_pointer(re->data);

    if (re->found <= 0 || ix >= (uint32_t)re->found || v[2 * ix] == PCRE2_UNSET) {
        return (struct str){NULL, 0};
    }
    return (struct str){re->subject.ptr + v[2 * ix], v[2 * ix + 1] - v[2 * ix]};
}

uint32_t regex_groups(const struct regex *re)
{
    return re->groups;
}

const char *regex_group_name(const struct regex *re, uint32_t ix)
{
    return ix <= REGEX_GROUPS_MAX ? re->names[ix] : NULL;
}
