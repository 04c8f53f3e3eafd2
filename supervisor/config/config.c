#include "supervisor/config/config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/utf8.h"
#include "protocol/client/state.h"
#include "protocol/wire/doc.h"
#include "supervisor/config/loader.h"

enum { LINE_MAX_BYTES = 1024, STATE_PATH_BYTES = 8192 };

static void note(struct loader *l, const char *origin, const char *between, const char *text)
{
    if (l->notes != NULL) {
        buf_printf(l->notes, "%s%s%s%s\n", origin == NULL ? "" : origin, origin == NULL ? "" : ": ",
                   between, text);
    }
}

void config_problem(struct loader *l, const char *origin, const char *fmt, ...)
{
    char text[LINE_MAX_BYTES];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (l->n_problems++ == 0) {
        (void)err_set(l->err, BT_INVALID, "%.200s%s%.300s", origin == NULL ? "" : origin,
                      origin == NULL ? "" : ": ", text);
    }
    note(l, origin, "", text);
}

void config_warning(struct loader *l, const char *origin, const char *fmt, ...)
{
    char text[LINE_MAX_BYTES];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    note(l, origin, "warning: ", text);
}

enum bt_code config_no_memory(struct loader *l)
{
    return err_set(l->err, BT_NOMEM, "out of memory for the configuration");
}

uint32_t config_number(const cJSON *tree, const char *member, uint32_t fallback)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(tree, member);

    return cJSON_IsNumber(v) && v->valuedouble >= 0 && v->valuedouble <= (double)UINT32_MAX
               ? (uint32_t)v->valuedouble
               : fallback;
}

const char *config_store_text(struct config_store *h, const char *text)
{
    return arena_str(&h->arena, str_from(text)).ptr;
}

const char *config_store_json(struct config_store *h, const cJSON *v)
{
    char *exact = cjson_print(v, false, NULL);
    /* The path of a directory may be no UTF-8; it stays as it is. */
    char *text = exact != NULL ? exact : cJSON_PrintUnformatted(v);
    const char *kept = text == NULL ? NULL : config_store_text(h, text);

    cJSON_free(text);
    return kept;
}

static enum bt_code find_state(struct loader *l, const char **ret_origin)
{
    const char *flag = l->request->state_dir;
    const char *env = getenv("BATON_STATE");
    struct buf path;
    enum bt_code code;

    buf_init(&path, STATE_PATH_BYTES);
    code = state_dir_find(flag, &path, l->err);
    if (code == BT_OK) {
        l->store->c.state_dir = config_store_text(l->store, buf_cstr(&path));
        code = l->store->c.state_dir == NULL ? config_no_memory(l) : BT_OK;
    }
    if (flag != NULL && flag[0] != '\0') {
        *ret_origin = "flag";
    } else {
        *ret_origin = env != NULL && env[0] != '\0' ? "env BATON_STATE" : "default";
    }
    buf_done(&path);
    return code;
}

static void store_settings(struct loader *l)
{
    uint32_t n;
    const struct setting *table = settings_table(&n);

    for (uint32_t i = 0; i < n; i++) {
        enum layer_kind layer;
        setting_store(&table[i], layers_find(l, table[i].key, &layer), &l->store->c);
    }
}

static bool refused(struct loader *l)
{
    if (l->n_problems > 1) {
        size_t used = strlen(l->err->msg);
        (void)snprintf(l->err->msg + used, sizeof l->err->msg - used, " (and %u more problems)",
                       l->n_problems - 1);
    }
    return l->n_problems > 0;
}

/* Continues after a problem, so that one run reports all problems. */
static enum bt_code load(struct loader *l)
{
    const char *state_origin = "";
    enum bt_code code = layers_read(l);

    if (code == BT_OK) {
        store_settings(l);
        config_rules_check(l);
        code = config_remote_bind(l);
        code = code == BT_OK ? config_gateway_bind(l) : code;
    }
    if (code == BT_OK) {
        code = config_agents_bind(l);
        code = code == BT_OK ? config_groups_bind(l) : code;
        code = code == BT_OK ? config_prices_bind(l) : code;
        code = code == BT_OK ? config_keys_bind(l) : code;
        code = code == BT_OK ? config_rates_bind(l) : code;
        code = code == BT_OK ? config_schedules_bind(l) : code;
        code = code == BT_OK ? config_peers_bind(l) : code;
    }
    if (code == BT_OK && refused(l)) {
        return BT_INVALID;
    }
    if (code == BT_OK) {
        code = find_state(l, &state_origin);
    }
    if (code == BT_OK) {
        config_apart_check(l);
        code = refused(l) ? BT_INVALID : code;
    }
    if (code == BT_OK) {
        code = config_llm_keys_check(l);
    }
    return code == BT_OK ? config_entries_make(l, state_origin) : code;
}

enum bt_code config_load(const struct config_request *request, struct config **ret,
                         struct buf *notes, struct bt_error *err)
{
    struct bt_error own = {0};
    struct loader l = {.request = request, .notes = notes, .err = err != NULL ? err : &own};
    enum bt_code code;

    l.store = calloc(1, sizeof *l.store);
    if (l.store == NULL) {
        return config_no_memory(&l);
    }
    l.store->empty_object = cJSON_CreateObject();
    code = l.store->empty_object == NULL ? config_no_memory(&l) : load(&l);
    layers_done(&l);
    utf8_scrub(l.err->msg); /* it may contain the name of the file */
    if (notes != NULL && notes->len > 0 && buf_cstr(notes)[0] != 0) {
        utf8_scrub((char *)notes->at);
    }
    if (code != BT_OK) {
        config_free(&l.store->c);
        return code;
    }
    *ret = &l.store->c;
    return BT_OK;
}

void config_free(struct config *c)
{
    struct config_store *h = (struct config_store *)c; /* c is its first member */

    if (h == NULL) {
        return;
    }
    for (int i = 0; i < LAYER_COUNT; i++) {
        cJSON_Delete(h->trees[i]);
    }
    cJSON_Delete(h->empty_object);
    arena_done(&h->arena);
    free(h);
}

const struct config_entry *config_entries(const struct config *c, uint32_t *ret_n)
{
    const struct config_store *h = (const struct config_store *)c;

    *ret_n = h->n_entries;
    return h->entries;
}
