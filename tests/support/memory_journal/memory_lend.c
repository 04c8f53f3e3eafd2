/* What a look-up has returned goes with the next one of its kind, and a row with its callback, as
 * they do with SQLite: who keeps it too long reads something else. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/memory_journal/memory_internal.h"

bool memory_lend(struct mem_lent *io, struct str *const *strings, size_t n)
{
    size_t len = 1;
    char *at;
    char *to;

    for (size_t i = 0; i < n; i++) {
        len += strings[i]->len;
    }
    at = to = malloc(len);
    if (at == NULL) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (strings[i]->ptr != NULL && strings[i]->len > 0) {
            memcpy(to, strings[i]->ptr, strings[i]->len);
            strings[i]->ptr = to;
            to += strings[i]->len;
        }
    }
    memory_take_back(io);
    *io = (struct mem_lent){at, len};
    return true;
}

void memory_take_back(struct mem_lent *io)
{
    if (io->at != NULL) {
        memset(io->at, '?', io->len);
    }
    free(io->at);
    *io = (struct mem_lent){NULL, 0};
}

enum bt_code memory_lend_plan(struct mem_lent *lent, struct journal_plan *io, struct bt_error *err)
{
    struct str doc = {io->doc, io->doc_len};
    struct str *const all[] = {&io->session_id, &io->client_key, &io->goal, &io->job,
                               &io->owner,      &io->status,     &doc};

    if (!memory_lend(lent, all, sizeof all / sizeof all[0])) {
        return memory_full(err);
    }
    io->doc = doc.ptr;
    return BT_OK;
}

bool memory_give_plan(const struct journal_plan *p, journal_plan_fn fn, void *self)
{
    struct mem_lent lent = {NULL, 0};
    struct journal_plan shown = *p;
    bool more = memory_lend_plan(&lent, &shown, NULL) == BT_OK && fn(&shown, self);

    memory_take_back(&lent);
    return more;
}

enum bt_code memory_lend_turn(struct mem_lent *lent, struct journal_turn *io, struct bt_error *err)
{
    struct str *const all[] = {&io->session_id, &io->client_key, &io->action};

    return memory_lend(lent, all, sizeof all / sizeof all[0]) ? BT_OK : memory_full(err);
}
