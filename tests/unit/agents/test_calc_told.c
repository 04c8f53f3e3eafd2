/* Each step of calc_asked.txt, and its whole reply, in calc_told.txt: SKILL|PARAMETERS, or
 * SKILL|task:TASK|PARAMETERS, with ' for ". BATON_WRITE=1 writes the replies anew: read the
 * difference. */
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <string.h>

#include "agents/calc/calc.h"
#include "protocol/base/buf.h"
#include "tests/support/golden.h"
#include "tests/unit/agents/steps.h"

enum { STEP_BYTES = 64 * 1024, SHOWN = 1500 };

static void quoted(struct buf *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        buf_add_byte(out, (uint8_t)(text[i] == '\'' ? '"' : text[i]));
    }
}

/* The reply, or the beginning of a long one and how long it is. */
static void tell(struct buf *out, const char *line, size_t len)
{
    const char *bar = memchr(line, '|', len);
    const char *end = line + len;
    char skill[40];
    struct buf step;
    const struct bt_skill *s = calc_skills;

    assert_non_null(bar);
    (void)snprintf(skill, sizeof skill, "%.*s", (int)(bar - line), line);
    while (s < calc_skills + calc_skill_count && strcmp(s->id, skill) != 0) {
        s++;
    }
    assert_true(s < calc_skills + calc_skill_count);
    buf_init(&step, STEP_BYTES);
    buf_add_cstr(&step, "{");
    bar++;
    if (end - bar > 5 && memcmp(bar, "task:", 5) == 0) {
        const char *after = memchr(bar, '|', (size_t)(end - bar));
        assert_non_null(after);
        buf_printf(&step, "\"task\":\"%.*s\",", (int)(after - bar - 5), bar + 5);
        bar = after + 1;
    }
    buf_add_cstr(&step, "\"parameters\":{");
    quoted(&step, bar, (size_t)(end - bar));
    buf_add_cstr(&step, "}}");
    const char *reply =
        strstr(steps_run(steps_make(skill, buf_cstr(&step)), s->run, NULL), "\"outcome\":");
    assert_non_null(reply);
    reply += strlen("\"outcome\":");
    buf_printf(out, "%.*s\n  %.*s", len > 200 ? 200 : (int)len, line, SHOWN, reply);
    if (strlen(reply) > SHOWN) {
        buf_printf(out, "... %zu", strlen(reply));
    }
    buf_add_cstr(out, "\n");
    buf_done(&step);
}

static void every_step_is_told_as_it_was(void **state)
{
    char *asked = golden_read(ASKED);
    char *was = golden_read(TOLD);
    struct buf out;

    (void)state;
    buf_init(&out, GOLDEN_MAX);
    for (const char *line = asked; *line != 0;) {
        const size_t len = strcspn(line, "\n");
        tell(&out, line, len);
        line += len + 1;
    }
    golden_keep(TOLD, was, buf_cstr(&out));
    buf_done(&out);
    free(asked);
    free(was);
    steps_forget();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_step_is_told_as_it_was)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
