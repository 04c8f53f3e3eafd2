/* The credentials of the state directory: what changes in it counts at once, and each change is in
 * the audit. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/log.h"
#include "supervisor/audit/audit.h"
#include "supervisor/auth/processes.h"
#include "supervisor/auth/store.h"
#include "tests/support/cmocka.h"

enum { NOW = 1000000, LOOK_MS = 1000 };

#define WALL UINT64_C(1700000000000)

static char dir[64];
static struct sessions *sessions;
static struct audit *audit;
static struct auth_store *store;

/* What is logged, a line each: "auth.credentials known=1 sessions_ended=0". */
static char logged[65536];
static size_t logged_n;

static void keep_line(enum log_level level, const char *event, const char *text, void *self)
{
    (void)level, (void)self;
    if (sizeof logged - logged_n > 600) {
        logged_n += (size_t)snprintf(logged + logged_n, 600, "%s %.500s\n", event, text);
    }
}

static void forget_lines(void)
{
    logged[logged_n = 0] = 0;
}

static void open_store(void)
{
    struct bt_error err;

    assert_int_equal(sessions_new(&sessions, &err), BT_OK);
    assert_int_equal(audit_open(dir, WALL, &audit, &err), BT_OK);
    assert_int_equal(
        auth_store_new(dir, sessions, audit, (struct session_time){NOW, WALL}, &store, &err),
        BT_OK);
}

static void close_store(void)
{
    auth_store_free(store);
    sessions_free(sessions);
    audit_close(audit);
}

static int set_up(void **state)
{
    (void)state;
    log_setup(LOG_INFO, keep_line, NULL);
    forget_lines();
    (void)snprintf(dir, sizeof dir, "/tmp/baton-store-XXXXXX");
    assert_non_null(mkdtemp(dir));
    open_store();
    return 0;
}

static int tear_down(void **state)
{
    int status;
    pid_t pid;

    (void)state;
    close_store();
    pid = fork();
    if (pid == 0) {
        (void)execlp("rm", "rm", "-rf", dir, (char *)NULL);
        _exit(1);
    }
    return waitpid(pid, &status, 0) == pid ? 0 : -1;
}

static struct credential credential(const char *id, int key)
{
    struct credential c = {.who = {.role = ROLE_SUBMITTER}, .created = WALL};

    (void)snprintf(c.who.id, sizeof c.who.id, "%s", id);
    memset(c.key, key, sizeof c.key);
    return c;
}

static void put(const struct credential *c)
{
    struct bt_error err;

    if (credential_store(dir, c, true, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
}

static const char *path(const char *name)
{
    static char text[256];

    (void)snprintf(text, sizeof text, "%s/" CREDENTIALS_DIR "%s%s", dir, name[0] != 0 ? "/" : "",
                   name);
    return text;
}

/* At this very moment: by the kernel's notice alone. */
static void refresh(void)
{
    auth_store_refresh(store, (struct session_time){NOW, WALL}, false);
}

static bool is_known(const char *id)
{
    return sessions_identity(sessions, str_from(id), WALL) != NULL;
}

/* What the audit has since the last call. */
static const char *told(void)
{
    static char text[65536];
    static char name[128];
    FILE *f;
    size_t n;

    audit_sync(audit, NOW, WALL);
    (void)snprintf(name, sizeof name, "%s/audit/audit.jsonl", dir);
    f = fopen(name, "re");
    assert_non_null(f);
    n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    assert_int_equal(fclose(f), 0);
    assert_int_equal(truncate(name, 0), 0);
    return text;
}

static void says(const char *all, const char *words)
{
    if (strstr(all, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", all, words);
    }
}

static void every_change_of_a_file_counts_at_once(void **state)
{
    struct credential c = credential("ann", 1);
    char away[128];
    int fd;

    (void)state;
    assert_false(is_known("ann"));
    put(&c); /* renamed to its place */
    refresh();
    assert_true(is_known("ann"));
    (void)snprintf(away, sizeof away, "%s/away", dir);
    assert_int_equal(rename(path("ann"), away), 0);
    refresh();
    assert_false(is_known("ann"));
    assert_int_equal(rename(away, path("ann")), 0);
    refresh();
    assert_true(is_known("ann"));
    assert_int_equal(chmod(path("ann"), 0644), 0); /* others may read it */
    refresh();
    assert_false(is_known("ann"));
    assert_int_equal(chmod(path("ann"), 0600), 0);
    refresh();
    assert_true(is_known("ann"));
    fd = open(path("ann"), O_WRONLY | O_TRUNC | O_CLOEXEC); /* edited where it is */
    assert_true(fd >= 0 && write(fd, "{}", 2) == 2 && close(fd) == 0);
    refresh();
    assert_false(is_known("ann"));
    put(&c);
    refresh();
    assert_int_equal(unlink(path("ann")), 0);
    refresh();
    assert_false(is_known("ann"));
}

static void another_directory_in_its_place_is_read(void **state)
{
    const struct credential c = credential("ann", 1);
    char away[128];

    (void)state;
    put(&c);
    refresh();
    (void)snprintf(away, sizeof away, "%s/away", dir);
    assert_int_equal(rename(path(""), away), 0);
    refresh();
    assert_false(is_known("ann"));
    assert_int_equal(rename(away, path("")), 0);
    auth_store_refresh(store, (struct session_time){NOW, WALL}, true);
    assert_true(is_known("ann"));
    put(&(struct credential){.who = {.id = "bob", .role = ROLE_ADMIN}, .key = {2}});
    refresh(); /* it is watched again */
    assert_true(is_known("bob"));
}

/* The notices are taken away by the test. */
static void without_a_notice_the_directory_is_looked_at_once_a_second(void **state)
{
    char bytes[4096];
    char away[128];
    struct credential c = credential("ann", 1);

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct session_time time = {NOW + (msec)i * 10 * LOOK_MS, WALL};
        auth_store_refresh(store, time, true);
        (void)snprintf(c.who.id, sizeof c.who.id, "c%d", i);
        put(&c);
        while (read(auth_store_fd(store), bytes, sizeof bytes) > 0) {
            /* of another directory, say, which tells nothing */
        }
        time.now += LOOK_MS - 1;
        auth_store_refresh(store, time, false);
        assert_false(is_known(c.who.id));
        time.now += i == 0 ? 1 : 0;
        auth_store_refresh(store, time, i == 1);
        assert_true(is_known(c.who.id));
    }
    (void)snprintf(away, sizeof away, "%s/away", dir);
    assert_int_equal(rename(path(""), away), 0);
    while (read(auth_store_fd(store), bytes, sizeof bytes) > 0) {
        /* nor when there is none any more */
    }
    auth_store_refresh(store, (struct session_time){NOW, WALL}, true);
    assert_false(is_known("c0"));
}

static void the_audit_has_who_is_known_at_the_start(void **state)
{
    struct credential c = credential("ann", 1);
    const char *all;

    (void)state;
    c.who.sees_n = 2;
    (void)snprintf(c.who.sees[0], sizeof c.who.sees[0], "bob");
    (void)snprintf(c.who.sees[1], sizeof c.who.sees[1], "ci-*");
    put(&c);
    c = credential("bob", 2);
    c.revoked = WALL;
    put(&c);
    c = credential("cy", 3);
    c.expires = WALL; /* from now on */
    c.who.role = ROLE_OBSERVER;
    put(&c);
    close_store();
    (void)unlink(path("../audit/audit.jsonl"));
    open_store();
    all = told();
    says(all, "\"kind\":\"credential\"");
    says(all, "\"type\":\"credentials\"");
    says(all, "\"outcome\":\"OK\"");
    says(all, "\"ann submitter sees bob ci-*, bob submitter (revoked), cy observer (expired)\"");
}

static void a_store_gives_its_descriptors_back(void **state)
{
    const int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int after;

    (void)state;
    assert_true(before >= 0);
    (void)close(before);
    close_store();
    after = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(after < before);
    (void)close(after);
    open_store();
    says(told(), "\"text\":\"\"");
}

static void the_audit_has_each_change_and_no_more(void **state)
{
    struct credential ann = credential("ann", 1);
    const struct credential bob = credential("bob", 2);
    const char *all;

    (void)state;
    (void)told();
    put(&ann);
    refresh();
    says(told(), "\"added: submitter\"");
    put(&bob);
    refresh();
    all = told();
    says(all, "\"about\":\"bob\"");
    assert_null(strstr(all, "\"about\":\"ann\"")); /* it is as it was */
    ann.who.role = ROLE_OBSERVER;
    put(&ann);
    refresh();
    all = told();
    says(all, "\"changed: observer\"");
    assert_null(strstr(all, "bob"));
    memset(ann.key, 9, sizeof ann.key);
    put(&ann);
    refresh();
    says(told(), "\"changed, another key: observer\"");
    assert_int_equal(unlink(path("ann")), 0);
    refresh();
    all = told();
    says(all, "\"about\":\"ann\"");
    says(all, "removed, or no longer to be read");
    assert_null(strstr(all, "bob"));
}

/* A line is cut, whatever they are called. */
static void a_list_of_many_fits_a_line(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        struct credential c = credential("", i + 1);
        memset(c.who.id, 'x', LIMIT_ID_BYTES);
        c.who.id[0] = (char)('A' + i % 26);
        c.who.id[1] = (char)('a' + i / 26);
        put(&c);
    }
    close_store();
    open_store();
    says(told(), "Aaxxx");
}

static void as_many_credentials_as_there_are_files_are_known(void **state)
{
    char id[16];

    (void)state;
    for (int i = 0; i < 40; i++) {
        (void)snprintf(id, sizeof id, "c%d", i);
        const struct credential c = credential(id, i + 1);
        put(&c);
    }
    forget_lines();
    refresh();
    assert_string_equal(logged, "auth.credentials known=40 sessions_ended=0\n");
    for (int i = 0; i < 40; i++) {
        (void)snprintf(id, sizeof id, "c%d", i);
        assert_true(is_known(id));
    }
}

static void a_file_that_is_refused_is_logged_and_the_others_are_known(void **state)
{
    const struct credential ann = credential("ann", 1);
    const struct credential bob = credential("bob", 2);
    int fd;

    (void)state;
    put(&ann);
    put(&bob);
    refresh();
    forget_lines();
    fd = open(path("ann"), O_WRONLY | O_TRUNC | O_CLOEXEC);
    assert_true(fd >= 0 && write(fd, "{}", 2) == 2 && close(fd) == 0);
    refresh();
    says(logged, "auth.credential the credential ann is refused: ");
    says(logged, "known=1 sessions_ended=0");
    assert_true(is_known("bob"));
}

/* A directory that cannot be read opens nothing. */
static void without_its_directory_nobody_is_known(void **state)
{
    const struct credential c = credential("ann", 1);
    FILE *f;

    (void)state;
    put(&c);
    refresh();
    assert_true(is_known("ann"));
    assert_true(unlink(path("ann")) == 0 && rmdir(path("")) == 0);
    f = fopen(path(""), "we");
    assert_true(f != NULL && fclose(f) == 0);
    forget_lines();
    refresh();
    assert_false(is_known("ann"));
    says(logged, "known=0");
    close_store();
    forget_lines();
    open_store(); /* and the daemon starts with it */
    assert_false(is_known("ann"));
    says(logged, "auth.credentials ");
    assert_int_equal(unlink(path("")), 0);
    close_store();
    open_store();
    put(&c);
    refresh();
    assert_true(is_known("ann"));
}

static void the_directory_is_made_for_its_owner_alone(void **state)
{
    struct stat st;

    (void)state;
    assert_int_equal(stat(path(""), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
}

static void a_directory_that_is_as_it_was_is_not_read_again(void **state)
{
    const struct credential c = credential("ann", 1);

    (void)state;
    put(&c);
    refresh();
    auth_store_refresh(store, (struct session_time){NOW, WALL}, true);
    forget_lines();
    auth_store_refresh(store, (struct session_time){NOW, WALL}, true);
    auth_store_refresh(store, (struct session_time){NOW + 10 * LOOK_MS, WALL}, false);
    assert_string_equal(logged, "");
}

static void processes_are_known_beside_the_files(void **state)
{
    struct credential *of = calloc(2, sizeof *of);
    const struct credential c = credential("ann", 1);

    (void)state;
    assert_non_null(of);
    put(&c);
    refresh();
    of[0] = credential("process:1", 2);
    of[1] = credential("process:2", 3);
    auth_store_processes(store, of, 2, (struct session_time){NOW, WALL});
    assert_true(is_known("ann") && is_known("process:1") && is_known("process:2"));
    assert_int_equal(unlink(path("ann")), 0);
    refresh();
    assert_true(!is_known("ann") && is_known("process:2"));
    of = calloc(1, sizeof *of);
    assert_non_null(of);
    of[0] = credential("process:2", 3);
    auth_store_processes(store, of, 1, (struct session_time){NOW, WALL});
    assert_true(!is_known("process:1") && is_known("process:2"));
    auth_store_processes(store, NULL, 0, (struct session_time){NOW, WALL});
    assert_false(is_known("process:1") || is_known("process:2"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_change_of_a_file_counts_at_once),
        TEST(another_directory_in_its_place_is_read),
        TEST(without_a_notice_the_directory_is_looked_at_once_a_second),
        TEST(the_audit_has_who_is_known_at_the_start),
        TEST(a_store_gives_its_descriptors_back),
        TEST(the_audit_has_each_change_and_no_more),
        TEST(a_list_of_many_fits_a_line),
        TEST(as_many_credentials_as_there_are_files_are_known),
        TEST(a_file_that_is_refused_is_logged_and_the_others_are_known),
        TEST(without_its_directory_nobody_is_known),
        TEST(the_directory_is_made_for_its_owner_alone),
        TEST(a_directory_that_is_as_it_was_is_not_read_again),
        TEST(processes_are_known_beside_the_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
