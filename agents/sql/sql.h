/* The skills of the sql agent: load, query, execute, schema. self is the struct sql_settings.
 * Thread-safe: each call has its own connection. */
#ifndef SQL_SQL_H
#define SQL_SQL_H

#include "agents/sql/settings.h"
#include "protocol/base/buf.h"

/* All skills; *ret_n of them. */
const struct bt_skill *sql_skills(size_t *ret_n);
/* A skill that the settings forbid is not on the card, so no plan uses it. */
bool sql_skill_offered(const struct bt_skill *skill, const struct sql_settings *s);

void sql_load(struct bt_step *step, void *self);    /* load.c */
void sql_query(struct bt_step *step, void *self);   /* query.c */
void sql_execute(struct bt_step *step, void *self); /* query.c */
void sql_schema(struct bt_step *step, void *self);  /* schema.c */

/* Fails the step when code is an error; else replies with the data (JSON) and the text. */
void sql_answer(struct bt_step *step, enum bt_code code, const struct bt_error *err,
                const struct buf *json, const struct buf *text);
#endif
