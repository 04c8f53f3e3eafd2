/* Schedules as lines, and back: the head with the rule, the document in parts, the end. One that is
 * imported is paused: two daemons must not make the same plans. */
#include <stdio.h>
#include <string.h>

#include "protocol/wire/mp_validate.h"
#include "protocol/wire/msg.h"
#include "supervisor/schedule/rules/name.h"
#include "supervisor/transfer/transfer_internal.h"

static const char WHY_PAUSED[] = "it was imported: resume it here when it rests where it came from";

/* ---- out ---- */

struct pick {
    char name[LIMIT_ID_BYTES + 1];
    uint64_t ix; /* 0 = none */
};

static bool pick_next(const struct journal_schedule *p, void *self)
{
    struct pick *k = self;

    if (p->damaged || p->name.len > LIMIT_ID_BYTES) {
        return true; /* the journal has logged it */
    }
    k->ix = p->ix;
    memcpy(k->name, p->name.ptr, p->name.len);
    k->name[p->name.len] = 0;
    return false;
}

static enum bt_code put_head(const struct journal_schedule *p, struct buf *lines,
                             struct bt_error *err)
{
    struct line l;

    line_begin(&l, "schedule");
    line_text(&l, "name", p->name);
    line_text(&l, "owner", p->owner);
    line_number(&l, "createdMs", p->created_wall);
    line_number(&l, "bodyHash", p->body_hash);
    line_bytes(&l, "rule", p->rule.ptr, p->rule.len);
    line_number(&l, "documentBytes", p->doc.len);
    return line_end(&l, lines, err);
}

static enum bt_code put_part(const struct journal_schedule *p, struct schedule_place *place,
                             struct buf *lines, struct bt_error *err)
{
    const size_t left = p->doc.len - (size_t)place->at;
    const size_t n = left < PART_BYTES ? left : PART_BYTES;
    struct line l;

    line_begin(&l, n > 0 ? "document" : "end");
    line_text(&l, "name", p->name);
    line_bytes(&l, "bytes", p->doc.ptr + place->at, n);
    place->at += n;
    place->whole = n == 0;
    return line_end(&l, lines, err);
}

enum bt_code export_schedules(struct journal *journal, struct schedule_place *place,
                              struct buf *lines, bool *ret_done, struct bt_error *err)
{
    const bool begins = place->whole || place->at == 0;
    struct pick k = {.ix = 0};
    struct journal_schedule p;
    enum bt_code code;

    code = journal_schedules(journal, place->whole ? place->ix : place->ix - 1, pick_next, &k, err);
    *ret_done = code == BT_OK && k.ix == 0;
    if (code != BT_OK || k.ix == 0) {
        return code;
    }
    if (!begins && k.ix != place->ix) {
        return err_set(err, BT_CONFLICT, "a schedule was deleted while it was exported");
    }
    code = journal_schedule_by_name(journal, str_from(k.name), &p, err);
    if (code == BT_OK && begins) {
        *place = (struct schedule_place){.ix = k.ix};
        code = put_head(&p, lines, err);
    }
    while (code == BT_OK && !place->whole && lines->len < TRANSFER_SLICE_BYTES) {
        code = place->at <= p.doc.len
                   ? put_part(&p, place, lines, err)
                   : err_set(err, BT_INVALID, "cursor: expected the cursor of an earlier answer");
    }
    return code;
}

/* ---- in ---- */

/* As schedule.put has it; a submitter's own begins with its id and ":". */
static enum bt_code check_name(struct str name, struct str owner, struct bt_error *err)
{
    const bool own = owner.len > 0 && name.len > owner.len && name.ptr[owner.len] == ':' &&
                     memcmp(name.ptr, owner.ptr, owner.len) == 0;
    const size_t n = own ? owner.len + 1 : 0;

    if (name.len > SCHEDULE_NAME_MAX) {
        return err_set(err, BT_INVALID, "name: expected at most %d bytes", SCHEDULE_NAME_MAX);
    }
    return name.len > 0 && schedule_name_fits((struct str){name.ptr + n, name.len - n})
               ? BT_OK
               : err_set(err, BT_INVALID, SCHEDULE_NAME_RULE);
}

enum bt_code import_schedule_begin(struct schedule_import *s, struct journal *journal,
                                   struct doc line, bool *ret_exists, struct bt_error *err)
{
    const struct str name = line_get_text(line, "name");
    const struct str owner = line_get_text(line, "owner");
    struct journal_schedule old;
    enum bt_code code = check_name(name, owner, err);

    if (code != BT_OK) {
        return code;
    }
    if (owner.len > LIMIT_ID_BYTES ||
        memchr(owner.ptr != NULL ? owner.ptr : "", 0, owner.len) != NULL) {
        return err_set(err, BT_INVALID, "owner: expected at most 64 bytes");
    }
    (void)snprintf(s->name, sizeof s->name, "%.*s", STR_ARG(name));
    (void)snprintf(s->owner, sizeof s->owner, "%.*s", STR_ARG(owner));
    s->created = line_get_number(line, "createdMs");
    s->body_hash = line_get_number(line, "bodyHash");
    s->bytes = line_get_number(line, "documentBytes");
    if (s->created > INT64_MAX || s->body_hash > INT64_MAX || s->bytes == 0 || s->bytes > DOC_MAX) {
        return err_set(err, BT_INVALID, "documentBytes: expected 1 to %d", DOC_MAX);
    }
    buf_init(&s->rule, LIMIT_CONTROL_BYTES);
    buf_init(&s->doc, DOC_MAX);
    code = line_get_bytes(line, "rule", &s->rule, err);
    code = code == BT_OK ? mp_validate(s->rule.at, s->rule.len, NULL, err) : code;
    if (code == BT_OK) {
        code = journal_schedule_by_name(journal, name, &old, err);
        *ret_exists = code == BT_OK;
        code = code == BT_NOT_FOUND ? BT_OK : code;
    }
    return code;
}

static enum bt_code finish(struct schedule_import *s, struct journal *journal, msec wall,
                           bool *ret_failed_write, struct bt_error *err)
{
    const struct msg_rec_schedule_state state = {
        .cursor = wall, .status = STR_LIT("paused"), .reason = str_from(WHY_PAUSED)};
    const struct msg_part part = {MSG_rec_schedule_state, &state};
    struct journal_schedule row = {.name = str_from(s->name),
                                   .owner = str_from(s->owner),
                                   .created_wall = s->created,
                                   .body_hash = s->body_hash,
                                   .rule = buf_str(&s->rule),
                                   .doc = buf_str(&s->doc)};
    struct buf bytes;
    uint64_t ix;
    enum bt_code code;

    if (s->doc.len != s->bytes) {
        return err_set(err, BT_INVALID, "the document of the schedule '%s' is not whole", s->name);
    }
    code = mp_validate(s->doc.at, s->doc.len, NULL, err);
    buf_init(&bytes, LIMIT_CONTROL_BYTES);
    code = code == BT_OK ? msg_write(&bytes, WIRE_MSGPACK, &part, 1, err) : code;
    if (code == BT_OK) {
        row.state = buf_str(&bytes);
        code = journal_schedule_put(journal, &row, &ix, err);
        *ret_failed_write = code != BT_OK;
    }
    buf_done(&bytes);
    return code;
}

enum bt_code import_schedule_line(struct schedule_import *s, struct journal *journal,
                                  struct doc line, msec wall, enum transfer_result *ret,
                                  bool *ret_failed_write, struct bt_error *err)
{
    const struct str kind = line_get_text(line, "kind");

    if (str_is(kind, "document")) {
        return line_get_bytes(line, "bytes", &s->doc, err);
    }
    if (str_is(kind, "end")) {
        *ret = TRANSFER_DONE;
        return finish(s, journal, wall, ret_failed_write, err);
    }
    return err_set(err, BT_INVALID, "kind: \"%.*s\" is no line of a schedule", STR_ARG(kind));
}

void import_schedule_done(struct schedule_import *s)
{
    buf_done(&s->rule);
    buf_done(&s->doc);
}
