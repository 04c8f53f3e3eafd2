#include "supervisor/plan/skill.h"

#include "protocol/wire/msg.h"
#include "supervisor/plan/reader_internal.h"

/* Each choice reads a card, so a plan of thousands of such steps must name its skills itself. Of
 * tasks and skills the first words count: agents write them. */
enum { CHOICES_MAX = 100, TASK_WORDS = 32, CARD_WORDS = 200, SHORTEST = 3, ENDING_MAX = 3 };

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool in_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (unsigned char)c >= 0x80;
}

static bool next_word(struct str text, size_t *at, struct str *ret)
{
    while (*at < text.len && !in_word(text.ptr[*at])) {
        (*at)++;
    }
    const size_t from = *at;
    while (*at < text.len && in_word(text.ptr[*at])) {
        (*at)++;
    }
    *ret = (struct str){from < text.len ? text.ptr + from : "", *at - from};
    return *at > from;
}

/* Words of every text: they point to no skill. */
static bool is_common(struct str word)
{
    static const char *const common[] = {"the", "and", "for", "with", "from", "this", "that"};
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++) {
        if (str_is(word, common[i])) {
            return true;
        }
    }
    return false;
}

/* "read", "reads" and "reading": the same beginning, and short endings. */
static bool same_word(struct str a, struct str b)
{
    size_t n = 0;
    while (n < a.len && n < b.len && lower(a.ptr[n]) == lower(b.ptr[n])) {
        n++;
    }
    return n >= SHORTEST && a.len - n <= ENDING_MAX && b.len - n <= ENDING_MAX &&
           (n > SHORTEST || (n == a.len && n == b.len));
}

struct matcher {
    struct str words[TASK_WORDS];
    uint32_t best[TASK_WORDS]; /* what each word adds for the skill being read */
    uint32_t n;
    uint32_t read; /* words of the card */
};

static void match(struct matcher *m, struct str text, uint32_t weight)
{
    size_t at = 0;
    struct str word;
    while (m->read < CARD_WORDS && next_word(text, &at, &word)) {
        m->read++;
        for (uint32_t i = 0; i < m->n; i++) {
            if (m->best[i] < weight && same_word(word, m->words[i])) {
                m->best[i] = weight;
            }
        }
    }
}

static uint32_t score(struct matcher *m, const struct msg_skill *skill)
{
    uint32_t sum = 0;
    memset(m->best, 0, sizeof m->best);
    m->read = 0;
    match(m, skill->id, 3);
    match(m, skill->name, 3);
    for (uint32_t i = 0; i < skill->tags_n; i++) {
        match(m, skill->tags[i], 3);
    }
    for (uint32_t i = 0; i < skill->examples_n; i++) {
        match(m, skill->examples[i], 2);
    }
    match(m, skill->description, 1);
    for (uint32_t i = 0; i < m->n; i++) {
        sum += m->best[i];
    }
    return sum;
}

uint32_t plan_skill_by_words(const struct msg_card *card, struct str task)
{
    struct matcher m = {.n = 0};
    uint32_t best = 0;
    uint32_t found = UINT32_MAX;
    size_t at = 0;
    if (card->skills_n == 1) {
        return 0;
    }
    while (m.n < TASK_WORDS && next_word(task, &at, &m.words[m.n])) {
        m.n += !is_common(m.words[m.n]);
    }
    for (uint32_t s = 0; s < card->skills_n; s++) {
        const uint32_t sum = score(&m, &card->skills[s]);
        found = sum > best ? s : found;
        best = sum > best ? sum : best;
    }
    return found;
}

/* Where no word points to a skill it stays empty: the agent itself may know what to do. */
enum bt_code plan_skill_choose(struct plan_reader *r, struct plan_step *step,
                               const struct location *at)
{
    if (r->canonical || r->registry == NULL || step->agent == REGISTRY_NONE ||
        step->skill.len != 0) {
        return BT_OK;
    }
    const struct msg_card *card = registry_agent_view(r->registry, step->agent).card;
    if (card == NULL || (card->skills_n > 1 && ++r->choices > CHOICES_MAX)) {
        return BT_OK;
    }
    const uint32_t skill = plan_skill_by_words(card, step->task);
    if (skill == UINT32_MAX) {
        return BT_OK;
    }
    step->skill = arena_str(r->arena, card->skills[skill].id);
    if (step->skill.ptr == NULL) {
        return reader_nomem(r);
    }
    if (card->skills_n > 1) {
        location_report(at, PROBLEM_STYLE, true, "skill",
                        "is missing; took '%.*s' by the words of the task", STR_ARG(step->skill));
    }
    return BT_OK;
}
