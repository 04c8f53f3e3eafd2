/* The command line of baton-bridge-nats: what is taken, and what is refused with the reason. */
#include <string.h>

#include "supervisor/bridge/options.h"
#include "tests/support/cmocka.h"

enum { ARGS = 40 };

static struct options opt;
static struct bt_error err;

/* The words of one line, which a blank divides; valid until the next call. */
static enum bt_code parse(const char *line)
{
    static char text[2048];
    char *argv[ARGS + 1] = {(char[]){"bridge"}};
    int argc = 1;

    assert_true(strlen(line) < sizeof text);
    memcpy(text, line, strlen(line) + 1);
    for (char *word = text; *word != 0;) {
        char *end = word + strcspn(word, " ");
        assert_true(argc < ARGS);
        argv[argc++] = strncmp(word, "''", 2) == 0 ? word + 2 : word;
        word = end + (*end == ' ');
        *end = 0;
    }
    memset(&opt, 0, sizeof opt);
    return options_parse(argc, argv, &opt, &err);
}

static void is_taken(const char *line)
{
    if (parse(line) != BT_OK) {
        fail_msg("%s: %s", line, err.msg);
    }
}

static void is_refused(const char *line, const char *says)
{
    assert_int_not_equal(parse(line), BT_OK);
    if (strstr(err.msg, says) == NULL) {
        fail_msg("%s: \"%s\" does not say \"%s\"", line, err.msg, says);
    }
}

static void without_options_it_is_the_server_of_this_host(void **state)
{
    (void)state;
    is_taken("");
    assert_int_equal(opt.servers_n, 1);
    assert_string_equal(opt.servers[0], "nats://127.0.0.1:4222");
    assert_string_equal(opt.name, "main");
    assert_int_equal(opt.replicas, 1);
    assert_true(opt.shards == 0 && !opt.after_given && !opt.tls && !opt.once && !opt.status &&
                !opt.help && !opt.version);
    assert_true(opt.state == NULL && opt.creds == NULL && opt.nkey == NULL && opt.user == NULL &&
                opt.password_file == NULL && opt.token_file == NULL && opt.tls_ca == NULL &&
                opt.tls_cert == NULL && opt.tls_key == NULL);
}

static void each_option_sets_its_own(void **state)
{
    (void)state;
    is_taken("--state S --server nats://h --name N --shard 3/4 --user U --password-file P "
             "--tls-ca A --tls-cert C --tls-key K --replicas 5 --after 7 --once --status "
             "--version --help");
    assert_string_equal(opt.state, "S");
    assert_string_equal(opt.servers[0], "nats://h");
    assert_string_equal(opt.name, "N");
    assert_true(opt.shard == 3 && opt.shards == 4);
    assert_string_equal(opt.user, "U");
    assert_string_equal(opt.password_file, "P");
    assert_string_equal(opt.tls_ca, "A");
    assert_string_equal(opt.tls_cert, "C");
    assert_string_equal(opt.tls_key, "K");
    assert_true(opt.replicas == 5 && opt.after_given && opt.after == 7);
    assert_true(opt.once && opt.status && opt.version && opt.help);
    is_taken("--creds F");
    assert_string_equal(opt.creds, "F");
    is_taken("--nkey F");
    assert_string_equal(opt.nkey, "F");
    is_taken("--token-file F -h");
    assert_string_equal(opt.token_file, "F");
    assert_true(opt.help);
}

static void tls_is_asked_for_by_each_word_of_it(void **state)
{
    static const char *const lines[] = {"--tls", "--server tls://h", "--tls-ca A",
                                        "--tls-cert C --tls-key K",
                                        "--server tls://h --server nats://h"};

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        is_taken(lines[i]);
        assert_true(opt.tls);
    }
    is_taken("--server nats://tls");
    assert_false(opt.tls);
}

static void a_server_is_a_url_of_a_host_and_perhaps_a_port(void **state)
{
    static const char *const good[] = {"nats://h", "tls://h:1", "nats://1.2.3.4:65535",
                                       "nats://[::1]", "nats://[::1]:4222"};
    static const char *const bad[] = {"''",
                                      "h",
                                      "http://h",
                                      "nats:/h",
                                      "nats://",
                                      "nats://:1",
                                      "nats://h:",
                                      "nats://h:0",
                                      "nats://h:65536",
                                      "nats://h:1x",
                                      "nats://h:-1",
                                      "nats://h:+1",
                                      "nats://h/x",
                                      "nats://a,b",
                                      "nats://h?x",
                                      "nats://h#x",
                                      "nats://[::1]x",
                                      "nats://[::1",
                                      "nats://[::1]:",
                                      "nats://[::1]:0"};
    char line[600] = "";

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        (void)snprintf(line, sizeof line, "--server %s", good[i]);
        is_taken(line);
        assert_int_equal(opt.servers_n, 1);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        (void)snprintf(line, sizeof line, "--server %s", bad[i]);
        is_refused(line, "--server: expected a URL as nats://127.0.0.1:4222, got '");
        assert_int_equal(err.code, BT_INVALID);
    }
    is_refused("--server nats://u:p@h", "no name, password or token in it");
    line[0] = 0;
    for (int i = 0; i < OPTIONS_SERVERS_MAX; i++) {
        (void)snprintf(line + strlen(line), sizeof line - strlen(line), "--server nats://h%d ", i);
    }
    is_taken(line);
    assert_int_equal(opt.servers_n, OPTIONS_SERVERS_MAX);
    assert_string_equal(opt.servers[OPTIONS_SERVERS_MAX - 1], "nats://h15");
    (void)snprintf(line + strlen(line), sizeof line - strlen(line), "--server nats://more");
    is_refused(line, "--server: at most 16 of them");
    assert_int_equal(err.code, BT_LIMIT);
}

static void a_name_is_one_of_a_stream(void **state)
{
    char line[64] = "--name ";

    (void)state;
    memset(line + 7, 'n', OPTIONS_NAME_MAX + 1);
    is_refused(line, "--name: expected at most 32 letters, digits, _ and -, got 'nnn");
    line[7 + OPTIONS_NAME_MAX] = 0;
    is_taken(line);
    is_taken("--name aZ_-09");
    is_refused("--name ''", "got ''");
    is_refused("--name a.b", "got 'a.b'");
}

static void a_shard_is_one_of_at_least_two(void **state)
{
    static const char *const bad[] = {"''",  "0",    "0/",   "/2",   "0/1", "2/2",
                                      "x/2", "-1/2", "0/2x", "0/65", "1/0", "+1/2"};
    char line[64];

    (void)state;
    is_taken("--shard 0/2");
    assert_true(opt.shard == 0 && opt.shards == 2);
    is_taken("--shard 1/2");
    is_taken("--shard 63/64");
    assert_true(opt.shard == 63 && opt.shards == 64);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        (void)snprintf(line, sizeof line, "--shard %s", bad[i]);
        is_refused(line, "--shard: expected N/SHARDS, as 0/4 to 3/4");
    }
}

static void numbers_are_within_their_bounds(void **state)
{
    (void)state;
    is_taken("--replicas 1");
    is_refused("--replicas 0", "--replicas: expected a number, 1 to 5, got '0'");
    is_refused("--replicas 6", "1 to 5");
    is_taken("--after 0");
    assert_true(opt.after_given && opt.after == 0);
    is_taken("--after 999999999999999999");
    assert_true(opt.after == UINT64_C(999999999999999999));
    is_refused("--after 1000000000000000000", "--after: expected a number, 0 to ");
    is_refused("--after ''", "got ''");
    is_refused("--after -1", "got '-1'");
    is_refused("--after 1x", "got '1x'");
    is_refused("--after x", "got 'x'");
}

static void what_goes_together_comes_together(void **state)
{
    static const char *const ways[] = {"--creds F", "--nkey F", "--user U --password-file F",
                                       "--token-file F"};
    char line[128];

    (void)state;
    is_refused("--user U", "--user and --password-file go together");
    is_refused("--password-file F", "--user and --password-file go together");
    is_refused("--tls-cert F", "--tls-cert and --tls-key go together");
    is_refused("--tls-key F", "--tls-cert and --tls-key go together");
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < 4; k++) {
            (void)snprintf(line, sizeof line, "%s %s", ways[i], ways[k]);
            if (i == k) {
                is_taken(line);
            } else {
                is_refused(line, "one of --creds, --nkey, --user and --token-file");
            }
        }
    }
}

static void what_is_no_option_is_named(void **state)
{
    (void)state;
    is_refused("--nam x", "there is no option '--nam'; see --help");
    is_refused("x", "there is no option 'x'");
    is_refused("--once --state", "--state needs a value");
    is_refused("--after", "--after needs a value");
    is_refused("--shard", "--shard needs a value");
    is_refused("--server", "--server needs a value");
    is_refused("--replicas", "--replicas needs a value");
    is_refused("--name", "--name needs a value");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_options_it_is_the_server_of_this_host),
        cmocka_unit_test(each_option_sets_its_own),
        cmocka_unit_test(tls_is_asked_for_by_each_word_of_it),
        cmocka_unit_test(a_server_is_a_url_of_a_host_and_perhaps_a_port),
        cmocka_unit_test(a_name_is_one_of_a_stream),
        cmocka_unit_test(a_shard_is_one_of_at_least_two),
        cmocka_unit_test(numbers_are_within_their_bounds),
        cmocka_unit_test(what_goes_together_comes_together),
        cmocka_unit_test(what_is_no_option_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
