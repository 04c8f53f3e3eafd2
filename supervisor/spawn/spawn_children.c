/* The specs: checks and copies them, builds the environment, adopts living processes. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/log.h"
#include "protocol/limits.h"
#include "supervisor/spawn/spawn_internal.h"

enum { START_BYTES_MAX = 60 * 1024, NUMBER_BYTES = 16 };

/* Inherited from the daemon unless the spec sets them. */
static const char *const inherited[] = {"PATH", "HOME", "LANG"};

/* Set by the daemon: a spec must not contain them. */
static const char *const reserved[] = {"BATON_STATE",    "BATON_INSTANCE_ID", "BATON_AGENT_ID",
                                       "BATON_SETTINGS", "BATON_CAPACITY",    "BATON_SPAWNED",
                                       "BATON_HANDOVER", "BATON_HIDE",        "BATON_SHARDS"};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static bool name_is_valid(const char *name)
{
    size_t len = strlen(name);
    bool valid = len > 0 && len <= SPAWN_NAME_MAX && name[0] != '.';

    for (size_t i = 0; i < len && valid; i++) {
        valid = isalnum((unsigned char)name[i]) || strchr("._#-", name[i]) != NULL;
    }
    return valid;
}

static size_t list_length(const char *const *list)
{
    size_t n = 0;

    while (list != NULL && list[n] != NULL) {
        n++;
    }
    return n;
}

/* Whether an entry sets (or inherits) this variable. */
static bool entry_is(const char *entry, const char *name)
{
    size_t len = strlen(name);

    return strncmp(entry, name, len) == 0 && (entry[len] == '=' || entry[len] == 0);
}

static bool list_has(const char *const *list, const char *name)
{
    bool has = false;

    for (size_t i = 0; list != NULL && list[i] != NULL && !has; i++) {
        has = entry_is(list[i], name);
    }
    return has;
}

/* Whether the agent cannot read the state directory, and must be told what it would find there. */
static bool is_shut_out(const struct spawn_spec *spec)
{
    return list_has(spec->apart, "user") || list_has(spec->apart, "paths");
}

/* "NAME=value" in the arena; NULL when out of memory. */
static char *join(struct arena *a, const char *name, const char *first, const char *rest)
{
    size_t size = strlen(name) + strlen(first) + strlen(rest) + 2;
    char *text = arena_alloc(a, size);

    if (text != NULL) {
        (void)snprintf(text, size, "%s=%s%s", name, first, rest);
    }
    return text;
}

static char *copy(struct arena *a, const char *text)
{
    size_t size = strlen(text) + 1;
    char *to = arena_alloc(a, size);

    return to != NULL ? memcpy(to, text, size) : NULL;
}

struct env {
    char **at;
    size_t n;
    bool no_memory;
};

static void add(struct env *env, char *entry)
{
    env->no_memory = env->no_memory || entry == NULL;
    env->at[env->n++] = entry;
}

static void add_inherited(const struct spawn *s, const struct spawn_spec *spec, struct child *c,
                          struct env *env)
{
    for (size_t i = 0; i < COUNT(inherited); i++) {
        const char *value = getenv(inherited[i]);
        char first[4096] = "";

        if (list_has(spec->env, inherited[i]) || (value == NULL && i != 0)) {
            continue;
        }
        if (i == 0 && s->path_first != NULL) {
            (void)snprintf(first, sizeof first, "%s:", s->path_first);
        }
        add(env, join(&c->arena, inherited[i], first, value != NULL ? value : "/usr/bin:/bin"));
    }
}

static void add_listed(const struct spawn_spec *spec, struct child *c, struct env *env)
{
    for (size_t i = 0; spec->env != NULL && spec->env[i] != NULL; i++) {
        const char *value;

        if (strchr(spec->env[i], '=') != NULL) {
            add(env, copy(&c->arena, spec->env[i]));
        } else if ((value = getenv(spec->env[i])) != NULL) {
            add(env, join(&c->arena, spec->env[i], value, ""));
        }
    }
}

static enum bt_code make_env(const struct spawn *s, const struct spawn_spec *spec, struct child *c,
                             struct bt_error *err)
{
    size_t max = 1 + COUNT(inherited) + COUNT(reserved) + list_length(spec->env);
    struct env env = {.at = arena_alloc(&c->arena, (max + 1) * sizeof *env.at)};
    char number[NUMBER_BYTES];

    if (env.at == NULL) {
        return err_set(err, BT_NOMEM, "agent process '%s': out of memory", spec->name);
    }
    add(&env, c->instance_env);
    add_inherited(s, spec, c, &env);
    add(&env, join(&c->arena, "BATON_STATE", s->link.state_path, ""));
    add(&env, join(&c->arena, "BATON_AGENT_ID", spec->agent_id, ""));
    if (spec->settings != NULL) {
        add(&env, join(&c->arena, "BATON_SETTINGS", spec->settings, ""));
    }
    if (spec->capacity != 0) {
        (void)snprintf(number, sizeof number, "%u", spec->capacity);
        add(&env, join(&c->arena, "BATON_CAPACITY", number, ""));
    }
    if (s->shards > 1) {
        (void)snprintf(number, sizeof number, "%u", s->shards);
        add(&env, join(&c->arena, "BATON_SHARDS", number, ""));
    }
    add_listed(spec, c, &env);
    c->env = env.at;
    return env.no_memory ? err_set(err, BT_NOMEM, "agent process '%s': out of memory", spec->name)
                         : BT_OK;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return (hash ^ str_hash(str_from(text != NULL ? text : ""))) * 1099511628211u;
}

/* Leaves out PATH, HOME and LANG: a daemon that was restarted from another terminal must find its
 * agents. And its own address, of a node with several shards: another one finds them, too. */
static uint64_t hash_of(const struct spawn *s, const struct spawn_spec *spec, const struct child *c)
{
    const bool several = s->shards > 1 && s->controls != NULL;
    char numbers[96];
    uint64_t hash = 14695981039346656037u;

    for (size_t i = 0; c->argv[i] != NULL; i++) {
        hash = hash_text(hash, c->argv[i]);
    }
    for (size_t i = 1; c->env[i] != NULL; i++) {
        bool own = true;

        for (size_t k = 0; k < COUNT(inherited) && own; k++) {
            own = !entry_is(c->env[i], inherited[k]) || list_has(spec->env, inherited[k]);
        }
        hash = own ? hash_text(hash, c->env[i]) : hash;
    }
    for (size_t i = 0; c->handover[i] != NULL; i++) {
        const bool ours = several && c->handover[i] == s->controls[0];
        hash = ours ? hash : hash_text(hash, c->handover[i]);
    }
    for (size_t i = 0; c->apart[i] != NULL; i++) {
        const bool ours = several && c->apart[i] == s->ports[0];
        hash = ours ? hash : hash_text(hash, c->apart[i]);
    }
    (void)snprintf(numbers, sizeof numbers, "%llu %llu", (unsigned long long)spec->nofile,
                   (unsigned long long)spec->memory_bytes);
    return hash_text(hash_text(hash, c->cwd), numbers);
}

static enum bt_code check(const struct spawn *s, const struct spawn_spec *spec,
                          struct bt_error *err)
{
    if (spec->group != NULL && spawn_group_find(s, spec->group) == NULL) {
        return err_set(err, BT_INVALID, "agent process '%s': there is no group '%s'", spec->name,
                       spec->group);
    }
    if (spec->agent_id == NULL || spec->agent_id[0] == 0 ||
        strlen(spec->agent_id) > LIMIT_ID_BYTES) {
        return err_set(err, BT_INVALID, "agent process '%s': the agent id must be 1 to %d bytes",
                       spec->name, LIMIT_ID_BYTES);
    }
    if (list_length(spec->argv) == 0 || spec->argv[0][0] == 0) {
        return err_set(err, BT_INVALID, "agent process '%s': the command is empty", spec->name);
    }
    if (list_length(spec->argv) > PACKET_LIST_MAX ||
        list_length(spec->env) > PACKET_LIST_MAX - COUNT(inherited) - COUNT(reserved) - 1) {
        return err_set(err, BT_LIMIT, "agent process '%s': more than %d arguments or variables",
                       spec->name, PACKET_LIST_MAX - 10);
    }
    for (size_t i = 0; i < COUNT(reserved); i++) {
        if (list_has(spec->env, reserved[i])) {
            return err_set(err, BT_INVALID, "agent process '%s': %s is set by Baton itself",
                           spec->name, reserved[i]);
        }
    }
    return BT_OK;
}

void child_wipe(struct child *c)
{
    explicit_bzero(c->credential, sizeof c->credential);
    explicit_bzero(c->key, sizeof c->key);
}

static size_t fill_credential(const struct spawn *s, struct child *c, struct packet *order,
                              size_t n)
{
    char id[SPAWN_CREDENTIAL_BYTES];
    char key[SPAWN_CREDENTIAL_BYTES];

    if (s->prover.prove == NULL || !s->prover.prove(s->prover.self, str_from(c->instance_id),
                                                    str_from(c->agent_id), id, key)) {
        return n;
    }
    (void)snprintf(c->credential, sizeof c->credential, "credential=%s", id);
    (void)snprintf(c->key, sizeof c->key, "key=%s", key);
    explicit_bzero(key, sizeof key);
    order->handover[n++] = c->credential;
    order->handover[n++] = c->key;
    return n;
}

void child_fill_start(const struct spawn *s, struct child *c, struct packet *order)
{
    size_t n = 0;

    *order = (struct packet){.type = PACKET_START,
                             .hash = c->hash,
                             .nofile = c->nofile,
                             .memory_bytes = c->memory_bytes,
                             .log_bytes = c->log_bytes,
                             .log_files = c->log_files,
                             .instance = c->instance_id,
                             .name = c->name,
                             .text = c->cwd};
    for (n = 0; c->argv[n] != NULL; n++) {
        order->argv[n] = c->argv[n];
    }
    for (n = 0; c->env[n] != NULL; n++) {
        order->env[n] = c->env[n];
    }
    for (n = 0; c->handover[n] != NULL; n++) {
        order->handover[n] = c->handover[n];
    }
    (void)fill_credential(s, c, order, n);
    for (n = 0; c->apart[n] != NULL; n++) {
        order->apart[n] = c->apart[n];
    }
}

/* A copy of the list with room for `more` entries; NULL when out of memory. */
static char **copy_list(struct arena *a, const char *const *list, size_t more)
{
    const size_t n = list_length(list);
    char **to = arena_alloc(a, (n + more + 1) * sizeof *to);

    for (size_t i = 0; to != NULL && i < n; i++) {
        to[i] = copy(a, list[i]);
        if (to[i] == NULL) {
            return NULL;
        }
    }
    for (size_t i = n; to != NULL && i <= n + more; i++) {
        to[i] = NULL;
    }
    return to;
}

static enum bt_code set_apart(const struct spawn *s, const struct spawn_spec *spec, struct child *c,
                              struct bt_error *err)
{
    const size_t handed = list_length(spec->handover);
    const size_t kept = list_length(spec->apart);

    c->handover = copy_list(&c->arena, spec->handover, s->controls_n);
    c->apart = copy_list(&c->arena, spec->apart, s->controls_n);
    if (c->handover == NULL || c->apart == NULL) {
        return err_set(err, BT_NOMEM, "agent process '%s': out of memory", spec->name);
    }
    for (size_t i = 0; is_shut_out(spec) && i < s->controls_n; i++) {
        c->handover[handed + i] = s->controls[i];
        c->cwd = spec->cwd != NULL ? c->cwd : "/";
    }
    for (size_t i = 0; list_has(spec->apart, "network") && i < s->controls_n; i++) {
        c->apart[kept + i] = s->ports[i];
    }
    return BT_OK;
}

static bool add_address(struct spawn *s, const char *name, const char *url)
{
    const char *colon = strrchr(url, ':');

    s->controls[s->controls_n] = join(&s->arena, name, url, "");
    s->ports[s->controls_n] = colon != NULL ? join(&s->arena, "port", colon + 1, "") : NULL;
    s->controls_n++;
    return s->controls[s->controls_n - 1] != NULL && s->ports[s->controls_n - 1] != NULL;
}

enum bt_code spawn_introduce(struct spawn *s, const char *control_url, const char *const *shards,
                             const struct spawn_prover *prover, struct bt_error *err)
{
    const size_t max = 1 + (shards != NULL ? s->shards : 0);
    char name[NUMBER_BYTES + sizeof "control:"];
    bool ok;

    s->prover = *prover;
    s->controls_n = 0;
    s->controls = arena_alloc(&s->arena, max * sizeof *s->controls);
    s->ports = arena_alloc(&s->arena, max * sizeof *s->ports);
    ok = s->controls != NULL && s->ports != NULL && add_address(s, "control", control_url);
    for (size_t i = 0; ok && i + 1 < max; i++) {
        (void)snprintf(name, sizeof name, "control:%u", (unsigned)i);
        ok = shards[i][0] == 0 || add_address(s, name, shards[i]);
    }
    return ok ? BT_OK : err_set(err, BT_NOMEM, "out of memory for the addresses of the supervisor");
}

static enum bt_code check_size(struct spawn *s, struct child *c, struct bt_error *err)
{
    child_fill_start(s, c, &s->order);
    buf_clear(&s->out);
    packet_encode(&s->order, &s->out);
    child_wipe(c);
    if (buf_check(&s->out, NULL) != BT_OK || s->out.len > START_BYTES_MAX) {
        return err_set(err, BT_LIMIT,
                       "agent process '%s': arguments, variables and settings must fit in %d bytes",
                       c->name, START_BYTES_MAX);
    }
    return BT_OK;
}

void child_new_instance(struct child *c)
{
    uuid_format(uuid_new(), c->instance_id);
    (void)snprintf(c->instance_env, sizeof c->instance_env, "BATON_INSTANCE_ID=%s", c->instance_id);
    c->pid = 0;
    c->kill_reason = NULL;
    c->send = SEND_START;
}

static enum bt_code fill(struct spawn *s, const struct spawn_spec *spec, struct child *c,
                         struct bt_error *err)
{
    size_t n = list_length(spec->argv);
    struct policy_settings policy = spec->policy;
    enum bt_code code;

    if (spec->name == NULL || !name_is_valid(spec->name)) {
        return err_set(err, BT_INVALID,
                       "agent process '%.80s': a name is 1 to %d of A-Z a-z 0-9 . _ # -",
                       spec->name != NULL ? spec->name : "", SPAWN_NAME_MAX);
    }
    code = check(s, spec, err);
    if (code != BT_OK) {
        return code;
    }
    policy.grouped = spec->group != NULL;
    policy_init(&c->policy, &policy);
    c->group = spec->group != NULL ? spawn_group_find(s, spec->group) : NULL;
    c->place = spec->place;
    c->log_bytes = spec->log_bytes;
    c->log_files = spec->log_files;
    c->name = copy(&c->arena, spec->name);
    c->agent_id = copy(&c->arena, spec->agent_id);
    c->cwd = copy(&c->arena, spec->cwd != NULL ? spec->cwd : "");
    c->argv = arena_alloc(&c->arena, (n + 1) * sizeof *c->argv);
    if (c->name == NULL || c->agent_id == NULL || c->cwd == NULL || c->argv == NULL) {
        return err_set(err, BT_NOMEM, "agent process '%s': out of memory", spec->name);
    }
    for (size_t i = 0; i < n; i++) {
        c->argv[i] = copy(&c->arena, spec->argv[i]);
        if (c->argv[i] == NULL) {
            return err_set(err, BT_NOMEM, "agent process '%s': out of memory", spec->name);
        }
    }
    c->nofile = spec->nofile;
    c->memory_bytes = spec->memory_bytes;
    code = make_env(s, spec, c, err);
    if (code != BT_OK) {
        return code;
    }
    code = set_apart(s, spec, c, err);
    if (code != BT_OK) {
        return code;
    }
    c->hash = hash_of(s, spec, c);
    return check_size(s, c, err);
}

void child_free(struct child *c)
{
    if (c != NULL) {
        arena_done(&c->arena);
        free(c);
    }
}

enum bt_code child_new(struct spawn *s, const struct spawn_spec *spec, struct child **ret,
                       struct bt_error *err)
{
    struct child *c = calloc(1, sizeof *c);
    enum bt_code code = BT_NOMEM;

    *ret = NULL;
    if (c == NULL) {
        return err_set(err, BT_NOMEM, "agent process '%s': out of memory", spec->name);
    }
    code = fill(s, spec, c, err);
    if (code != BT_OK) {
        child_free(c);
        return code;
    }
    *ret = c;
    return BT_OK;
}

/* Its group does not act on it before all are adopted. */
static bool adopt(struct spawn *s, struct child *c, msec now)
{
    for (uint32_t i = 0; i < s->found_n; i++) {
        struct found *f = &s->found[i];

        if (f->taken || f->hash != c->hash || !str_is(str_from(c->name), f->name)) {
            continue;
        }
        f->taken = true;
        (void)snprintf(c->instance_id, sizeof c->instance_id, "%s", f->instance_id);
        c->pid = f->pid;
        s->changes++;
        policy_handle(&c->policy, &(struct policy_event){.type = POLICY_ON_ADOPTED, .now = now},
                      &(struct policy_commands){0});
        spawn_emit(s, c, SPAWN_ADOPTED, "");
        return true;
    }
    return false;
}

static void forget_children(struct spawn *s)
{
    for (size_t i = 0; i < s->children_n; i++) {
        child_free(s->children[i]);
    }
    s->children_n = 0;
}

static enum bt_code copy_specs(struct spawn *s, const struct spawn_spec *specs, size_t n,
                               struct bt_error *err)
{
    enum bt_code code = BT_OK;

    for (size_t i = 0; i < n && code == BT_OK; i++) {
        code = spawn_events_room(s, err);
        if (code == BT_OK && specs[i].name != NULL &&
            spawn_index(s, str_from(specs[i].name)) < s->children_n) {
            code = err_set(err, BT_INVALID, "agent process '%s': the name is there twice",
                           specs[i].name);
        }
        if (code == BT_OK) {
            code = child_new(s, &specs[i], &s->children[s->children_n], err);
        }
        s->children_n += code == BT_OK ? 1 : 0;
    }
    return code;
}

enum bt_code spawn_set_children(struct spawn *s, const struct spawn_spec *specs, size_t n, msec now,
                                struct bt_error *err)
{
    enum bt_code code;

    if (s->children_set) {
        return err_set(err, BT_CONFLICT, "the agent processes are set already");
    }
    if (n > LIMIT_PROCESSES) {
        return err_set(err, BT_LIMIT, "%zu agent processes: at most %d", n, LIMIT_PROCESSES);
    }
    code = copy_specs(s, specs, n, err);
    if (code == BT_OK) {
        code = spawn_groups_gather(s, err);
    }
    if (code != BT_OK) {
        forget_children(s);
        return code;
    }
    s->children_set = true;
    for (size_t i = 0; i < n; i++) {
        if (!adopt(s, s->children[i], now) && s->children[i]->group == NULL) {
            spawn_apply(s, s->children[i],
                        &(struct policy_event){.type = POLICY_ON_START, .now = now});
        }
    }
    for (size_t i = 0; i < s->groups_n; i++) {
        spawn_group_run(s, s->groups[i], now);
    }
    for (uint32_t i = 0; i < s->found_n; i++) {
        if (!s->found[i].taken) {
            log_warn("spawn.unwanted", "child=%s instance=%s pid=%d action=kill", s->found[i].name,
                     s->found[i].instance_id, (int)s->found[i].pid);
            (void)spawn_send_order(s, PACKET_KILL_TREE, s->found[i].instance_id, 0);
        }
    }
    free(s->found);
    s->found = NULL;
    s->found_n = 0;
    spawn_flush(s);
    return BT_OK;
}
