/* What the codec's tests encode and decode with. */
#ifndef TESTS_CODEC_BENCH_H
#define TESTS_CODEC_BENCH_H

#include "protocol/wire/msg.h"
#include "supervisor/events/record_codec.h"
#include "tests/unit/events/codec_plan.h"
#include "tests/unit/journal/journal_fixture.h"

enum { LONG_TEXT = 20000 };
extern char long_text[LONG_TEXT]; /* valid UTF-8 with wide characters; LONG_TEXT - 1 bytes */

struct bench {
    struct codec_plan p;
    struct arena arena;
    struct buf body;
    struct buf topic;
    void *registry_mem;
    struct registry *reg;
    struct msg_card card;
};

int bench_up(void **state);
int bench_down(void **state);
struct record_extra extra_of(const struct bench *b, const struct record *rec);
struct journal_row row_of(const struct bench *b, const struct record *rec);
/* Into b->body and b->topic; checks that a frame of them keeps the caps. */
void encode(struct bench *b, const struct record *rec, const struct record_extra *x);
struct record decode(struct bench *b, const struct record *rec, msec mono, msec wall);

#define TEST(name) cmocka_unit_test_setup_teardown(name, bench_up, bench_down)
#endif
