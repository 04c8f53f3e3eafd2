/* Which of an agent's skills a task is about, where a step names the agent alone. */
#ifndef PLAN_SKILL_H
#define PLAN_SKILL_H

#include <stdint.h>

#include "protocol/base/str.h"

struct msg_card;

/*
 * The skill whose card shares the most words with the task: words of its id, name and tags count
 * three times, those of its examples twice, those of its description once; the first of equals. The
 * only skill of an agent with one. UINT32_MAX when there is none, or no word points to one.
 */
uint32_t plan_skill_by_words(const struct msg_card *card, struct str task);
#endif
