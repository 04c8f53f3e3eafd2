/* The packets between daemon and spawner: encode and decode are inverse; anything else is
 * rejected. */
#include <stdlib.h>
#include <string.h>

#include "supervisor/spawn/packet.h"
#include "tests/support/cmocka.h"
#include "tests/support/random.h"

static char one[] = "one";
static char two[] = "";

static void fill(struct packet *p, struct buf *out)
{
    *p = (struct packet){.type = PACKET_START,
                         .pid = 4711,
                         .status = -3,
                         .count = 9,
                         .hash = 0x0123456789ABCDEFu,
                         .nofile = 77,
                         .memory_bytes = UINT64_MAX,
                         .instance = "instance",
                         .name = "calc#1",
                         .text = "/tmp"};
    p->argv[0] = one;
    p->argv[1] = two;
    p->env[0] = one;
    p->handover[0] = one;
    p->apart[0] = two;
    p->apart[1] = one;
    buf_init(out, PACKET_BYTES);
    packet_encode(p, out);
    assert_int_equal(buf_check(out, NULL), BT_OK);
}

static void every_field_comes_back(void **state)
{
    static struct packet in;
    static struct packet got;
    struct buf out;

    (void)state;
    fill(&in, &out);
    assert_int_equal(packet_decode(out.at, out.len, &got, NULL), BT_OK);
    assert_int_equal(got.type, in.type);
    assert_int_equal(got.pid, 4711);
    assert_int_equal(got.status, -3);
    assert_int_equal(got.count, 9);
    assert_true(got.hash == in.hash && got.nofile == 77 && got.memory_bytes == UINT64_MAX);
    assert_string_equal(got.instance, "instance");
    assert_string_equal(got.name, "calc#1");
    assert_string_equal(got.text, "/tmp");
    assert_string_equal(got.argv[0], "one");
    assert_string_equal(got.argv[1], "");
    assert_null(got.argv[2]);
    assert_string_equal(got.env[0], "one");
    assert_null(got.env[1]);
    assert_string_equal(got.handover[0], "one");
    assert_null(got.handover[1]);
    assert_string_equal(got.apart[1], "one");
    assert_null(got.apart[2]);
    buf_done(&out);
}

static void a_cut_or_longer_packet_is_refused(void **state)
{
    static struct packet in;
    static struct packet got;
    struct buf out;

    (void)state;
    fill(&in, &out);
    for (size_t len = 0; len < out.len; len++) {
        uint8_t *exact = malloc(len + 1); /* so that ASan detects a read past the end */
        assert_non_null(exact);
        memcpy(exact, out.at, len);
        assert_int_equal(packet_decode(exact, len, &got, NULL), BT_PROTOCOL);
        free(exact);
    }
    buf_add_byte(&out, 0);
    assert_int_equal(packet_decode(out.at, out.len, &got, NULL), BT_PROTOCOL);
    buf_done(&out);
}

static void damaged_packets_never_read_outside(void **state)
{
    static struct packet in;
    static struct packet got;
    struct rng rng = rng_seeded("spawn packet");
    struct buf out;

    (void)state;
    fill(&in, &out);
    for (int i = 0; i < 20000; i++) {
        uint8_t *copy = malloc(out.len);
        assert_non_null(copy);
        memcpy(copy, out.at, out.len);
        for (uint32_t k = 1 + rng_below(&rng, 4); k > 0; k--) {
            copy[rng_below(&rng, (uint32_t)out.len)] = (uint8_t)rng_next(&rng);
        }
        if (packet_decode(copy, out.len, &got, NULL) == BT_OK) {
            assert_true(strlen(got.instance) + strlen(got.name) + strlen(got.text) < out.len);
        }
        free(copy);
    }
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_comes_back),
        cmocka_unit_test(a_cut_or_longer_packet_is_refused),
        cmocka_unit_test(damaged_packets_never_read_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
