/* Reading steps with forEach, repeat or plan. Private to this folder. */
#ifndef PLAN_CHILD_READ_INTERNAL_H
#define PLAN_CHILD_READ_INTERNAL_H

#include "supervisor/plan/reader_internal.h"

/* What is special about the steps of one item or round. */
struct child_body {
    bool items;           /* the steps are done once per item, beside each other */
    bool goes_on;         /* an item that fails does not end the others */
    uint32_t concurrency; /* of the items */
    struct str words[3];  /* that templates may use, beside those outside */
    uint32_t n_words;
};

/* Whether the step has children. */
bool plan_child_is(const struct step_reader *s);
/* Before the step is read: keeps in s->values what is about the step itself, and all of them in
 * s->inner. */
void plan_child_outer(struct step_reader *s);
/* After plan_step_policy: the step has no agent, and of the plan's policy only what holds for it.
 */
void plan_child_policy(struct step_reader *s);
/* Reads how its children are made. source: the step as given. */
BT_MUST_CHECK enum bt_code plan_child_read(struct step_reader *s, struct doc source);
/* Adds the templates and references to steps outside to the reader's texts. */
BT_MUST_CHECK enum bt_code plan_child_texts(struct plan_reader *r, uint32_t ix);
/* words.c: whether templates of these steps may begin with the first word of the text. */
bool plan_child_has_word(const struct plan_reader *r, struct str text);
/* words.c: reports templates of items and rounds where there are none, and misspelt ones: they
 * would be sent as they are. */
void plan_child_check_templates(struct step_reader *s);
/* Reports a name that templates cannot use for an item. */
void plan_child_check_word(struct step_reader *s, const char *field, struct str word);

/* The rules for the steps of a body: the plan's, without those of the plan as a whole. */
void plan_body_policy(const struct step_reader *s, struct plan_policy *ret);
/* The agents of a body are the plan's, too; what it may not use is reported. */
void plan_body_agents(struct step_reader *s, const struct plan *plan);
enum { INNER_PROBLEMS_MAX = 20 };

/* What reads a document inside a step: its own policy and problems, the words of the outer reader.
 */
struct inner_reader {
    struct problem found[INNER_PROBLEMS_MAX];
    struct problems problems;
    struct plan_request request;
    struct plan_policy policy;
    struct bt_error why;
    struct plan_reader r; /* plan_reader_done frees it */
};

/* The members point at each other: it stays where it is. */
void plan_reader_inside(const struct step_reader *s, struct doc document, struct inner_reader *ret);
/* read.c: reads r->request->plan as the body of a step, by the policy r->base. */
BT_MUST_CHECK enum bt_code plan_reader_body(struct plan_reader *r);
/* step.c: the field of a step's member, and its proper name. */
uint8_t plan_step_field(struct str name);
const char *plan_step_field_name(uint8_t field);
#endif
