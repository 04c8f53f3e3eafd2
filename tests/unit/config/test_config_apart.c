/* What agents are kept from, and the secrets that they are given. */
#include "tests/unit/config/config_test.h"

enum { SECRET_MAX = 16 * 1024 - 1 };

/* The list as "one, two". */
static const char *joined(const char *const *list)
{
    static char text[1024];

    text[0] = 0;
    for (size_t i = 0; list[i] != NULL; i++) {
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i > 0 ? ", " : "",
                       list[i]);
    }
    return text;
}

/* The one agent of a file with these members. */
static const struct config_agent *agent_with(struct home *h, const char *members)
{
    char text[2048];

    (void)snprintf(text, sizeof text, "agents: [{agentId: a, command: [x]%s%s}]\n",
                   members[0] != 0 ? ", " : "", members);
    write_text(h->user, text);
    expect_loads(h);
    return &h->config->agents[0];
}

static void an_agent_is_kept_from_what_its_entry_names(void **state)
{
    struct home *h = *state;

    assert_string_equal(joined(agent_with(h, "")->apart), "");
    assert_string_equal(joined(agent_with(h, "user: root")->apart), "user=0:0");
    assert_string_equal(joined(agent_with(h, "network: none")->apart), "network=none");
    assert_string_equal(joined(agent_with(h, "network: any")->apart), "");
    assert_string_equal(joined(agent_with(h, "seccomp: default")->apart), "seccomp=default");
    assert_string_equal(joined(agent_with(h, "seccomp: off")->apart), "");
    assert_string_equal(joined(agent_with(h, "paths: {}")->apart), "paths=");
    assert_string_equal(
        joined(agent_with(h, "paths: {write: [/w], read: [/a, '${BATON_BIN}/b']}")->apart),
        "paths=, read=/a, read=/opt/baton/bin/b, write=/w");
    assert_string_equal(
        joined(
            agent_with(h, "limits: {processes: 7, memoryBytes: 16777216, cpuPercent: 1}")->apart),
        "memory=16777216, processes=7, cpu=1");
    write_text(h->user, "agents:\n  - {agentId: a, command: [x], user: nobody-has-this-name}\n");
    expect_problems(h, "DIR/baton/baton.yaml:2:32: agents.0.user: there is no user of this name\n");
}

static bool is_refused;

static bool can_set_apart(const char *const *list, const char *state_dir, char *why)
{
    assert_string_equal(joined(list), "network=none");
    assert_non_null(state_dir);
    (void)snprintf(why, 112, "network: this kernel has no Landlock");
    return !is_refused;
}

static void what_is_not_available_here_is_a_mistake_of_the_file(void **state)
{
    struct home *h = *state;

    h->request.can_set_apart = can_set_apart;
    is_refused = false;
    (void)agent_with(h, "network: none");
    is_refused = true;
    expect_problems(h, "DIR/baton/baton.yaml:1:37: agents.0.network: this kernel has no Landlock; "
                       "the agent \"a\" cannot be kept from what it must\n");
}

static void a_secret_of_a_file_is_its_content_without_the_line_ends(void **state)
{
    static const char *const contents[][2] = {
        {"k", "k"},           {"k\n", "k"}, {"k\r\n\n", "k"}, {" k \n", " k "},
        {"\nk\nl", "\nk\nl"}, {"\n", ""},   {"\r", ""},
    };
    struct home *h = *state;
    char path[128], members[256], want[64];

    (void)snprintf(path, sizeof path, "%s/other.yaml", h->dir);
    (void)snprintf(members, sizeof members, "secrets: ['KEY=%s']", path);
    for (size_t i = 0; i < sizeof contents / sizeof contents[0]; i++) {
        write_text(path, contents[i][0]);
        const struct config_agent *a = agent_with(h, members);
        (void)snprintf(want, sizeof want, "secret:KEY=%s", contents[i][1]);
        assert_string_equal(joined(a->handover), want);
        assert_null(a->held_back);
    }
}

/* The agent is not started without it; the daemon is. */
static void expect_held_back(struct home *h, const char *members, const char *why)
{
    const struct config_agent *a = agent_with(h, members);
    char text[512];

    assert_non_null(a->held_back);
    assert_null(a->handover[0]);
    (void)snprintf(text, sizeof text, "agents.0.secrets: %s", why);
    assert_string_equal(a->held_back, text);
    assert_non_null(strstr(buf_cstr(&h->notes), why));
    assert_non_null(strstr(buf_cstr(&h->notes), "; the agent \"a\" is not started without it"));
}

static void an_agent_is_held_back_without_its_secret(void **state)
{
    struct home *h = *state;
    char path[128], members[256], why[256];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/other.yaml", h->dir);
    (void)snprintf(members, sizeof members, "secrets: ['KEY=%s']", path);
    (void)snprintf(why, sizeof why, "%s: No such file or directory", path);
    expect_held_back(h, members, why);
    for (mode_t mode = 0400; mode <= 0670; mode++) { /* the group may read it, and no more */
        if ((mode & 0400) == 0) {
            continue;
        }
        write_text(path, "k\n");
        assert_int_equal(chmod(path, mode), 0);
        if ((mode & 037) == 0) {
            assert_string_equal(joined(agent_with(h, members)->handover), "secret:KEY=k");
        } else if ((mode & 07) == 0 || (mode & 070) == 0) {
            (void)snprintf(why, sizeof why, "%s: others may read it; chmod 600 it", path);
            expect_held_back(h, members, why);
        }
    }
    write_text(path, "");
    (void)snprintf(why, sizeof why, "%s: expected 1 to 16383 bytes", path);
    expect_held_back(h, members, why);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite("a\0b", 1, 3, f), 3);
    assert_int_equal(fclose(f), 0);
    (void)snprintf(why, sizeof why, "%s: has a zero byte", path);
    expect_held_back(h, members, why);
    assert_int_equal(unlink(path), 0);
    (void)snprintf(members, sizeof members, "secrets: ['KEY=%s']", h->dir);
    (void)snprintf(why, sizeof why, "%s: expected a regular file", h->dir);
    expect_held_back(h, members, why);
}

static void a_secret_has_16383_bytes_at_most(void **state)
{
    static char text[SECRET_MAX + 2];
    struct home *h = *state;
    char path[128], members[256], why[256];

    (void)snprintf(path, sizeof path, "%s/other.yaml", h->dir);
    (void)snprintf(members, sizeof members, "secrets: ['KEY=%s']", path);
    memset(text, 's', SECRET_MAX);
    write_text(path, text);
    assert_string_equal(agent_with(h, members)->handover[0] + strlen("secret:KEY="), text);
    text[SECRET_MAX] = 's';
    write_text(path, text);
    (void)snprintf(why, sizeof why, "%s: expected 1 to 16383 bytes", path);
    expect_held_back(h, members, why);
    assert_int_equal(setenv("SECRET_OF_THE_TEST", text, 1), 0);
    expect_held_back(h, "secrets: [SECRET_OF_THE_TEST]",
                     "SECRET_OF_THE_TEST: has more than 16383 bytes");
    text[SECRET_MAX] = 0;
    assert_int_equal(setenv("SECRET_OF_THE_TEST", text, 1), 0);
    assert_string_equal(agent_with(h, "secrets: [SECRET_OF_THE_TEST]")->handover[0] +
                            strlen("secret:SECRET_OF_THE_TEST="),
                        text);
    assert_int_equal(unsetenv("SECRET_OF_THE_TEST"), 0);
}

/* First the daemon's own variable, then what systemd gives it under the name. */
static void a_secret_is_a_variable_or_a_credential_of_systemd(void **state)
{
    static const char members[] = "secrets: [OTHER, SECRET_OF_THE_TEST]";
    struct home *h = *state;
    char path[128];

    (void)snprintf(path, sizeof path, "%s/OTHER", h->dir);
    write_text(path, "from systemd\n");
    assert_int_equal(unsetenv("CREDENTIALS_DIRECTORY"), 0);
    assert_int_equal(setenv("SECRET_OF_THE_TEST", "from the environment\n", 1), 0);
    assert_string_equal(joined(agent_with(h, members)->handover),
                        "secret:SECRET_OF_THE_TEST=from the environment\n");
    assert_string_equal(h->config->agents[0].held_back,
                        "agents.0.secrets: the daemon has no variable OTHER, and no "
                        "credential of that name");
    assert_int_equal(setenv("CREDENTIALS_DIRECTORY", h->dir, 1), 0);
    assert_string_equal(joined(agent_with(h, members)->handover),
                        "secret:OTHER=from systemd, "
                        "secret:SECRET_OF_THE_TEST=from the environment\n");
    assert_null(h->config->agents[0].held_back);
    assert_int_equal(unsetenv("SECRET_OF_THE_TEST"), 0);
    assert_int_equal(unsetenv("CREDENTIALS_DIRECTORY"), 0);
    assert_int_equal(unlink(path), 0);
}

#define RULE(f) cmocka_unit_test_setup_teardown(f, home_open, home_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(an_agent_is_kept_from_what_its_entry_names),
        RULE(what_is_not_available_here_is_a_mistake_of_the_file),
        RULE(a_secret_of_a_file_is_its_content_without_the_line_ends),
        RULE(an_agent_is_held_back_without_its_secret),
        RULE(a_secret_has_16383_bytes_at_most),
        RULE(a_secret_is_a_variable_or_a_credential_of_systemd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
