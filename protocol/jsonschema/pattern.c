/*
 * Regular expressions with PCRE2, set to behave like ECMA-262 where that is cheap, and bounded.
 *
 * PCRE2 does not report how much it backtracked. It only reports that one starting position needed
 * more than a limit. So a match starts with a small limit and gets four times more after each
 * failure. Easy patterns are cheap, hard ones pay for each step, and `(a+)+$` soon ends with
 * BT_LIMIT.
 */
#include <stdlib.h>

#include "protocol/jsonschema/check_internal.h"
#include "protocol/jsonschema/compile_internal.h"

enum {
    FIRST_LIMIT = 16,     /* backtracking steps at one start that MATCH_COST covers */
    MATCH_COST = 2,       /* units for any match */
    HEAP_KIB = 1024,      /* of backtracking frames in one match */
    PARENS_NEST_MAX = 64, /* bounds the recursion of PCRE2's compiler */
    BYTES_PER_UNIT = 64,  /* every byte may be a start, and PCRE2 checks the text's UTF-8 */
};

struct pattern_matcher {
    pcre2_general_context *general;
    pcre2_match_context *match;
    pcre2_match_data *data;
};

void *pattern_alloc(size_t n, void *self)
{
    (void)self;
    return malloc(n);
}

void pattern_free(void *at, void *self)
{
    (void)self;
    free(at);
}

/* \Z, \A, \K, \Q and others mean something in PCRE2 and nothing in ECMA-262, so their verdicts
 * would not be portable. */
static char unsupported_escape(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text != '\\') {
            continue;
        }
        text++;
        if (*text == '\0') {
            return 0;
        }
        if (((*text >= 'A' && *text <= 'Z') || (*text >= 'a' && *text <= 'z')) &&
            strchr("bBcdDfknpPrsStuvwWx", *text) == NULL) {
            return *text;
        }
    }
    return 0;
}

enum bt_code compile_pattern(struct compiler *k, const struct keyword_ctx *at, const char *text,
                             pcre2_code **ret)
{
    const uint32_t options = PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_BSUX |
                             PCRE2_MATCH_UNSET_BACKREF | PCRE2_NEVER_BACKSLASH_C;
    pcre2_general_context *general =
        pcre2_general_context_create(pattern_alloc, pattern_free, NULL);
    pcre2_compile_context *context = NULL;
    int number = 0;
    PCRE2_SIZE offset = 0;
    enum bt_code code = BT_OK;

    if (general != NULL) {
        context = pcre2_compile_context_create(general);
    }
    if (context == NULL) {
        code = err_set(k->err, BT_NOMEM, "out of memory for a pattern");
        goto out;
    }
    (void)pcre2_set_parens_nest_limit(context, PARENS_NEST_MAX);
    (void)pcre2_set_newline(context, PCRE2_NEWLINE_ANYCRLF);
    if (strlen(text) > SCHEMA_PATTERN_BYTES) {
        code =
            compile_error(k, at, BT_LIMIT, "a pattern is at most %d bytes", SCHEMA_PATTERN_BYTES);
        goto out;
    }
    if (unsupported_escape(text) != 0) {
        code = compile_error(k, at, BT_INVALID, "\"%.80s\": \\%c is not an escape of ECMA-262",
                             text, unsupported_escape(text));
        goto out;
    }
    *ret =
        pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, options, &number, &offset, context);
    if (*ret != NULL) {
        k->s->codes[k->s->n_codes++] = *ret;
    } else if (number == PCRE2_ERROR_HEAP_FAILED) {
        code = err_set(k->err, BT_NOMEM, "out of memory for a pattern");
    } else {
        char why[128];
        (void)pcre2_get_error_message(number, (PCRE2_UCHAR *)why, sizeof why);
        code = compile_error(k, at, BT_INVALID,
                             "\"%.80s\" is not a regular expression: %s at byte %zu", text, why,
                             (size_t)offset + 1);
    }
out:
    pcre2_compile_context_free(context);
    pcre2_general_context_free(general);
    return code;
}

void pattern_matcher_free(struct pattern_matcher *m)
{
    if (m != NULL) {
        pcre2_match_data_free(m->data);
        pcre2_match_context_free(m->match);
        pcre2_general_context_free(m->general);
        free(m);
    }
}

static bool matcher_prepare(struct checker *c)
{
    struct pattern_matcher *m = c->matcher;

    if (m != NULL) {
        return true;
    }
    m = calloc(1, sizeof *m);
    if (m == NULL) {
        return check_abort(c, BT_NOMEM, "out of memory for a pattern");
    }
    c->matcher = m;
    m->general = pcre2_general_context_create(pattern_alloc, pattern_free, NULL);
    if (m->general != NULL) {
        m->match = pcre2_match_context_create(m->general);
        m->data = pcre2_match_data_create(1, m->general);
    }
    if (m->match == NULL || m->data == NULL) {
        pattern_matcher_free(m);
        c->matcher = NULL;
        return check_abort(c, BT_NOMEM, "out of memory for a pattern");
    }
    (void)pcre2_set_heap_limit(m->match, HEAP_KIB);
    return true;
}

/* Handles each result of pcre2_match but a reached limit. */
static bool match_verdict(struct checker *c, int found)
{
    if (found == PCRE2_ERROR_NOMEMORY) {
        return check_abort(c, BT_NOMEM, "out of memory for a pattern");
    }
    if (found == PCRE2_ERROR_HEAPLIMIT || found == PCRE2_ERROR_DEPTHLIMIT) {
        return check_abort(c, BT_LIMIT, "a pattern needs too much memory for this text");
    }
    return found >= 0; /* text that is not UTF-8 is an error and matches nothing */
}

bool pattern_match(struct checker *c, const pcre2_code *code, const char *text)
{
    size_t len = strlen(text);

    if (!matcher_prepare(c)) {
        return false;
    }
    /* The verdict of a match that was not paid for does not count: check_charge has aborted. */
    for (uint32_t limit = FIRST_LIMIT; check_charge(c, MATCH_COST + len / BYTES_PER_UNIT);
         limit *= 4) {
        int found;
        (void)pcre2_set_match_limit(c->matcher->match, limit);
        found = pcre2_match(code, (PCRE2_SPTR)text, len, 0, PCRE2_NO_JIT, c->matcher->data,
                            c->matcher->match);
        if (found == PCRE2_ERROR_MATCHLIMIT) {
            (void)check_charge(c, limit);
            continue;
        }
        if (limit > FIRST_LIMIT) {
            (void)check_charge(c, limit / 4 * (1 + len / BYTES_PER_UNIT));
        }
        return match_verdict(c, found);
    }
    return false;
}
