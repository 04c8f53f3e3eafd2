#include "agents/web/settings.h"

#include <string.h>
#include <unistd.h>

#include "agents/sdk/settings/fields.h"
#include "agents/sdk/settings/settings.h"
#include "agents/web/address.h"
#include "agents/web/url.h"

enum { HOST_MAX = 512, LIST_MAX = 64 };

static enum bt_code no_memory(struct bt_error *err)
{
    return err_set(err, BT_NOMEM, "out of memory for the settings");
}

enum bt_code web_read_secret(struct secrets *secrets, struct arena *a, struct doc map,
                             const char *member, const char **ret, struct bt_error *err)
{
    static const char *const known[] = {"env", "file", "credential"};
    static const enum secret_source sources[] = {SECRET_ENV, SECRET_FILE, SECRET_CREDENTIAL};
    const size_t n = sizeof known / sizeof known[0];
    struct doc given = doc_get(map, str_from(member));
    enum bt_code code;

    if (given.ptr == NULL) {
        return err_set(err, BT_INVALID, "%s: is missing; give {env: NAME} or {file: PATH}", member);
    }
    if (doc_head(given).kind != DOC_MAP) {
        return err_set(err, BT_INVALID,
                       "%s: a secret does not stand in settings; give {env: NAME} or {file: PATH}",
                       member);
    }
    code = settings_check_names(given, known, n, err);
    if (code == BT_OK && doc_head(given).n != 1) {
        code = err_set(err, BT_INVALID, "expected one of env, file, credential");
    }
    for (size_t i = 0; i < n && code == BT_OK; i++) {
        const char *name = NULL;
        code = field_text(a, given, known[i], false, &name, err);
        if (code == BT_OK && name != NULL) {
            code = secrets_load(secrets, sources[i], name, ret, err);
        }
    }
    return code == BT_OK ? BT_OK : err_wrap(err, "%s", member);
}

/* "host" stands for "host:443" (or 80) only: a port that is named is a part of the name. */
static enum bt_code with_port(struct arena *a, const char *host, bool https, const char **ret,
                              struct bt_error *err)
{
    const char *colon = strrchr(host, ':');
    struct buf text;

    buf_init(&text, 2 * HOST_MAX);
    buf_add_cstr(&text, host);
    if (colon == NULL || strchr(colon, ']') != NULL) {
        buf_add_cstr(&text, https ? ":443" : ":80");
    }
    *ret = text.bad == BT_OK ? arena_str(a, buf_str(&text)).ptr : NULL;
    buf_done(&text);
    return *ret != NULL ? BT_OK : no_memory(err);
}

/* The host of an address that was checked, in lower case. */
static enum bt_code add_host(struct arena *a, const char *url, const char **ret,
                             struct bt_error *err)
{
    struct str host = url_authority(str_from(url));
    char text[HOST_MAX];

    if (host.len >= sizeof text) {
        return err_set(err, BT_INVALID, "'%.200s': its host is too long", url);
    }
    for (size_t i = 0; i < host.len; i++) {
        const char c = host.ptr[i];
        text[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    text[host.len] = 0;
    return with_port(a, text, url_is_https(str_from(url)), ret, err);
}

static enum bt_code read_hosts(struct arena *a, struct doc map, const char *const *own,
                               struct web_policy *ret, struct bt_error *err)
{
    const char *const *more = NULL;
    const char **hosts;
    size_t n = 0;
    enum bt_code code = field_list(a, map, "allowHosts", LIST_MAX, &more, err);

    while (code == BT_OK && more != NULL && more[n] != NULL) {
        if (more[n][0] == 0 || strlen(more[n]) >= HOST_MAX || strchr(more[n], '/') != NULL) {
            return err_set(err, BT_INVALID,
                           "allowHosts[%zu]: expected a host or host:port, as api.example.org", n);
        }
        n++;
    }
    hosts = code == BT_OK ? arena_alloc(a, (n + WEB_OWN_MAX + 1) * sizeof *hosts) : NULL;
    if (hosts == NULL) {
        return code == BT_OK ? no_memory(err) : code;
    }
    for (size_t i = 0; i < n && code == BT_OK; i++) {
        code = with_port(a, more[i], true, &hosts[i], err);
    }
    for (size_t i = 0; i < WEB_OWN_MAX && own[i] != NULL && code == BT_OK; i++) {
        code = add_host(a, own[i], &hosts[n + i], err);
    }
    ret->hosts = hosts;
    return code;
}

enum bt_code web_read_policy(struct arena *a, struct doc map, const char *const *own,
                             struct web_policy *ret, struct bt_error *err)
{
    enum bt_code code = field_list(a, map, "allowPrivate", LIST_MAX, &ret->addresses, err);

    for (size_t i = 0; code == BT_OK && ret->addresses != NULL && ret->addresses[i] != NULL; i++) {
        if (address_block_check(ret->addresses[i], err) != BT_OK) {
            return err_wrap(err, "allowPrivate[%zu]", i);
        }
    }
    if (code == BT_OK) {
        code = field_text(a, map, "caFile", false, &ret->ca_file, err);
    }
    if (code == BT_OK && ret->ca_file != NULL && access(ret->ca_file, R_OK) != 0) {
        code = err_set(err, BT_INVALID, "caFile: '%.200s' cannot be read", ret->ca_file);
    }
    return code == BT_OK ? read_hosts(a, map, own, ret, err) : code;
}
