#include <stdlib.h>

#include "agents/a2a/a2a.h"
#include "agents/sdk/settings/fields.h"
#include "agents/sdk/settings/settings.h"
#include "agents/web/settings.h"
#include "agents/web/url.h"

enum { SETTINGS_BYTES = 256 * 1024, TIMEOUT_MS = 300000, TIMEOUT_MAX_MS = 24 * 60 * 60 * 1000 };

static enum bt_code read_url(struct a2a_settings *s, struct doc map, struct bt_error *err)
{
    enum bt_code code = field_text(&s->arena, map, "url", true, &s->url, err);

    code = code == BT_OK ? field_bool(map, "allowHttp", &s->policy.allow_http, err) : code;
    if (code == BT_OK && url_check(str_from(s->url), s->policy.allow_http, err) != BT_OK) {
        code = err_wrap(err, "url");
    }
    if (code == BT_OK) {
        const char *const own[] = {s->url, NULL};
        code = web_read_policy(&s->arena, map, own, &s->policy, err);
    }
    if (code == BT_OK) {
        code = field_texts(&s->arena, map, "headers", A2A_LIST_MAX, &s->headers, err);
    }
    if (code == BT_OK && doc_get(map, STR_LIT("bearer")).ptr != NULL) {
        code = web_read_secret(&s->secrets, &s->arena, map, "bearer", &s->bearer, err);
    }
    return code;
}

static enum bt_code read_all(void *self, struct doc map, struct bt_error *err)
{
    struct a2a_settings *s = self;
    static const char *const known[] = {"agentId",   "url",     "headers",    "bearer",
                                        "skills",    "effects", "allowHosts", "allowPrivate",
                                        "allowHttp", "caFile",  "timeoutMs"};
    enum bt_code code = settings_check_names(map, known, sizeof known / sizeof known[0], err);

    code = code == BT_OK ? field_text(&s->arena, map, "agentId", false, &s->agent_id, err) : code;
    code = code == BT_OK ? read_url(s, map, err) : code;
    code =
        code == BT_OK ? field_list(&s->arena, map, "skills", A2A_LIST_MAX, &s->skills, err) : code;
    code = code == BT_OK ? field_effects(&s->arena, map, A2A_LIST_MAX, &s->effects, err) : code;
    return code == BT_OK ? field_number(map, "timeoutMs", 1, TIMEOUT_MAX_MS, &s->timeout_ms, err)
                         : code;
}

enum bt_code a2a_settings_read(const char *json, struct a2a_settings **ret, struct bt_error *err)
{
    struct a2a_settings *s = calloc(1, sizeof *s);
    enum bt_code code;

    if (s == NULL) {
        return err_set(err, BT_NOMEM, "out of memory for the settings");
    }
    s->timeout_ms = TIMEOUT_MS;
    s->policy.secrets = &s->secrets;
    code = settings_parse(json, SETTINGS_BYTES, read_all, s, err);
    if (code != BT_OK) {
        a2a_settings_free(s);
        return code;
    }
    *ret = s;
    return BT_OK;
}

void a2a_settings_free(struct a2a_settings *s)
{
    if (s != NULL) {
        secrets_done(&s->secrets);
        arena_done(&s->arena);
        free(s);
    }
}
