#include "supervisor/spawn/packet.h"

#include <string.h>

static void put_number(struct buf *out, uint64_t n)
{
    uint8_t bytes[8];

    for (unsigned i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(n >> (8 * i));
    }
    buf_add(out, bytes, sizeof bytes);
}

/* Includes the terminating zero, so decoded strings are used in place. */
static void put_text(struct buf *out, const char *text)
{
    size_t len = text != NULL ? strlen(text) : 0;

    put_number(out, len);
    buf_add(out, text != NULL ? text : "", len + 1);
}

static void put_list(struct buf *out, char *const *list)
{
    size_t n = 0;

    while (list[n] != NULL) {
        n++;
    }
    put_number(out, n);
    for (size_t i = 0; i < n; i++) {
        put_text(out, list[i]);
    }
}

void packet_encode(const struct packet *p, struct buf *out)
{
    buf_add_byte(out, (uint8_t)p->type);
    put_number(out, (uint64_t)p->pid);
    put_number(out, (uint64_t)p->status);
    put_number(out, p->count);
    put_number(out, p->hash);
    put_number(out, p->nofile);
    put_number(out, p->memory_bytes);
    put_number(out, p->log_bytes);
    put_number(out, p->log_files);
    put_text(out, p->instance);
    put_text(out, p->name);
    put_text(out, p->text);
    put_list(out, p->argv);
    put_list(out, p->env);
    put_list(out, p->handover);
    put_list(out, p->apart);
}

static char empty[1];

struct reader {
    uint8_t *at;
    size_t left;
    bool bad;
};

static uint64_t get_number(struct reader *r)
{
    uint64_t n = 0;

    if (r->left < 8) {
        r->bad = true;
        return 0;
    }
    for (unsigned i = 0; i < 8; i++) {
        n |= (uint64_t)r->at[i] << (8 * i);
    }
    r->at += 8;
    r->left -= 8;
    return n;
}

static char *get_text(struct reader *r)
{
    uint64_t len = get_number(r);
    char *text = (char *)r->at;

    if (r->bad || len >= r->left || memchr(text, 0, (size_t)len + 1) != text + len) {
        r->bad = true;
        return empty;
    }
    r->at += len + 1;
    r->left -= (size_t)len + 1;
    return text;
}

static void get_list(struct reader *r, char **ret_list)
{
    uint64_t n = get_number(r);

    if (n > PACKET_LIST_MAX) {
        r->bad = true;
        n = 0;
    }
    for (uint64_t i = 0; i < n; i++) {
        ret_list[i] = get_text(r);
    }
    ret_list[n] = NULL;
}

enum bt_code packet_decode(uint8_t *bytes, size_t len, struct packet *ret_packet,
                           struct bt_error *err)
{
    struct reader r;

    if (len == 0 || bytes[0] == 0 || bytes[0] >= PACKET_TYPE_END) {
        return err_set(err, BT_PROTOCOL, "spawner: a packet of unknown type");
    }
    r = (struct reader){bytes + 1, len - 1, false};
    ret_packet->type = (enum packet_type)bytes[0];
    ret_packet->pid = (pid_t)get_number(&r);
    ret_packet->status = (int)get_number(&r);
    ret_packet->count = (uint32_t)get_number(&r);
    ret_packet->hash = get_number(&r);
    ret_packet->nofile = get_number(&r);
    ret_packet->memory_bytes = get_number(&r);
    ret_packet->log_bytes = get_number(&r);
    ret_packet->log_files = (uint32_t)get_number(&r);
    ret_packet->instance = get_text(&r);
    ret_packet->name = get_text(&r);
    ret_packet->text = get_text(&r);
    get_list(&r, ret_packet->argv);
    get_list(&r, ret_packet->env);
    get_list(&r, ret_packet->handover);
    get_list(&r, ret_packet->apart);
    if (r.bad || r.left != 0) {
        return err_set(err, BT_PROTOCOL, "spawner: a packet of type %d is cut or too long",
                       (int)bytes[0]);
    }
    return BT_OK;
}
