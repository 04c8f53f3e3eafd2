/* What the sweep does at its bounds, what it says, and what it does without files, plans or a
 * directory. */
#include <sys/resource.h>

#include "protocol/base/log.h"
#include "tests/unit/artifact/sweep_rig.h"

enum { OLDEST = 256, HEIRS = 256, BYTES_EVERY = 10000 };

#define GONE_PLAN "0190F3C2-7A1B-7C3D-9E4F-0123456789AB"
#define TWO "'plan':{'goal':'g','steps':[" STEP("a", "") "," STEP("b", "") "]}"

static char logged[4096];
static size_t logged_n;

static void keep_line(enum log_level level, const char *event, const char *text, void *self)
{
    (void)level, (void)self;
    if (strncmp(event, "artifacts.", 10) == 0 && sizeof logged - logged_n > 400) {
        logged_n += (size_t)snprintf(logged + logged_n, 400, "%s %.300s\n", event, text);
    }
}

static struct house *open_logged(uint64_t max_bytes)
{
    struct house *h = open_house(max_bytes);

    log_setup(LOG_INFO, keep_line, NULL);
    logged[logged_n = 0] = 0;
    return h;
}

static void close_logged(struct house *h)
{
    log_setup(LOG_ERR, NULL, NULL);
    close_house(h);
}

static void said(const char *line)
{
    assert_string_equal(logged, line);
    logged[logged_n = 0] = 0;
}

static uint32_t count_files(const char *dir)
{
    struct dirent **names = NULL;
    char path[256];
    int n;

    (void)snprintf(path, sizeof path, "%s/%s", root, dir);
    n = scandir(path, &names, NULL, NULL);
    for (int i = 0; i < n; i++) {
        free(names[i]);
    }
    free((void *)names);
    return n < 2 ? 0 : (uint32_t)n - 2;
}

/* Empty files, all the same one under other names. */
static void write_many(const char *dir, uint32_t n)
{
    char first[256];
    char name[256];

    write_file(dir, "x", "");
    (void)snprintf(first, sizeof first, "%s/%s/x", root, dir);
    for (uint32_t i = 1; i < n; i++) {
        (void)snprintf(name, sizeof name, "%s%u", first, i);
        assert_int_equal(link(first, name), 0);
    }
}

/* ---- what it says ---- */

static void a_removal_is_logged_with_its_reason(void **state)
{
    struct house *h = open_logged(4);
    const char *id;

    (void)state;
    write_file(GONE_PLAN, "x", "x");
    (void)slices(h);
    said("artifacts.removed plan=" GONE_PLAN " reason=unknown\n");
    write_file(GONE_PLAN, "x", "x");
    ends(GONE_PLAN);
    (void)slices(h);
    said("artifacts.removed plan=" GONE_PLAN " reason=deleted\n");
    id = ended_plan(h);
    ends(id);
    (void)slices(h);
    later(h, BYTES_EVERY);
    said(house_text(h, "artifacts.removed plan=%s reason=maxBytes\n", id));
    write_file(id, "a@1.1@g", "");
    later(h, KEEP_MS);
    said(house_text(h, "artifacts.removed plan=%s reason=keepMs\n", id));
    close_logged(h);
}

static void files_that_stay_for_a_read_that_failed_are_logged(void **state)
{
    struct house *h = open_logged(0);
    const char *id = ended_plan(h);

    (void)state;
    (void)slices(h);
    (void)snprintf(logged, sizeof logged, "%s/%s/" ARTIFACT_ENDED, root, id);
    assert_int_equal(chmod(logged, 0600), 0);
    logged[0] = 0;
    ends(id);
    house_fail_read(h, 2);
    sweep_cycle(sweep);
    house_fail_read(h, 0);
    assert_non_null(strstr(logged, "artifacts.unread plan="));
    assert_non_null(strstr(logged, id));
    assert_non_null(strstr(logged, "; its files stay\n"));
    close_logged(h);
}

/* ---- ends ---- */

static void the_end_of_a_plan_without_files_is_nothing(void **state)
{
    struct house *h = open_logged(1);
    const char *ended = house_submit(h, ONE);
    msec due;

    (void)state;
    house_done(h, "calc", "'result':{'text':'x'}");
    (void)slices(h);
    due = sweep_deadline(sweep);
    ends(GONE_PLAN);
    ends(ended);
    assert_int_equal(sweep_deadline(sweep), 0);
    assert_int_equal(slices(h), 2);
    assert_int_equal(sweep_deadline(sweep), due);
    said("");
    close_logged(h);
}

/* The earliest of what is due counts. */
static void the_next_pass_is_when_the_first_files_are_due(void **state)
{
    struct house *h = open_house(0);
    const char *first = ended_plan(h);
    const char *second;
    msec due;

    (void)state;
    (void)slices(h);
    due = sweep_deadline(sweep);
    assert_int_equal(due, h->now + KEEP_MS);
    later(h, 1000);
    second = ended_plan(h);
    ends(second);
    (void)slices(h);
    assert_int_equal(sweep_deadline(sweep), due);
    later(h, due - h->now);
    gone(first);
    assert_non_null(files(second));
    assert_int_equal(sweep_deadline(sweep), h->now + 1000);
    close_house(h);
}

static void files_that_stay_for_ever_are_due_never(void **state)
{
    struct house *h = open_house(0);
    const struct sweep_options opt = {.root = root, .keep_ms = MSEC_NEVER};
    const char *id = ended_plan(h);
    struct bt_error err;
    struct sweep *other = sweep;

    (void)state;
    assert_int_equal(sweep_new(&opt, h->engine, &sweep, &err), BT_OK);
    (void)slices(h);
    assert_int_equal(sweep_deadline(sweep), h->now + HOUR);
    ends(id);
    (void)slices(h);
    assert_int_equal(sweep_deadline(sweep), h->now + HOUR);
    later(h, 10 * HOUR);
    assert_non_null(files(id));
    free(other);
    close_house(h);
}

/* What cannot be removed keeps its directory. */
static void a_directory_among_the_files_stays_and_is_no_bytes(void **state)
{
    struct house *h = open_logged(5);
    const char *id = ended_plan(h);
    char path[256];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/%s/a", root, id);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)slices(h);
    assert_string_equal(files(id), ARTIFACT_ENDED " a a@1.1@g ");
    logged[logged_n = 0] = 0;
    later(h, KEEP_MS);
    assert_string_equal(files(id), "a ");
    said(""); /* it is there */
    close_logged(h);
}

/* ---- slices ---- */

/* Of an ended plan, a thousand at a time: those of no result, and later all. */
static void a_pass_goes_on_with_more_files_than_a_slice_removes(void **state)
{
    struct house *h = open_house(0);
    const char *id = ended_plan(h);

    (void)state;
    write_many(id, SLICE_FILES + 1);
    (void)slices(h);
    assert_string_equal(files(id), ARTIFACT_ENDED " a@1.1@g ");
    write_many(id, SLICE_FILES + 1);
    later(h, KEEP_MS);
    gone(id);
    close_house(h);
}

static void an_unknown_plan_goes_with_more_files_than_a_slice_removes(void **state)
{
    struct house *h = open_house(0);

    (void)state;
    write_many(GONE_PLAN, SLICE_FILES + 1);
    (void)slices(h);
    gone(GONE_PLAN);
    close_house(h);
}

/* Two of them open the directory of the plan; its list needs another one. */
static void without_descriptors_files_are_sorted_out_later(void **state)
{
    struct house *h = open_house(0);
    const char *id = ended_plan(h);
    const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct rlimit was;
    struct stat st;
    char path[256];

    (void)state;
    house_cycle_once(h);
    ends(id);
    assert_true(next >= 0 && close(next) == 0 && getrlimit(RLIMIT_NOFILE, &was) == 0);
    const struct rlimit few = {(rlim_t)next + 2, was.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    sweep_cycle(sweep);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_string_equal(files(id), ARTIFACT_ENDED " a@1.0@late a@1.1@g ");
    (void)snprintf(path, sizeof path, "%s/%s/" ARTIFACT_ENDED, root, id);
    assert_true(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
    (void)slices(h);
    assert_string_equal(files(id), ARTIFACT_ENDED " a@1.1@g ");
    close_house(h);
}

static void an_end_goes_on_with_more_files_than_a_slice_removes(void **state)
{
    struct house *h = open_house(0);
    const char *id = ended_plan(h);

    (void)state;
    house_cycle_once(h);
    write_many(id, SLICE_FILES);
    ends(id);
    sweep_cycle(sweep);
    assert_int_equal(count_files(id), 3); /* one of a thousand and one, the result's, the mark */
    assert_int_equal(sweep_deadline(sweep), 0);
    sweep_cycle(sweep);
    assert_string_equal(files(id), ARTIFACT_ENDED " a@1.1@g ");
    close_house(h);
}

static void room_is_made_with_more_files_than_a_slice_removes(void **state)
{
    struct house *h = open_house(4);
    const char *id;

    (void)state;
    (void)slices(h);
    id = ended_plan(h);
    ends(id);
    (void)slices(h);
    write_many(id, SLICE_FILES);
    later(h, BYTES_EVERY);
    gone(id);
    close_house(h);
}

/* ---- max_bytes ---- */

static void the_one_that_ended_first_goes_whenever_it_began(void **state)
{
    struct house *h = open_house(5);
    const char *ids[2];

    (void)state;
    house_join(h, "other", 1);
    ids[0] = house_submit(h, "'plan':{'goal':'g','steps':[{'stepId':'a','agentId':'other',"
                             "'skill':'do','task':'t'}]}");
    write_file(ids[0], "a@1.1@g", "hello");
    ids[1] = ended_plan(h);
    house_wait(h, 1000);
    house_done(h, "other",
               "'result':{'text':'x','artifacts':[{'name':'g','uri':'file://%s/%s/"
               "a@1.1@g','bytes':5,'sha256':'" HELLO_SUM "'}]}",
               root, ids[0]);
    (void)slices(h);
    gone(ids[1]);
    assert_non_null(files(ids[0]));
    close_house(h);
}

static void more_plans_than_a_pass_remembers_make_room_in_the_next_one(void **state)
{
    struct house *h = open_house(0);
    const char *ids[OLDEST + 2];

    (void)state;
    for (int i = 0; i < OLDEST + 2; i++) {
        ids[i] = ended_plan(h);
        if (i >= OLDEST) { /* the others ended at the same time */
            h->now++, h->wall++;
        }
    }
    free(sweep);
    open_sweep(h, 5);
    (void)slices(h);
    for (int i = 0; i < OLDEST + 1; i++) {
        gone(ids[i]);
    }
    assert_non_null(files(ids[OLDEST + 1]));
    close_house(h);
}

/* ---- its directory ---- */

static void without_a_root_nothing_is_done(void **state)
{
    struct house *h = open_house(0);
    const struct sweep_options opt = {.root = NULL, .keep_ms = KEEP_MS};
    struct sweep *with_root = sweep;
    struct bt_error err;

    (void)state;
    assert_int_equal(sweep_new(&opt, h->engine, &sweep, &err), BT_OK);
    ends(GONE_PLAN);
    assert_true(sweep_deadline(sweep) == MSEC_NEVER);
    sweep_cycle(sweep);
    assert_true(sweep_deadline(sweep) == MSEC_NEVER);
    free(with_root);
    close_house(h);
}

static void the_root_is_made_for_its_owner_alone(void **state)
{
    struct house *h = open_house(0);
    struct sweep *first = sweep;
    struct bt_error err;
    char made[80];
    struct stat st;

    (void)state;
    (void)snprintf(made, sizeof made, "%s/made", root);
    const struct sweep_options opt = {.root = made};
    assert_int_equal(sweep_new(&opt, h->engine, &sweep, &err), BT_OK);
    assert_true(stat(made, &st) == 0 && (st.st_mode & 07777) == 0700);
    free(sweep);
    (void)snprintf(made, sizeof made, "%s/none/made", root);
    assert_int_equal(sweep_new(&opt, h->engine, &sweep, &err), BT_NOT_FOUND);
    assert_non_null(strstr(err.msg, "making the directory '"));
    assert_non_null(strstr(err.msg, made));
    sweep = first;
    close_house(h);
}

/* ---- who reads files ---- */

/* The plans that took results over: so many, the last one is this. */
static uint64_t heir;
static uint32_t heirs_n;
static enum bt_code heirs_code;

static enum bt_code say_heirs(struct journal *j, uint64_t ix, uint64_t *ret, uint32_t max,
                              uint32_t *ret_n, struct bt_error *err)
{
    (void)j, (void)ix;
    assert_true(heirs_n <= max);
    for (uint32_t i = 0; i < heirs_n; i++) {
        ret[i] = i + 1 == heirs_n ? heir : UINT64_MAX;
    }
    *ret_n = heirs_n;
    return heirs_code == BT_OK ? BT_OK : err_set(err, heirs_code, "it fails");
}

static uint64_t ix_of(struct house *h, const char *id, struct uuid *ret)
{
    struct journal_plan plan;
    struct bt_error err;

    assert_true(uuid_parse(str_from(id), ret));
    assert_int_equal(journal_plan_by_id(engine_journal(h->engine), *ret, &plan, &err), BT_OK);
    return plan.ix;
}

static bool is_read(struct house *h, const char *id)
{
    struct uuid uuid;
    const uint64_t ix = ix_of(h, id, &uuid);

    return sweep_is_read(sweep, uuid, ix);
}

static void files_are_read_while_a_plan_is_open_that_took_the_results_over(void **state)
{
    struct house *h = open_house(0);
    const char *id = ended_plan(h);
    const char *retry;
    struct uuid uuid;

    (void)state;
    h->ops.plan_heirs = say_heirs;
    heirs_code = BT_OK;
    heirs_n = 0;
    retry = house_submit(h, ONE);
    heir = ix_of(h, retry, &uuid);
    (void)house_submit(h, ONE);   /* another open one */
    assert_false(is_read(h, id)); /* nobody took them over */
    for (heirs_n = 1; heirs_n <= HEIRS; heirs_n += HEIRS - 1) {
        assert_true(is_read(h, id));
    }
    heirs_n = 1;
    heirs_code = BT_IO;
    assert_false(is_read(h, id)); /* not known */
    heirs_code = BT_OK;
    assert_false(is_read(h, retry)); /* it has no files */
    house_done(h, "calc", "'result':{'text':'x'}");
    assert_false(is_read(h, id));
    close_house(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_removal_is_logged_with_its_reason),
        cmocka_unit_test(files_that_stay_for_a_read_that_failed_are_logged),
        cmocka_unit_test(the_end_of_a_plan_without_files_is_nothing),
        cmocka_unit_test(the_next_pass_is_when_the_first_files_are_due),
        cmocka_unit_test(files_that_stay_for_ever_are_due_never),
        cmocka_unit_test(a_directory_among_the_files_stays_and_is_no_bytes),
        cmocka_unit_test(a_pass_goes_on_with_more_files_than_a_slice_removes),
        cmocka_unit_test(an_unknown_plan_goes_with_more_files_than_a_slice_removes),
        cmocka_unit_test(without_descriptors_files_are_sorted_out_later),
        cmocka_unit_test(an_end_goes_on_with_more_files_than_a_slice_removes),
        cmocka_unit_test(room_is_made_with_more_files_than_a_slice_removes),
        cmocka_unit_test(the_one_that_ended_first_goes_whenever_it_began),
        cmocka_unit_test(more_plans_than_a_pass_remembers_make_room_in_the_next_one),
        cmocka_unit_test(without_a_root_nothing_is_done),
        cmocka_unit_test(the_root_is_made_for_its_owner_alone),
        cmocka_unit_test(files_are_read_while_a_plan_is_open_that_took_the_results_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
