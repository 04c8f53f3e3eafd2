/*
 * Templates in tasks and parameters: {{results.<stepId>}} and {{results.<stepId>.<path>}}. This
 * finds and checks them; planner/expand puts the values in. Pure.
 *
 *   template = "{{" blanks "results." ref blanks "}}"        ref = segment { "." segment }
 *   segment  = one or more characters, none of { } . [ ] and no control character
 *
 * A step id may hold dots, so a ref does not say where the id ends: the longest step id of the plan
 * that fits wins (template_split gives the candidates). Other text in double braces is not ours and
 * stays as it is (docker --format '{{.Names}}'); it is reported as FOREIGN, so that a check can
 * warn of {{result.x}}.
 */
#ifndef CORE_TEMPLATE_H
#define CORE_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/base/str.h"

enum template_kind {
    TEMPLATE_OK,
    TEMPLATE_NOT_CLOSED, /* no }} behind it */
    TEMPLATE_NO_STEP,    /* {{results}} or {{results.}} */
    TEMPLATE_BAD_PATH,   /* an empty segment or a character that no segment has */
    TEMPLATE_FOREIGN,
    TEMPLATE_KIND_COUNT
};

struct template_ref {
    enum template_kind kind;
    size_t at;       /* of the first brace */
    size_t len;      /* braces included; to the end of the text when it is not closed */
    struct str text; /* the whole of it, braces included */
    struct str ref;  /* TEMPLATE_OK: "fetch.rows.0" */
};

/* The next template of text at or behind *from, which moves behind it. False when there is none. */
bool template_next(struct str text, size_t *from, struct template_ref *ret);
/* The same for another first word than "results" (recipes have "inputs"). */
bool template_next_of(struct str word, struct str text, size_t *from, struct template_ref *ret);
/* Whether text is exactly one well-formed template (its value then keeps its type). */
bool template_only_of(struct str word, struct str text, struct template_ref *ret);
/*
 * Candidates for the step id, longest first: start with *id = *path = {NULL, 0}; each call gives
 * the next shorter id and the path behind it. False when there are no more.
 */
bool template_split(struct str ref, struct str *id, struct str *path);
/* What is wrong and what would be right, for BAD kinds; "" for TEMPLATE_OK and TEMPLATE_FOREIGN. */
const char *template_kind_text(enum template_kind k);
#endif
