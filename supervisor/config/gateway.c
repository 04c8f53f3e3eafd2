/* The HTTP API: its address, and the command that the daemon starts. */
#include <string.h>

#include "supervisor/config/loader.h"

enum { ARGS_MAX = 20 };

static void problem(struct loader *l, const char *text)
{
    char origin[ORIGIN_MAX];

    setting_origin(l, "gateway.listen", origin);
    config_problem(l, origin, "gateway.listen: %s", text);
}

static bool is_near(const char *listen)
{
    return strncmp(listen, "127.", 4) == 0 || strncmp(listen, "localhost:", 10) == 0 ||
           strncmp(listen, "[::1]:", 6) == 0;
}

/* Those that are set. */
static void put_options(const struct config_gateway *g, const char **command, uint32_t *n)
{
    const char *const options[][2] = {{"--tls", g->tls},        {"--host", g->host},
                                      {"--otlp", g->otlp},      {"--private", g->private_},
                                      {"--hooks", g->hooks},    {"--url", g->url},
                                      {"--recipes", g->recipes}};

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (options[i][1][0] != 0) {
            command[(*n)++] = options[i][0];
            command[(*n)++] = options[i][1];
        }
    }
}

enum bt_code config_gateway_bind(struct loader *l)
{
    struct config_gateway *g = &l->store->c.gateway;
    enum layer_kind layer;
    const char *why = NULL;
    const char **command;
    uint32_t n = 0;

    if (config_path_bind(l, "gateway.tls", &g->tls) != BT_OK ||
        config_path_bind(l, "gateway.hooks", &g->hooks) != BT_OK ||
        config_path_bind(l, "gateway.recipes", &g->recipes) != BT_OK) {
        return BT_NOMEM;
    }
    if (layers_find(l, "gateway.listen", &layer) == NULL) {
        if (layers_find(l, "gateway", &layer) == NULL) {
            return BT_OK;
        }
        g->listen = "127.0.0.1:0"; /* `gateway: {}`: any free port, and the same next time */
    }
    if (g->listen[0] == 0) {
        return BT_OK;
    }
    if (!is_near(g->listen) && g->tls[0] == 0) {
        problem(l, "other machines can reach it: it needs gateway.tls, a file with certificate and "
                   "key (baton certs issue makes one), or listen on 127.0.0.1");
    }
    command = arena_alloc(&l->store->arena, ARGS_MAX * sizeof *command);
    if (command == NULL) {
        return config_no_memory(l);
    }
    command[n++] = config_expand(l, layer, "${BATON_BIN}/baton-gateway", &why);
    if (command[0] == NULL && why == NULL) {
        return config_no_memory(l);
    }
    if (why != NULL) {
        problem(l, why);
        return BT_OK;
    }
    command[n++] = "--listen";
    command[n++] = g->listen;
    put_options(g, command, &n);
    command[n] = NULL;
    g->command = command;
    return BT_OK;
}
