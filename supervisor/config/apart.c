/* What an agent is kept from, and the secrets that it is given: lists of texts for the spawner. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/config/loader.h"

enum {
    LIST_MAX = 160,
    SECRET_BYTES = 16 * 1024,
    SECRET_NAME_BYTES = 128,
    SECRET_PATH_BYTES = 4096,
    IDS_BYTES = 48 /* a user and a group in digits */
};

struct list {
    struct loader *l;
    const char **at;
    size_t n;
    bool no_memory;
};

static void put(struct list *to, const char *name, const char *value)
{
    struct buf text;

    buf_init(&text, SECRET_BYTES * 2);
    buf_printf(&text, "%s=%s", name, value);
    if (to->n + 1 < LIST_MAX) {
        to->at[to->n] = config_store_text(to->l->store, buf_cstr(&text));
        to->no_memory = to->no_memory || text.bad != BT_OK || to->at[to->n] == NULL;
        to->n++;
    }
    buf_done(&text);
}

static void problem(struct loader *l, enum layer_kind layer, uint32_t ix, const char *member,
                    const char *text)
{
    char key[CONFIG_KEY_BYTES];
    char origin[ORIGIN_MAX];

    (void)snprintf(key, sizeof key, "agents.%u.%s", ix, member);
    layer_origin(l, layer, key, origin);
    config_problem(l, origin, "%s: %s", key, text);
}

/* ---- secrets ---- */

/* The content of a file that its owner alone may read, without a line end. */
static bool read_secret(const char *path, char value[SECRET_BYTES], char why[CONFIG_WHY_BYTES])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    ssize_t n = -1;

    if (fd < 0 || fstat(fd, &st) != 0) {
        (void)snprintf(why, CONFIG_WHY_BYTES, "%.180s: %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        (void)snprintf(why, CONFIG_WHY_BYTES, "%.180s: expected a regular file", path);
    } else if ((st.st_mode & 037) != 0) {
        (void)snprintf(why, CONFIG_WHY_BYTES, "%.180s: others may read it; chmod 600 it", path);
    } else if ((n = read(fd, value, SECRET_BYTES)) <= 0 || n == SECRET_BYTES) {
        (void)snprintf(why, CONFIG_WHY_BYTES, "%.180s: expected 1 to %d bytes", path,
                       SECRET_BYTES - 1);
        n = -1;
    } else {
        while (n > 0 && (value[n - 1] == '\n' || value[n - 1] == '\r')) {
            n--;
        }
        value[n] = 0;
        if (memchr(value, 0, (size_t)n) != NULL) {
            (void)snprintf(why, CONFIG_WHY_BYTES, "%.180s: has a zero byte", path);
            n = -1;
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return n >= 0;
}

/* NAME: the variable of the daemon, else the credential that systemd gives it under this name. */
const char *config_secret(struct loader *l, const char *entry, char why[CONFIG_WHY_BYTES])
{
    const char *file = strchr(entry, '=');
    const int len = file != NULL ? (int)(file - entry) : (int)strlen(entry);
    const char *dir = getenv("CREDENTIALS_DIRECTORY");
    char value[SECRET_BYTES];
    char name[SECRET_NAME_BYTES];
    struct list one;
    const char *at[LIST_MAX];

    (void)snprintf(name, sizeof name, "%.*s", len, entry);
    if (file != NULL) {
        if (!read_secret(file + 1, value, why)) {
            return NULL;
        }
    } else if (getenv(name) != NULL) {
        if (snprintf(value, sizeof value, "%s", getenv(name)) >= (int)sizeof value) {
            (void)snprintf(why, CONFIG_WHY_BYTES, "%s: has more than %d bytes", name,
                           SECRET_BYTES - 1);
            return NULL;
        }
    } else {
        char path[SECRET_PATH_BYTES];
        if (dir == NULL || snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path ||
            access(path, F_OK) != 0) {
            (void)snprintf(why, CONFIG_WHY_BYTES,
                           "the daemon has no variable %s, and no credential of that name", name);
            return NULL;
        }
        if (!read_secret(path, value, why)) {
            return NULL;
        }
    }
    (void)snprintf(name, sizeof name, "secret:%.*s", len, entry);
    one = (struct list){.l = l, .at = at};
    put(&one, name, value);
    explicit_bzero(value, sizeof value);
    why[0] = 0;
    return one.no_memory ? NULL : at[0];
}

/* A missing secret may come with the next start, so it is not a mistake of the file. */
static void hold_back(struct list *to, enum layer_kind layer, uint32_t ix, struct config_agent *a,
                      const char *why)
{
    char key[CONFIG_KEY_BYTES];
    char origin[ORIGIN_MAX];
    char text[CONFIG_WHY_BYTES + CONFIG_KEY_BYTES];

    (void)snprintf(key, sizeof key, "agents.%u.secrets", ix);
    layer_origin(to->l, layer, key, origin);
    (void)snprintf(text, sizeof text, "%s: %s", key, why);
    a->held_back = config_store_text(to->l->store, text);
    to->no_memory = to->no_memory || a->held_back == NULL;
    config_warning(to->l, origin, "%s; the agent \"%.64s\" %s", text, a->agent_id,
                   to->l->request->check_only ? "would not be started from this environment"
                                              : "is not started without it");
}

static void bind_secrets(struct list *to, enum layer_kind layer, uint32_t ix, const cJSON *tree,
                         struct config_agent *a)
{
    const cJSON *v;

    cJSON_ArrayForEach(v, cJSON_GetObjectItemCaseSensitive(tree, "secrets"))
    {
        const char *bad = NULL;
        const char *entry =
            cJSON_IsString(v) ? config_expand(to->l, layer, v->valuestring, &bad) : "";
        char why[CONFIG_WHY_BYTES] = "";
        const char *secret;
        if (bad != NULL || entry == NULL || entry[0] == 0 || to->n + 1 >= LIST_MAX) {
            to->no_memory = to->no_memory || (bad == NULL && entry == NULL);
            if (bad != NULL) {
                problem(to->l, layer, ix, "secrets", bad);
            }
            continue;
        }
        secret = config_secret(to->l, entry, why);
        if (secret != NULL) {
            to->at[to->n++] = secret;
        } else if (why[0] == 0) {
            to->no_memory = true;
        } else {
            hold_back(to, layer, ix, a, why);
        }
    }
}

/* ---- kept from ---- */

static void bind_user(struct list *to, enum layer_kind layer, uint32_t ix, const cJSON *tree)
{
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "user"));
    const struct passwd *who = name == NULL ? NULL : getpwnam(name);
    char ids[IDS_BYTES];

    if (name == NULL) {
        return;
    }
    if (who == NULL) {
        problem(to->l, layer, ix, "user", "there is no user of this name");
        return;
    }
    (void)snprintf(ids, sizeof ids, "%u:%u", (unsigned)who->pw_uid, (unsigned)who->pw_gid);
    put(to, "user", ids);
}

static void bind_paths(struct list *to, enum layer_kind layer, uint32_t ix, const cJSON *tree)
{
    static const char *const names[] = {"read", "write"};
    const cJSON *paths = cJSON_GetObjectItemCaseSensitive(tree, "paths");

    if (!cJSON_IsObject(paths)) {
        return;
    }
    put(to, "paths", "");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const cJSON *v;
        cJSON_ArrayForEach(v, cJSON_GetObjectItemCaseSensitive(paths, names[i]))
        {
            const char *why = NULL;
            const char *path =
                cJSON_IsString(v) ? config_expand(to->l, layer, v->valuestring, &why) : "";
            if (why != NULL) {
                problem(to->l, layer, ix, "paths", why);
            } else if (path == NULL) {
                to->no_memory = true;
            } else if (path[0] == '/') {
                put(to, names[i], path);
            }
        }
    }
}

static void bind_limits(struct list *to, const cJSON *tree)
{
    static const char *const names[][2] = {
        {"memoryBytes", "memory"}, {"processes", "processes"}, {"cpuPercent", "cpu"}};
    const cJSON *limits = cJSON_GetObjectItemCaseSensitive(tree, "limits");

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const cJSON *v = cJSON_GetObjectItemCaseSensitive(limits, names[i][0]);
        char number[CONFIG_NUMBER_BYTES];
        if (cJSON_IsNumber(v) && v->valuedouble >= 1) {
            (void)snprintf(number, sizeof number, "%.0f", v->valuedouble);
            put(to, names[i][1], number);
        }
    }
}

static void bind_choice(struct list *to, const cJSON *tree, const char *name, const char *value)
{
    const char *given = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, name));

    if (given != NULL && strcmp(given, value) == 0) {
        put(to, name, value);
    }
}

enum bt_code config_apart_bind(struct loader *l, enum layer_kind layer, uint32_t ix,
                               const cJSON *tree, struct config_agent *a)
{
    struct list secrets = {.l = l, .at = arena_alloc(&l->store->arena, LIST_MAX * sizeof(char *))};
    struct list apart = {.l = l, .at = arena_alloc(&l->store->arena, LIST_MAX * sizeof(char *))};

    if (secrets.at == NULL || apart.at == NULL) {
        return config_no_memory(l);
    }
    bind_secrets(&secrets, layer, ix, tree, a);
    bind_user(&apart, layer, ix, tree);
    bind_paths(&apart, layer, ix, tree);
    bind_choice(&apart, tree, "network", "none");
    bind_choice(&apart, tree, "seccomp", "default");
    bind_limits(&apart, tree);
    secrets.at[secrets.n] = NULL;
    apart.at[apart.n] = NULL;
    a->handover = secrets.at;
    a->apart = apart.at;
    return secrets.no_memory || apart.no_memory ? config_no_memory(l) : BT_OK;
}

/* ---- what is not available here ---- */

void config_apart_check(struct loader *l)
{
    const struct config *c = &l->store->c;
    enum layer_kind layer;
    const cJSON *list = layers_find(l, "agents", &layer);
    const uint32_t n = cJSON_IsArray(list) ? (uint32_t)cJSON_GetArraySize(list) : 0;

    for (uint32_t i = 0; l->request->can_set_apart != NULL && i < n; i++) {
        char why[CONFIG_WHY_BYTES];
        char member[CONFIG_KEY_BYTES];
        char text[CONFIG_WHY_BYTES + CONFIG_WHY_BYTES];
        if (l->request->can_set_apart(c->agents[i].apart, c->state_dir, why)) {
            continue;
        }
        /* It begins with the key, "limits.processes: ...", or names what is not understood. */
        (void)snprintf(member, sizeof member, "%.*s", (int)strcspn(why, ":"), why);
        (void)snprintf(
            text, sizeof text, "%s; the agent \"%.64s\" cannot be kept from what it must",
            why + strcspn(why, ":") + strspn(why + strcspn(why, ":"), ": "), c->agents[i].agent_id);
        problem(l, layer, i, member, text);
    }
}
