/*
 * Templates in tasks and parameters: {{results.<stepId>}} and {{results.<stepId>.<path>}}.
 * This finds and checks them; plan/expand inserts the values. Pure.
 *
 *   template = "{{" blanks "results." ref blanks "}}"
 *   ref      = segment { "." segment }
 *   segment  = one or more characters, none of { } . [ ] and no control character
 *
 * A step id may contain dots, so a ref does not show where the id ends. The longest step id of the
 * plan that fits wins (template_split gives the candidates). Other text in double braces stays as
 * it is (docker --format '{{.Names}}'). It is reported as FOREIGN, so a check can warn of
 * {{result.x}}.
 */
#ifndef CORE_TEMPLATE_H
#define CORE_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/base/str.h"

enum template_kind {
    TEMPLATE_OK,
    TEMPLATE_NOT_CLOSED, /* no }} after it */
    TEMPLATE_NO_STEP,    /* {{results}} or {{results.}} */
    TEMPLATE_BAD_PATH,   /* an empty segment, or a character that no segment may have */
    TEMPLATE_FOREIGN,
    TEMPLATE_KIND_COUNT
};

struct template_ref {
    enum template_kind kind;
    size_t at;       /* of the first brace */
    size_t len;      /* with the braces; to the end of the text when it is not closed */
    struct str text; /* all of it, with the braces */
    struct str ref;  /* TEMPLATE_OK: "fetch.rows.0" */
};

/* The next template of text at or after *from, which moves after it. False when there is none. */
bool template_next(struct str text, size_t *from, struct template_ref *ret);
/* The same for another first word than "results" (recipes use "inputs"). */
bool template_next_of(struct str word, struct str text, size_t *from, struct template_ref *ret);
/*
 * The next template whose first word is one of several; *ret_word is which. A word alone
 * ({{item}}) is OK with an empty ref, except for results. FOREIGN: of none of them.
 */
bool template_next_in(const struct str *words, uint32_t n, struct str text, size_t *from,
                      struct template_ref *ret, uint32_t *ret_word);
/* Whether text is exactly one well-formed template. Its value then keeps its type. */
bool template_only_of(struct str word, struct str text, struct template_ref *ret);
/* Candidates for the step id, longest first. Start with *id = *path = {NULL, 0}; each call returns
 * the next shorter id and the path after it. False when there are no more. */
bool template_split(struct str ref, struct str *id, struct str *path);
/* What is wrong and what would be right, for the BAD kinds; "" for TEMPLATE_OK and
 * TEMPLATE_FOREIGN. */
const char *template_kind_text(enum template_kind k);
#endif
