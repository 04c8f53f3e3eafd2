#include "tests/unit/daemon/roster_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/roster_internal.h"

struct agents_world world;
uint32_t world_shards;

void world_write(const char *yaml)
{
    FILE *f = fopen(world.file, "w");

    assert_non_null(f);
    assert_true(fputs(yaml, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(world.file, 0600), 0);
}

void world_open_only(const char *yaml)
{
    struct engine_options opt = house_options();
    struct engine_hooks hooks;
    struct bt_error err;

    world = (struct agents_world){.h = NULL};
    assert_int_equal(rig_open(NULL), 0);
    rig_begin(&(struct spawn_options){.shards = world_shards}, NULL, 0);
    (void)snprintf(world.file, sizeof world.file, "%s/baton.yaml", rig.dir);
    world_write(yaml);
    world.request = (struct config_request){.state_dir = rig.dir,
                                            .file = world.file,
                                            .system_file = "/nowhere/baton.yaml",
                                            .bin_dir = "/bin"};
    if (config_load(&world.request, &world.config, NULL, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    opt.state_dir = rig.dir;
    opt.shards = world_shards;
    opt.shard = world_shards > 0 ? 1 : 0;
    world.h = house_open_with(&opt);
    assert_int_equal(roster_new(world.h->engine, rig.s, world.config, &world.roster, &err), BT_OK);
    keeper_init(&world.keeper, world_shards > 0 ? rig.dir : NULL);
    world.processes = (struct processes){
        .engine = world.h->engine, .spawn = rig.s, .roster = world.roster, .keeper = &world.keeper};
    assert_int_equal(processes_open(&world.processes, &err), BT_OK);
    world.reload = (struct reload){.request = &world.request,
                                   .started = world.config,
                                   .live = world.config,
                                   .roster = world.roster};
    hooks = *engine_hooks(world.h->engine);
    hooks.reload_of = &world.reload;
    hooks.reload = reload_config;
    engine_set_hooks(world.h->engine, &hooks);
    engine_begin(world.h->engine, world.h->now, world.h->wall);
    roster_introduce(world.roster);
    processes_hold_back(&world.processes);
    assert_int_equal(engine_end(world.h->engine, &err), BT_OK);
    rig.now = world.h->now;
}

void world_open(const char *yaml)
{
    struct bt_error err;

    world_open_only(yaml);
    if (processes_start(&world.processes, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
}

static void drop_roster(void)
{
    for (uint32_t i = 0; i < world.roster->n; i++) {
        free(world.roster->agents[i]);
    }
    free(world.roster);
}

void world_again(const struct rig_child *living)
{
    struct bt_error err;

    spawn_abandon(rig.s);
    (void)close(rig.conn);
    drop_roster();
    rig_begin(NULL, living, 1);
    assert_int_equal(roster_new(world.h->engine, rig.s, world.config, &world.roster, &err), BT_OK);
    world.processes.spawn = rig.s;
    world.processes.roster = world.reload.roster = world.roster;
}

void world_close(void)
{
    house_close(world.h);
    drop_roster();
    if (world.reload.live != world.config) {
        config_free((struct config *)(uintptr_t)world.reload.live);
    }
    config_free(world.config);
    assert_int_equal(rig_close(NULL), 0);
}

void world_cycle(void)
{
    struct bt_error err;

    rig.now = world.h->now;
    for (int i = 0; i < 3; i++) {
        engine_begin(world.h->engine, world.h->now, world.h->wall);
        processes_cycle(&world.processes, true);
        roster_cycle(world.roster);
        if (engine_end(world.h->engine, &err) != BT_OK) {
            fail_msg("%s", err.msg);
        }
        house_cycle(world.h);
    }
}

void world_pass(msec ms)
{
    house_wait(world.h, ms);
    world_cycle();
}

void world_started(const char *name, char instance[UUID_TEXT_LEN + 1])
{
    rig.now = world.h->now;
    rig_started(name);
    (void)snprintf(instance, UUID_TEXT_LEN + 1, "%s", rig.instance);
}

void world_registers(const char *name, pid_t pid, const char *instance)
{
    char agent[LIMIT_ID_BYTES + 1];

    (void)snprintf(agent, sizeof agent, "%.*s", (int)strcspn(name, "#"), name);
    rig.now = world.h->now;
    rig_report(PACKET_STARTED, instance, pid, 0, "");
    (void)house_join_instance(world.h, agent, instance, 1);
    assert_true(spawn_registered(rig.s, str_from(instance), world.h->now));
    rig_ordered(PACKET_REGISTERED);
    assert_string_equal(rig.got.instance, instance);
    world_cycle();
}

void world_up(const char *name, pid_t pid, char instance[UUID_TEXT_LEN + 1])
{
    world_started(name, instance);
    world_registers(name, pid, instance);
}

void world_exit(const char *instance, pid_t pid, int status)
{
    for (uint32_t i = 0; i < world.h->agents_n; i++) {
        if (strcmp(world.h->agents[i].instance, instance) == 0) {
            world.h->agents[i].silent = world.h->agents[i].deaf = true;
        }
    }
    rig.now = world.h->now;
    rig_report(PACKET_EXITED, instance, pid, status, "");
    world_cycle();
}

const char *world_processes(const char *agent)
{
    static char text[1024];
    struct process_view v;

    text[0] = 0;
    for (uint32_t i = 0; roster_view(world.roster, str_from(agent), i, &v); i++) {
        const size_t at = strlen(text);
        (void)snprintf(text + at, sizeof text - at, "%s %s%s%s; ", v.name, v.state,
                       v.doing[0] != 0 ? " " : "", v.doing);
    }
    return text;
}

enum bt_code world_order(enum process_verb verb, const char *agent, const char *process, bool now,
                         struct bt_error *err)
{
    const struct process_order o = {verb, str_from(agent), str_from(process), now};
    struct process_names names;
    enum bt_code code;
    struct bt_error why;

    engine_begin(world.h->engine, world.h->now, world.h->wall);
    code = roster_order(world.roster, &o, &names, err);
    roster_cycle(world.roster);
    assert_int_equal(engine_end(world.h->engine, &why), BT_OK);
    assert_true((code == BT_OK) == (names.n > 0));
    return code;
}
