/*
 * The fields of a request of the wire, gathered from where HTTP has them: the path, the query, the
 * JSON body, and the headers Idempotency-Key (clientKey) and If-Match (expectRevision). The table
 * of messages gives the types. Refused, with the field's name and what would be right: a field
 * twice, an unknown one, a wrong type, one that is missing.
 */
#ifndef GATEWAY_FIELDS_H
#define GATEWAY_FIELDS_H

#include "supervisor/gateway/routes.h"

enum { FIELD_NAME_MAX = 64 };

struct fields_from {
    const struct route *route;
    const struct route_params *params;
    const struct uri *uri;
    struct str body;                      /* JSON; empty = none */
    struct str idempotency_key, if_match; /* empty = no such header */
    struct doc filled;                    /* a map: members for fields that came from nowhere */
};

/* Appends a msgpack map. ret_field, when it fails: the field that it is about, or "". */
BT_MUST_CHECK enum bt_code fields_gather(const struct fields_from *from, struct buf *out,
                                         char ret_field[FIELD_NAME_MAX + 1], struct bt_error *err);
/* A number of a text: digits alone, at most `max`. */
bool fields_number(struct str text, uint64_t max, uint64_t *ret);
#endif
