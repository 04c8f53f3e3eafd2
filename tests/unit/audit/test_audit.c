/* The audit: what is in a line, how much of it there may be, and what a crash leaves. */
#include "supervisor/audit/audit.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/cmocka.h"

enum { PATH = 256, FILE_BYTES = 1024 * 1024 };

/* The linker puts it in the place of fdatasync. */
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
static uint32_t syncs;

int __wrap_fdatasync(int fd)
{
    syncs++;
    return __real_fdatasync(fd);
}

static char state[PATH / 2];

static int open_state(void **unused)
{
    (void)unused;
    (void)snprintf(state, sizeof state, "/tmp/baton-audit-XXXXXX");
    return mkdtemp(state) == NULL;
}

static int remove_state(void **unused)
{
    struct dirent **names = NULL;
    char path[PATH + 256];
    int n;

    (void)unused;
    (void)snprintf(path, sizeof path, "%s/audit", state);
    (void)unlink(path);
    n = scandir(path, &names, NULL, NULL);
    for (int i = 0; i < n; i++) {
        (void)snprintf(path, sizeof path, "%s/audit/%s", state, names[i]->d_name);
        (void)unlink(path);
        free(names[i]);
    }
    free((void *)names);
    (void)snprintf(path, sizeof path, "%s/audit", state);
    (void)rmdir(path);
    return rmdir(state);
}

static char *read_all(void)
{
    char path[PATH];
    char *text = calloc(1, FILE_BYTES);
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/audit/audit.jsonl", state);
    f = fopen(path, "re");
    assert_non_null(f);
    assert_non_null(text);
    assert_true(fread(text, 1, FILE_BYTES - 1, f) > 0);
    (void)fclose(f);
    return text;
}

static uint32_t count(const char *text, const char *what)
{
    uint32_t n = 0;

    for (const char *at = text; (at = strstr(at, what)) != NULL; at++) {
        n++;
    }
    return n;
}

static struct audit *opened(void)
{
    struct audit *a;
    struct bt_error err;

    assert_int_equal(audit_open(state, 1700000000000, &a, &err), BT_OK);
    return a;
}

static struct audit_entry refusal(enum audit_kind kind)
{
    return (struct audit_entry){.kind = kind,
                                .type = STR_LIT("plan.get"),
                                .outcome = "UNAUTHORIZED",
                                .text = STR_LIT("bad \xff\n text")};
}

static void the_longest_texts_are_in_a_line_with_escapes(void **unused)
{
    char text[512];
    struct audit *a = opened();
    char *said;
    const struct audit_entry long_one = {.kind = AUDIT_DECISION,
                                         .type = {text, sizeof text},
                                         .about = {text, sizeof text},
                                         .outcome = "OK",
                                         .text = {text, sizeof text}};

    (void)unused;
    memset(text, 0x7f, sizeof text); /* six bytes for one */
    memcpy(text, "\xe2\x80\xae", 3);
    audit_add(a, 1000, 1700000000000, &long_one);
    audit_close(a);
    said = read_all();
    assert_int_equal(count(said, "\\u202e"), 3);
    assert_int_equal(count(said, "\\u007f"), 3 * (sizeof text - 3));
    assert_null(strpbrk(said, "\x7f\xe2"));
    assert_int_equal(count(said, "\n"), 1);
    free(said);
}

static void strangers_do_not_fill_the_disk(void **unused)
{
    struct audit *a = opened();
    const struct audit_entry stranger = refusal(AUDIT_HANDSHAKE);
    const struct audit_entry decision = refusal(AUDIT_DECISION);
    struct stat st;
    char path[PATH];
    char *text;

    (void)unused;
    for (int i = 0; i < 10000; i++) {
        audit_add(a, 1000, 1700000000000, &stranger);
    }
    audit_add(a, 1000, 1700000000000, &decision); /* never left out */
    audit_sync(a, 1000, 1700000000000);
    text = read_all();
    assert_int_equal(count(text, "\"handshake\""), AUDIT_REFUSALS);
    assert_int_equal(count(text, "\"decision\""), 1);
    assert_int_equal(count(text, "\n"), AUDIT_REFUSALS + 1);
    free(text);
    audit_sync(a, 2000, 1700000001000); /* a second later: how many they were */
    audit_add(a, 2000, 1700000001000, &stranger);
    audit_add(a, 2000, 1700000001000, &stranger);
    text = read_all();
    assert_non_null(strstr(text, "\"refusals\":9950"));
    assert_int_equal(count(text, "\"handshake\""), AUDIT_REFUSALS + 1);
    free(text);
    audit_close(a);
    (void)snprintf(path, sizeof path, "%s/audit/audit.jsonl", state);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void a_line_that_was_cut_off_does_not_swallow_the_next_one(void **unused)
{
    const struct audit_entry decision = refusal(AUDIT_DECISION);
    char path[PATH];
    struct audit *a;
    char *text;
    FILE *f;

    (void)unused;
    audit_close(opened());
    (void)snprintf(path, sizeof path, "%s/audit/audit.jsonl", state);
    f = fopen(path, "ae");
    assert_non_null(f);
    (void)fputs("{\"at\":\"2026", f);
    (void)fclose(f);
    a = opened();
    audit_add(a, 1000, 1700000000000, &decision);
    audit_close(a);
    text = read_all();
    assert_non_null(strstr(text, "{\"at\":\"2026\n{\"at\":\"2023-11-14T22:13:20.000Z\""));
    assert_non_null(strstr(text, "system/audit"));
    free(text);
}

/* The disk is full for a while: as a limit of the size of files, which counts from now on. */
static void a_full_disk_costs_lines_and_how_many_is_written_when_there_is_room(void **unused)
{
    const struct audit_entry decision = refusal(AUDIT_DECISION);
    struct audit *a = opened();
    struct rlimit before;
    struct rlimit full;
    char *text;

    (void)unused;
    audit_add(a, 1000, 1700000000000, &decision);
    audit_sync(a, 1000, 1700000000000);
    text = read_all();
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    full = (struct rlimit){strlen(text), before.rlim_max};
    free(text);
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
    audit_add(a, 1000, 1700000000000, &decision); /* it returns: the request goes on */
    audit_add(a, 1000, 1700000000000, &decision);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, SIG_DFL);
    audit_sync(a, 1000, 1700000000000);
    text = read_all();
    assert_int_equal(count(text, "\"decision\""), 1);
    assert_int_equal(count(text, "\"suppressed\""), 1);
    assert_non_null(strstr(text, "\"lost\":2"));
    free(text);
    audit_close(a);
}

static void touch(const char *name, off_t bytes)
{
    char path[PATH];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/audit/%s", state, name);
    f = fopen(path, "ae");
    assert_non_null(f);
    (void)fclose(f);
    assert_int_equal(truncate(path, bytes), 0);
}

static bool is_there(const char *name)
{
    char path[PATH];

    (void)snprintf(path, sizeof path, "%s/audit/%s", state, name);
    return access(path, F_OK) == 0;
}

static void a_file_is_put_aside_when_it_is_full(void **unused)
{
    const struct audit_entry decision = refusal(AUDIT_DECISION);
    struct audit *a;
    char *text;

    (void)unused;
    audit_close(opened());
    touch("audit.jsonl", AUDIT_FILE_BYTES - 1); /* and the end of its line: just full */
    a = opened();
    audit_add(a, 1000, 1700000000001, &decision);
    assert_false(is_there("audit-1700000000001.jsonl"));
    audit_add(a, 1000, 1700000000002, &decision);
    assert_true(is_there("audit-1700000000002.jsonl"));
    audit_add(a, 1000, 1700000000003, &decision);
    assert_false(is_there("audit-1700000000003.jsonl"));
    text = read_all();
    assert_int_equal(count(text, "\n"), 2);
    free(text);
    audit_close(a);
}

static void files_put_aside_stay_for_their_days_and_others_for_ever(void **unused)
{
    const msec days = (msec)AUDIT_KEEP_DAYS * 86400000;
    char at_the_day[64];
    char before[64];

    (void)unused;
    audit_close(opened());
    (void)snprintf(at_the_day, sizeof at_the_day, "audit-%013llu.jsonl",
                   (unsigned long long)(1700000000000 - days));
    (void)snprintf(before, sizeof before, "audit-%013llu.jsonl",
                   (unsigned long long)(1700000000000 - days - 1));
    touch(at_the_day, 1);
    touch(before, 1);
    touch("audit-0000000000001.jsonl.gz", 1); /* somebody packed it */
    touch("other-0000000000001.jsonl", 1);
    touch("audit-x.jsonl", 1);
    audit_close(opened());
    assert_true(is_there(at_the_day));
    assert_false(is_there(before));
    assert_true(is_there("audit-0000000000001.jsonl.gz"));
    assert_true(is_there("other-0000000000001.jsonl"));
    assert_true(is_there("audit-x.jsonl"));
}

static void so_many_files_put_aside_stay_the_newest_ones(void **unused)
{
    char name[64];

    (void)unused;
    audit_close(opened());
    for (int i = 0; i <= AUDIT_FILES; i++) {
        (void)snprintf(name, sizeof name, "audit-%013d.jsonl", 1600000000 + i);
        touch(name, 1);
    }
    for (int i = 0; i <= AUDIT_FILES; i++) { /* of yesterday */
        (void)snprintf(name, sizeof name, "audit-%013llu.jsonl", 1699900000000ULL + (unsigned)i);
        touch(name, 1);
    }
    audit_close(opened());
    assert_false(is_there("audit-0001600000000.jsonl"));
    assert_false(is_there("audit-1699900000000.jsonl"));
    for (int i = 1; i <= AUDIT_FILES; i++) {
        (void)snprintf(name, sizeof name, "audit-%013llu.jsonl", 1699900000000ULL + (unsigned)i);
        assert_true(is_there(name));
    }
}

static void an_audit_that_cannot_be_opened_is_none(void **unused)
{
    static char longest[4200];
    struct audit *a = NULL;
    struct bt_error err;
    char path[PATH];
    FILE *f;

    (void)unused;
    (void)snprintf(path, sizeof path, "%s/audit", state);
    f = fopen(path, "we"); /* a file in the place of the directory */
    assert_non_null(f);
    (void)fclose(f);
    assert_int_equal(audit_open(state, 1700000000000, &a, &err), BT_IO);
    assert_null(a);
    (void)snprintf(path, sizeof path, "%s/none", state);
    assert_int_equal(audit_open(path, 1700000000000, &a, &err), BT_IO);
    assert_non_null(strstr(err.msg, "cannot make"));
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    assert_int_equal(audit_open(longest, 1700000000000, &a, &err), BT_INVALID);
    assert_null(a);
    audit_sync(a, 1000, 1700000000000); /* none takes everything */
    audit_close(a);
}

static void a_line_is_synced_once(void **unused)
{
    const struct audit_entry decision = refusal(AUDIT_DECISION);
    struct audit *a = opened();

    (void)unused;
    syncs = 0;
    audit_sync(a, 1000, 1700000000000); /* there is nothing new */
    assert_int_equal(syncs, 0);
    audit_add(a, 1000, 1700000000000, &decision);
    assert_int_equal(syncs, 0);
    audit_sync(a, 1000, 1700000000000);
    assert_int_equal(syncs, 1);
    audit_sync(a, 1000, 1700000000000);
    assert_int_equal(syncs, 1);
    audit_close(a);
}

static void each_kind_has_a_name(void **unused)
{
    (void)unused;
    assert_string_equal(audit_kind_name(AUDIT_HANDSHAKE), "handshake");
    assert_string_equal(audit_kind_name(AUDIT_CREDENTIAL), "credential");
    assert_string_equal(audit_kind_name(AUDIT_KIND_COUNT), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_has_a_name),
        cmocka_unit_test_setup_teardown(a_line_is_synced_once, open_state, remove_state),
        cmocka_unit_test_setup_teardown(a_file_is_put_aside_when_it_is_full, open_state,
                                        remove_state),
        cmocka_unit_test_setup_teardown(files_put_aside_stay_for_their_days_and_others_for_ever,
                                        open_state, remove_state),
        cmocka_unit_test_setup_teardown(so_many_files_put_aside_stay_the_newest_ones, open_state,
                                        remove_state),
        cmocka_unit_test_setup_teardown(an_audit_that_cannot_be_opened_is_none, open_state,
                                        remove_state),
        cmocka_unit_test_setup_teardown(the_longest_texts_are_in_a_line_with_escapes, open_state,
                                        remove_state),
        cmocka_unit_test_setup_teardown(strangers_do_not_fill_the_disk, open_state, remove_state),
        cmocka_unit_test_setup_teardown(
            a_full_disk_costs_lines_and_how_many_is_written_when_there_is_room, open_state,
            remove_state),
        cmocka_unit_test_setup_teardown(a_line_that_was_cut_off_does_not_swallow_the_next_one,
                                        open_state, remove_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
