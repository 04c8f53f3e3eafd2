/* Rules for a single value. */
#include <math.h>

#include "protocol/base/suggest.h"
#include "protocol/base/utf8.h"
#include "protocol/jsonschema/check_internal.h"

bool rule_type(struct checker *c, const struct rule *r, const struct check_target *a)
{
    uint32_t type = node_type(a->item);
    struct buf want;
    struct buf got;

    if (type == TYPE_NUMBER && isfinite(a->item->valuedouble) &&
        floor(a->item->valuedouble) == a->item->valuedouble) {
        type |= TYPE_INTEGER; /* 1.0 is an integer (draft 7, section 6.1.1) */
    }
    if ((r->u.types & type) != 0) {
        return true;
    }
    if (check_is_done(c, a->problems)) {
        return false;
    }
    buf_init(&want, DESCRIBE_MAX);
    buf_init(&got, DESCRIBE_MAX);
    describe_types(&want, r->u.types);
    describe_value(&got, a->item);
    (void)check_report(a, "expected %s, got %s", buf_cstr(&want), buf_cstr(&got));
    buf_done(&want);
    buf_done(&got);
    return false;
}

enum { JSON_SHOWN = 80 };

/* A list or object as JSON, since "an array" does not tell two of them apart; cut after 80 bytes.
 * Other values as describe_value. */
static void describe_whole(struct buf *out, const cJSON *v)
{
    char *json = (node_type(v) & (TYPE_ARRAY | TYPE_OBJECT)) != 0 && v->child != NULL
                     ? cJSON_PrintUnformatted(v)
                     : NULL;
    const size_t len = json != NULL ? strlen(json) : 0;

    if (json == NULL) {
        describe_value(out, v);
    } else {
        buf_add(out, json, utf8_cut(json, len, JSON_SHOWN));
        buf_add_cstr(out, len > JSON_SHOWN ? "..." : "");
    }
    cJSON_free(json);
}

bool rule_const(struct checker *c, const struct rule *r, const struct check_target *a)
{
    struct buf text;

    if (value_equal(c, r->u.json, a->item)) {
        return true;
    }
    if (check_is_done(c, a->problems)) {
        return false;
    }
    buf_init(&text, DESCRIBE_MAX);
    buf_add_cstr(&text, "expected ");
    describe_whole(&text, r->u.json);
    buf_add_cstr(&text, ", got ");
    describe_whole(&text, a->item);
    (void)check_report(a, "%s", buf_cstr(&text));
    buf_done(&text);
    return false;
}

enum { ENUM_SHOWN = 8 };

/* Returns the enum value that was probably meant, or "". */
static struct str suggest_enum(const struct rule *r, const struct check_target *a)
{
    struct suggest suggestion =
        suggest_start(str_from(cJSON_IsString(a->item) ? a->item->valuestring : ""));
    const cJSON *v;

    cJSON_ArrayForEach(v, r->u.json)
    {
        if (cJSON_IsString(v)) {
            suggest_offer(&suggestion, str_from(v->valuestring));
        }
    }
    return suggestion.best.ptr != NULL ? suggestion.best : STR_LIT("");
}

static bool report_enum(const struct rule *r, const struct check_target *a)
{
    const struct str suggestion = suggest_enum(r, a);
    uint32_t n = 0;
    const cJSON *v;
    struct buf text;

    buf_init(&text, 1024);
    cJSON_ArrayForEach(v, r->u.json)
    {
        if (n++ < ENUM_SHOWN) {
            buf_add_cstr(&text, n == 1 ? "" : ", ");
            describe_whole(&text, v);
        }
    }
    if (n > ENUM_SHOWN) {
        buf_printf(&text, " or %u more", n - ENUM_SHOWN);
    }
    buf_add_cstr(&text, ", got ");
    describe_whole(&text, a->item);
    if (suggestion.len > 0) {
        buf_printf(&text, "; did you mean \"%.*s\"?", STR_ARG(suggestion));
    }
    (void)check_report(a, "expected %s%s", n == 1 ? "" : "one of ", buf_cstr(&text));
    buf_done(&text);
    return false;
}

bool rule_enum(struct checker *c, const struct rule *r, const struct check_target *a)
{
    const cJSON *v;

    cJSON_ArrayForEach(v, r->u.json)
    {
        if (value_equal(c, v, a->item)) {
            return true;
        }
    }
    return check_is_done(c, a->problems) ? false : report_enum(r, a);
}

/* No double is exactly 0.0075, yet people expect it to be a multiple of 0.0001. Fractions get a
 * tolerance; whole numbers are exact. */
static bool is_multiple(double v, double of)
{
    double q = v / of;

    if ((floor(v) == v && floor(of) == of) || !isfinite(q)) {
        return fmod(v, of) == 0;
    }
    return fabs(q - round(q)) <= 1e-9 * fmax(1, fabs(q));
}

bool rule_number(struct checker *c, const struct rule *r, const struct check_target *a)
{
    static const char *const must[RULE_COUNT] = {
        [RULE_MULTIPLE_OF] = "a multiple of",
        [RULE_MINIMUM] = "at least",
        [RULE_MAXIMUM] = "at most",
        [RULE_EXCLUSIVE_MINIMUM] = "more than",
        [RULE_EXCLUSIVE_MAXIMUM] = "less than",
    };
    double v = a->item->valuedouble;
    double bound = r->u.number;
    bool ok = false;
    struct buf text;

    if (r->kind == RULE_MULTIPLE_OF) {
        ok = is_multiple(v, bound);
    } else if (r->kind == RULE_MINIMUM) {
        ok = v >= bound;
    } else if (r->kind == RULE_MAXIMUM) {
        ok = v <= bound;
    } else if (r->kind == RULE_EXCLUSIVE_MINIMUM) {
        ok = v > bound;
    } else {
        ok = v < bound;
    }
    if (ok || check_is_done(c, a->problems)) {
        return ok;
    }
    buf_init(&text, DESCRIBE_MAX);
    buf_printf(&text, "must be %s ", must[r->kind]);
    describe_whole(&text, &(cJSON){.type = cJSON_Number, .valuedouble = bound});
    buf_add_cstr(&text, ", got ");
    describe_whole(&text, a->item);
    (void)check_report(a, "%s", buf_cstr(&text));
    buf_done(&text);
    return false;
}

/* Counts code points and stops after the bound, so the cost depends on the bound and not on the
 * text. */
bool rule_length(struct checker *c, const struct rule *r, const struct check_target *a)
{
    uint64_t n = 0;
    uint64_t bytes = 0;
    bool ok;

    for (const char *at = a->item->valuestring; *at != '\0' && n <= r->u.count; at++, bytes++) {
        n += ((unsigned char)*at & 0xc0) != 0x80;
    }
    (void)check_charge(c, bytes / 256);
    ok = r->kind == RULE_MIN_LENGTH ? n >= r->u.count : n <= r->u.count;
    if (ok) {
        return true;
    }
    if (r->kind == RULE_MAX_LENGTH) {
        return check_report(a, "must be at most %llu characters long",
                            (unsigned long long)r->u.count);
    }
    return n == 0 ? check_report(a, "must not be empty")
                  : check_report(a, "must be at least %llu characters long, has %llu",
                                 (unsigned long long)r->u.count, (unsigned long long)n);
}

static bool report_pattern(const char *source, const struct check_target *a)
{
    struct buf got;

    buf_init(&got, DESCRIBE_MAX);
    describe_value(&got, a->item);
    (void)check_report(a, "must match %.120s, got %s", source, buf_cstr(&got));
    buf_done(&got);
    return false;
}

bool rule_pattern(struct checker *c, const struct rule *r, const struct check_target *a)
{
    if (pattern_match(c, r->u.pattern.code, a->item->valuestring)) {
        return true;
    }
    return check_is_done(c, a->problems) ? false : report_pattern(r->u.pattern.text, a);
}
