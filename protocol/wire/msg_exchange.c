/* Requests, answers and errors: the envelope around the messages. */
#include <stdio.h>

#include "protocol/base/utf8.h"
#include "protocol/wire/msg.h"

enum { PROTOCOL_VERSION = 1 };

enum bt_code msg_request(struct buf *out, enum wire_form form, struct str id, struct str token,
                         enum msg_type type, const void *body, struct bt_error *err)
{
    struct msg_envelope envelope = {
        .v = PROTOCOL_VERSION, .type = str_from(msg_wire_type(type)), .id = id, .token = token};
    struct msg_part parts[] = {{MSG_envelope, &envelope}, {type, body}};

    return msg_write(out, form, parts, body == NULL ? 1 : 2, err);
}

enum bt_code msg_answer(struct buf *out, enum wire_form form, struct str id, enum msg_type type,
                        const void *body, struct bt_error *err)
{
    struct msg_envelope envelope = {
        .v = PROTOCOL_VERSION, .type = str_from(msg_wire_type(type)), .id = id, .ok = true};
    struct msg_part parts[] = {{MSG_envelope, &envelope}, {type, body}};

    return msg_write(out, form, parts, body == NULL ? 1 : 2, err);
}

/* An error text may quote a peer's bytes or be cut inside a character, so '?' replaces what is not
 * UTF-8. */
static struct str replace_invalid_utf8(const char *text, char ret[BT_ERROR_MSG_MAX])
{
    size_t len = strlen(text);
    size_t at = 0;

    len = len < BT_ERROR_MSG_MAX ? len : BT_ERROR_MSG_MAX - 1;
    memcpy(ret, text, len);
    while (at < len) {
        size_t n = 1;
        while (n <= 4 && n <= len - at && !utf8_valid(ret + at, n)) {
            n++;
        }
        if (n > 4 || n > len - at) {
            ret[at] = '?';
            n = 1;
        }
        at += n;
    }
    return (struct str){ret, len};
}

/* Whether a client may send the same request again. */
static bool is_retryable(enum bt_code code, enum err_class cls)
{
    return cls != CLASS_NONE ? err_class_retryable(cls) : err_code_retryable(code);
}

enum bt_code msg_answer_error(struct buf *out, enum wire_form form, struct str id,
                              const struct bt_error *why, enum err_class cls,
                              uint64_t retry_after_ms, struct doc details)
{
    char text[BT_ERROR_MSG_MAX];
    enum bt_code code = why->code == BT_OK ? BT_INTERNAL : why->code;
    struct msg_envelope envelope = {
        .v = PROTOCOL_VERSION,
        .type = STR_LIT("error"),
        .id = id,
        .error = {.code = str_from(bt_code_name(code)),
                  .class_ = str_from(cls == CLASS_NONE ? NULL : err_class_name(cls)),
                  .message = replace_invalid_utf8(why->msg, text),
                  .retryable = is_retryable(code, cls),
                  .retry_after_ms = retry_after_ms,
                  .details = details}};
    struct msg_part part = {MSG_envelope, &envelope};

    msg_set(&envelope, envelope, ok);
    msg_set(&envelope.error, error, retryable);
    return msg_write(out, form, &part, 1, NULL);
}

/* A defect of an answer is the peer's error, not the caller's. Only lack of memory is our own. */
static enum bt_code as_protocol_error(enum bt_code code, struct bt_error *err)
{
    if (code == BT_OK || code == BT_NOMEM) {
        return code;
    }
    if (err != NULL) {
        (void)err_wrap(err, "the answer breaks the protocol");
        err->code = BT_PROTOCOL;
    }
    return BT_PROTOCOL;
}

static enum bt_code peer_error(const struct msg_error *e, enum err_class *ret_class,
                               struct bt_error *err)
{
    enum bt_code code = err_code_from_name(e->code.ptr, e->code.len);

    if (code == BT_OK) {
        return err_set(err, BT_PROTOCOL, "the answer is ok: false with the code OK");
    }
    if (ret_class != NULL && e->class_.len > 0) {
        *ret_class = err_class_from_name(e->class_.ptr, e->class_.len);
    }
    return err_set(err, code, "%.*s",
                   (int)utf8_cut(e->message.ptr, e->message.len, BT_ERROR_MSG_MAX - 1),
                   e->message.ptr);
}

enum bt_code msg_read_answer(struct msg_reader *r, enum msg_type type, void *ret_body,
                             enum err_class *ret_class, struct bt_error *err)
{
    struct msg_envelope envelope;
    enum bt_code code = as_protocol_error(msg_read(r, MSG_envelope, &envelope, err), err);

    if (ret_class != NULL) {
        *ret_class = CLASS_NONE;
    }
    if (code != BT_OK) {
        return code;
    }
    if (envelope.v != PROTOCOL_VERSION || !msg_has(&envelope, envelope, ok)) {
        return err_set(err, BT_PROTOCOL, "the answer lacks v: %d or ok", PROTOCOL_VERSION);
    }
    if (!envelope.ok) {
        return msg_has(&envelope, envelope, error)
                   ? peer_error(&envelope.error, ret_class, err)
                   : err_set(err, BT_PROTOCOL, "the answer is ok: false without an error");
    }
    if (!str_is(envelope.type, msg_wire_type(type))) {
        return err_set(err, BT_PROTOCOL, "the answer is of type '%.*s'; expected '%s'",
                       STR_ARG(envelope.type), msg_wire_type(type));
    }
    return as_protocol_error(msg_read(r, type, ret_body, err), err);
}
