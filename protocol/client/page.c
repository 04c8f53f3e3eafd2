#include "protocol/client/page.h"

#include <string.h>

#include "protocol/client/client_internal.h"

void client_page_done(struct client_page *page)
{
    if (page->msg != NULL) {
        msg_reader_done(&page->reader);
        link_msg_free(page->msg);
    }
    memset(page, 0, sizeof *page);
}

/* From where to read again, as the error says. */
static uint64_t again_from(const struct client_page *page)
{
    const struct doc error =
        doc_get((struct doc){page->reader.body, page->reader.len}, STR_LIT("error"));
    const struct doc from =
        error.ptr != NULL ? doc_path(error, STR_LIT("details.fromSeq")) : (struct doc){NULL, 0};

    return from.ptr != NULL && doc_head(from).kind == DOC_UINT ? doc_head(from).u : 1;
}

static enum bt_code take(struct client_page *page, struct str answer, struct bt_error *err)
{
    struct msg_events_read_ok ok;
    struct doc_head head;
    enum bt_code code =
        msg_reader_init(&page->reader, answer.ptr, answer.len, LIMIT_STEP_BYTES, err);

    if (code == BT_OK) {
        code = msg_read_answer(&page->reader, MSG_events_read_ok, &ok, NULL, err);
    }
    if (code != BT_OK) {
        return code;
    }
    page->cursor = doc_cursor(ok.events);
    page->left = doc_next(&page->cursor, &head) && head.kind == DOC_ARRAY ? head.n : 0;
    page->next_seq = ok.next_seq;
    page->last_seq = ok.last_seq;
    page->last_event_id = ok.last_event_id;
    page->deleted = ok.deleted;
    page->deleted_n = ok.deleted_n;
    return BT_OK;
}

enum bt_code client_page_read(struct bt_client *c, const struct msg_events_read *query,
                              uint32_t timeout_ms, struct client_page *page, struct bt_error *err)
{
    struct str answer;
    char id[CLIENT_ID_BYTES];
    struct buf request;
    enum bt_code code;

    client_page_done(page);
    buf_init(&request, LIMIT_CONTROL_BYTES);
    code = msg_request(&request, WIRE_MSGPACK, client_next_id(c, id), str_from(c->token),
                       MSG_events_read, query, err);
    if (code == BT_OK) {
        code = client_exchange(c, &request, timeout_ms, &page->msg, &answer, err);
    }
    buf_done(&request);
    if (code != BT_OK) {
        page->msg = NULL;
        return code;
    }
    code = take(page, answer, err);
    if (code != BT_OK) {
        const uint64_t again = code == BT_HISTORY_CHANGED ? again_from(page) : 0;
        client_page_done(page);
        page->next_seq = again;
    }
    return code;
}

enum bt_code client_page_of_shard(struct bt_client *c, uint32_t shard,
                                  const struct msg_events_read *query, uint32_t timeout_ms,
                                  struct client_page *page, struct bt_error *err)
{
    struct bt_client *at = NULL;
    enum bt_code code;

    client_page_done(page);
    code = client_shard(c, shard, &at, err);
    return code == BT_OK ? client_page_read(at, query, timeout_ms, page, err) : code;
}

bool client_page_next(struct client_page *page, struct doc *ret)
{
    if (page->left == 0) {
        return false;
    }
    page->left--;
    *ret = doc_skip(&page->cursor);
    return true;
}
