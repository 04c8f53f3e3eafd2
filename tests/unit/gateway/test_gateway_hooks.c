/* Incoming hooks: what a file of them may say, who proves what, and which plan a request starts. */
#include <inttypes.h>
#include <mbedtls/md.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/auth/mac.h"
#include "protocol/base/clock.h"
#include "supervisor/gateway/incoming/incoming_internal.h"
#include "supervisor/gateway/webhook/sign.h"
#include "tests/support/cmocka.h"
#include "tests/support/gateway/http_rig.h"

#define SECRET "a-secret-of-24-characters"
#define OTHER "another-secret-of-many-more"
#define WHSEC "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

enum { TEXT_BYTES = 8192, KEY_MAX = 1024 };

static char dir[64];
static struct incoming *kept[256]; /* they live as long as the process */
static size_t kept_n;

static void path_of(const char *name, char ret[128])
{
    (void)snprintf(ret, 128, "%s/%s", dir, name);
}

static void write_file(const char *name, const char *text)
{
    char path[128];
    FILE *f;

    path_of(name, path);
    f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs(text, f);
    (void)fclose(f);
    assert_int_equal(chmod(path, 0600), 0);
}

static int make_dir(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/test_hooks-XXXXXX");
    if (mkdtemp(dir) == NULL) {
        return -1;
    }
    write_file("recipe.yaml",
               "recipe: {name: r}\ninputs: {type: object, properties: {e: {type: string}, n: "
               "{type: integer, default: 1}}, required: [e]}\nsteps: [{stepId: a, agentId: c, "
               "task: 'do {{inputs.e}} {{inputs.n}}'}]\n");
    write_file("plan.yaml", "steps: [{stepId: a, agentId: c, task: once}]\n");
    write_file("secret", SECRET "\n");
    write_file("two", SECRET "\n" OTHER "\n");
    write_file("whsec", WHSEC "\n");
    return 0;
}

static int remove_dir(void **state)
{
    static const char *const files[] = {"recipe.yaml", "plan.yaml", "secret",   "two",
                                        "whsec",       "h.yaml",    "big.yaml", "hooks.json"};
    char path[128];

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        path_of(files[i], path);
        (void)unlink(path);
    }
    return rmdir(dir);
}

/* The hooks of this text, in which DIR is the directory. */
static enum bt_code read_hooks(const char *text, struct incoming **ret, struct bt_error *err)
{
    char whole[TEXT_BYTES];
    char path[128];
    size_t n = 0;

    for (const char *c = text; *c != 0; c++) {
        if (strncmp(c, "DIR", 3) == 0) {
            n += (size_t)snprintf(whole + n, sizeof whole - n, "%s", dir);
            c += 2;
        } else {
            whole[n++] = *c;
        }
    }
    whole[n] = 0;
    write_file("h.yaml", whole);
    path_of("h.yaml", path);
    assert_true(kept_n < sizeof kept / sizeof kept[0]);
    {
        const enum bt_code code = incoming_new(path, ret, err);
        kept[kept_n++] = *ret;
        return code;
    }
}

static struct incoming *hooks_of(const char *text)
{
    struct incoming *in;
    struct bt_error err;

    if (read_hooks(text, &in, &err) != BT_OK) {
        fail_msg("%s", err.msg);
    }
    rig.s.parts.incoming = in;
    return in;
}

/* ---- the file ---- */

#define FINE "plan: recipe.yaml, scheme: token, secretEnv: X"

static void what_is_wrong_in_a_file_is_named(void **state)
{
    static const char *const bad[][2] = {
        {"[]", "expected an object of hooks"},
        {"7", "expected an object of hooks"},
        {"{", "h.yaml"},
        {"A: {" FINE "}", "each with a name"},
        {"a: {scheme: token, secretEnv: X}", "a: plan: expected the file of a recipe"},
        {"a: {plan: none.yaml, scheme: token, secretEnv: X}", "none.yaml"},
        {"a: {plan: recipe.yaml, secretEnv: X}", "a: scheme: expected token, hmac or standard"},
        {"a: {plan: recipe.yaml, scheme: x, secretEnv: X}", "scheme: expected"},
        {"a: {plan: recipe.yaml, scheme: token}", "a: expected secretFile"},
        {"a: {plan: recipe.yaml, scheme: token, secretEnv: X, secretFile: /x}",
         "expected secretFile"},
        {"a: {plan: recipe.yaml, scheme: token, secretFile: x}", "an absolute path"},
        {"a: {" FINE ", inputs: [x]}", "inputs: expected an object"},
        {"a: {" FINE ", inputs: {x: e}}", "inputs: expected JSON pointers"},
        {"a: {" FINE ", inputs: {x: 7}}", "inputs: expected JSON pointers"},
        {"a: {" FINE ", inputs: {x: /a, y: /~2}}", "inputs: expected JSON pointers"},
        {"a: {" FINE ", idempotency: /~}", "idempotency: expected"},
        {"a: {" FINE ", idempotencey: X-Id}", "h.yaml: a: idempotencey: expected plan, scheme,"},
        {"a: {" FINE ", input: {x: /a}}", "a: input: expected"},
        {"a: {" FINE ", idempotency: [X-Id]}", "a: idempotency: expected"},
        {"a: {" FINE ", idempotency: ''}", "a: idempotency: expected"},
        {"a: {" FINE ", header: 7}", "a: header: expected"},
        {"a: {plan: recipe.yaml, scheme: standard, header: X-Sign, secretEnv: X}",
         "a: header: the scheme standard has its own, webhook-signature"},
        {"a: 7", "a: expected secretFile"}};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct incoming *in;
        struct bt_error err = {.msg = ""};
        assert_int_equal(read_hooks(bad[i][0], &in, &err),
                         strstr(bad[i][1], "none") != NULL ? BT_NOT_FOUND : BT_INVALID);
        if (strstr(err.msg, bad[i][1]) == NULL) {
            fail_msg("%s: %s", bad[i][0], err.msg);
        }
    }
}

static void a_file_that_is_not_there_is_not_found(void **state)
{
    struct incoming *in;
    struct bt_error err;

    (void)state;
    assert_int_equal(incoming_new("/nowhere/hooks.yaml", &in, &err), BT_NOT_FOUND);
    kept[kept_n++] = in;
}

static void a_file_has_a_mebibyte(void **state)
{
    const size_t max = 1024 * 1024;
    char *text = malloc(max + 2);
    struct bt_error err;
    char path[128];

    (void)state;
    assert_non_null(text);
    memset(text, '#', max + 1);
    memcpy(text, "a: 1\n", 5);
    for (size_t over = 0; over < 2; over++) {
        struct buf doc;
        text[max + over] = 0;
        write_file("big.yaml", text);
        text[max + over] = '#';
        path_of("big.yaml", path);
        buf_init(&doc, 64);
        assert_int_equal(incoming_read_file(path, &doc, &err), over == 0 ? BT_OK : BT_LIMIT);
        buf_done(&doc);
    }
    free(text);
}

static void so_many_hooks_and_inputs_have_room_and_no_more(void **state)
{
    char text[TEXT_BYTES];
    struct bt_error err;
    struct incoming *in;

    (void)state;
    for (uint32_t over = 0; over < 2; over++) {
        size_t n = 0;
        for (uint32_t i = 0; i < INCOMING_MAX + over; i++) {
            n += (size_t)snprintf(text + n, sizeof text - n, "h%u: {" FINE "}\n", i);
        }
        assert_int_equal(read_hooks(text, &in, &err), over == 0 ? BT_OK : BT_INVALID);
        n = (size_t)snprintf(text, sizeof text, "a: {" FINE ", inputs: {");
        for (uint32_t i = 0; i < INCOMING_INPUTS_MAX + over; i++) {
            n += (size_t)snprintf(text + n, sizeof text - n, "i%u: /x, ", i);
        }
        (void)snprintf(text + n, sizeof text - n, "}}");
        assert_int_equal(read_hooks(text, &in, &err), over == 0 ? BT_OK : BT_INVALID);
        n = (size_t)snprintf(text, sizeof text, "a: {" FINE ", inputs: {x: /");
        memset(text + n, 'p', INCOMING_POINTER_MAX - 1 + over);
        (void)snprintf(text + n + INCOMING_POINTER_MAX - 1 + over, 8, "}}");
        assert_int_equal(read_hooks(text, &in, &err), over == 0 ? BT_OK : BT_INVALID);
        n = (size_t)snprintf(text, sizeof text, "a: {scheme: token, secretEnv: X, plan: ");
        memset(text + n, 'p', 1000 + over);
        (void)snprintf(text + n + 1000 + over, 4, "}");
        assert_int_not_equal(read_hooks(text, &in, &err), BT_OK);
        assert_true((strstr(err.msg, "expected the file") != NULL) == (over != 0));
        n = (size_t)snprintf(text, sizeof text,
                             "a: {plan: recipe.yaml, scheme: token, secretFile: /");
        memset(text + n, 'p', HOOK_PATH_MAX - 1 + over);
        (void)snprintf(text + n + HOOK_PATH_MAX - 1 + over, 4, "}");
        assert_int_equal(read_hooks(text, &in, &err), over == 0 ? BT_OK : BT_INVALID);
        n = (size_t)snprintf(text, sizeof text,
                             "a: {plan: recipe.yaml, scheme: token, secretEnv: ");
        memset(text + n, 'E', HOOK_ENV_MAX + over);
        (void)snprintf(text + n + HOOK_ENV_MAX + over, 4, "}");
        assert_int_equal(read_hooks(text, &in, &err), over == 0 ? BT_OK : BT_INVALID);
    }
}

static void a_hook_says_where_its_secret_and_its_key_are(void **state)
{
    struct incoming *in = hooks_of("a: {" FINE "}\n"
                                   "b: {plan: DIR/plan.yaml, scheme: hmac, secretFile: /s, "
                                   "idempotency: X-Key}\n"
                                   "c: {plan: plan.yaml, scheme: standard, secretFile: /s, "
                                   "idempotency: /k}\n"
                                   "d: {" FINE ", header: X-Token}\n");
    const struct incoming_hook *a = incoming_find(in, STR_LIT("a"));
    const struct incoming_hook *b = incoming_find(in, STR_LIT("b"));
    const struct incoming_hook *c = incoming_find(in, STR_LIT("c"));

    (void)state;
    assert_string_equal(a->header, "Authorization");
    assert_string_equal(a->secret.secret_env, "X");
    assert_string_equal(a->secret.secret_file, "");
    assert_null(a->key_header);
    assert_null(a->key_pointer);
    assert_string_equal(b->header, "X-Hub-Signature-256");
    assert_string_equal(b->secret.secret_file, "/s");
    assert_string_equal(b->secret.secret_env, "");
    assert_string_equal(b->key_header, "X-Key");
    assert_string_equal(c->header, "webhook-signature"); /* the standard says which */
    assert_string_equal(c->key_pointer, "/k");
    assert_null(c->key_header);
    assert_string_equal(incoming_find(in, STR_LIT("d"))->header, "X-Token");
    assert_null(incoming_find(in, STR_LIT("e")));
    assert_null(incoming_find(NULL, STR_LIT("a")));
}

/* ---- a request ---- */

static const char *const hooks =
    "token: {plan: recipe.yaml, scheme: token, secretFile: DIR/two, "
    "header: X-Token, inputs: {e: /e, n: /n}, idempotency: /id}\n"
    "bearer: {plan: plan.yaml, scheme: token, secretFile: DIR/secret}\n"
    "hmac: {plan: plan.yaml, scheme: hmac, secretFile: DIR/secret, "
    "idempotency: X-Key}\n"
    "standard: {plan: plan.yaml, scheme: standard, secretFile: "
    "DIR/whsec}\n"
    "lost: {plan: plan.yaml, scheme: token, secretFile: DIR/none}\n";

static int begin_hooks(void **state)
{
    (void)state;
    rig.s.now = 1000000;
    (void)hooks_of(hooks);
    return 0;
}

static void request(const char *name, const char *body)
{
    rig_end();
    rig_begin(body);
    rig.h.params.n = 1;
    rig.h.params.at[0].value = str_from(name);
}

/* The status of the answer; 0: it waits for the daemon. */
static unsigned serve(void)
{
    incoming_serve(&rig.h);
    return rig.h.state == HTTP_WAITS ? 0 : rig.h.status;
}

static unsigned with_token(const char *body, const char *token)
{
    request("token", body);
    rig_header("X-Token", token);
    return serve();
}

static void a_token_is_the_whole_secret_of_its_header(void **state)
{
    static const char *const wrong[] = {"",          "a-secret-of-24-character",
                                        SECRET "x",  "Bearer " SECRET,
                                        SECRET "\n", "A-secret-of-24-characters"};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(with_token("{\"e\":\"x\",\"id\":1}", wrong[i]), 401);
        assert_int_equal(rig.code, BT_UNAUTHORIZED);
        assert_string_equal(rig.field, "X-Token");
        assert_int_equal(rig.asked, 0);
    }
    request("token", "{\"e\":\"x\",\"id\":1}");
    assert_int_equal(serve(), 401);
    assert_int_equal(with_token("{\"e\":\"x\",\"id\":1}", SECRET), 0);
    assert_int_equal(with_token("{\"e\":\"x\",\"id\":1}", OTHER), 0); /* both of the file count */
}

static void a_bearer_is_what_comes_after_the_word(void **state)
{
    static const char *const right[] = {"Bearer " SECRET, "bearer " SECRET, "BEARER " SECRET};
    static const char *const wrong[] = {SECRET,    "Basic " SECRET,   "Bearer",
                                        "Bearer ", "Bearer  " SECRET, "Bearer-" SECRET};

    (void)state;
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        request("bearer", "");
        rig_header("Authorization", right[i]);
        assert_int_equal(serve(), 0);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        request("bearer", "");
        rig_header("Authorization", wrong[i]);
        assert_int_equal(serve(), 401);
    }
    assert_string_equal(rig.field, "Authorization");
}

static void a_secret_has_sixteen_characters(void **state)
{
    static const char *const secrets[] = {"fifteen-letters", "sixteen-letters-"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char value[64];
        write_file("secret", secrets[i]);
        request("bearer", "");
        (void)snprintf(value, sizeof value, "Bearer %s", secrets[i]);
        rig_header("Authorization", value);
        assert_int_equal(serve(), i == 0 ? 401 : 0);
    }
    write_file("secret", SECRET "\n");
}

static void mac_of(const char *body, const char *prefix, char ret[80])
{
    uint8_t mac[32];
    const size_t n = strlen(prefix);

    assert_int_equal(mbedtls_md_hmac(mbedtls_md_info_from_type(MBEDTLS_MD_SHA256),
                                     (const uint8_t *)SECRET, strlen(SECRET), (const uint8_t *)body,
                                     strlen(body), mac),
                     0);
    memcpy(ret, prefix, n);
    auth_hex(mac, sizeof mac, ret + n);
}

static unsigned with_mac(const char *body, const char *mac, const char *key)
{
    request("hmac", body);
    rig_header("X-Hub-Signature-256", mac);
    rig_header("X-Key", key);
    return serve();
}

static void a_signature_is_of_the_whole_body(void **state)
{
    char mac[80];
    char plain[80];

    (void)state;
    mac_of("{\"a\":1}", "sha256=", mac);
    mac_of("{\"a\":1}", "", plain);
    assert_int_equal(with_mac("{\"a\":1}", mac, "k"), 0);
    assert_int_equal(with_mac("{\"a\":1}", plain, "k"), 0);
    assert_int_equal(with_mac("{\"a\":1} ", mac, "k"), 401);
    assert_int_equal(with_mac("{\"a\":1}", "sha256=", "k"), 401);
    assert_int_equal(with_mac("{\"a\":1}", "", "k"), 401);
    mac[strlen(mac) - 1] ^= 1;
    assert_int_equal(with_mac("{\"a\":1}", mac, "k"), 401);
    mac_of("{\"a\":1}", "sha1=", mac);
    assert_int_equal(with_mac("{\"a\":1}", mac, "k"), 401);
}

/* before, after: of the signature within its header. */
static unsigned standard(const char *id, int64_t late, const char *before, const char *after)
{
    const uint64_t at = (uint64_t)((int64_t)(clock_wall_ms() / 1000) + late);
    struct sign_secrets secrets;
    struct buf mac;
    char stamp[32];
    char header[1400];

    assert_int_equal(sign_read(STR_LIT(WHSEC), &secrets, NULL), BT_OK);
    buf_init(&mac, 256);
    assert_int_equal(sign_put(&secrets, str_from(id), at, STR_LIT("{}"), &mac, NULL), BT_OK);
    (void)snprintf(header, sizeof header, "%s%s%s", before, buf_cstr(&mac), after);
    buf_done(&mac);
    (void)snprintf(stamp, sizeof stamp, "%" PRIu64, at);
    request("standard", "{}");
    rig_header("webhook-id", id);
    rig_header("webhook-timestamp", stamp);
    rig_header("webhook-signature", header);
    return serve();
}

static void a_standard_signature_is_one_of_several_and_not_older_than_five_minutes(void **state)
{
    char long_[1500];

    (void)state;
    assert_int_equal(standard("m", 0, "", ""), 0);
    assert_int_equal(standard("m", 0, "v1,AAAA ", " v2,x"), 0);
    assert_int_equal(standard("m", 0, "x", ""), 401); /* a signature begins with its version */
    assert_int_equal(standard("m", 0, "v1,AAAA,", ""), 401);
    assert_int_equal(standard("", 0, "", ""), 401);
    assert_int_equal(standard("m", 2 - INCOMING_AGE_S, "", ""), 0);
    assert_int_equal(standard("m", -1 - INCOMING_AGE_S, "", ""), 401);
    assert_int_equal(standard("m", INCOMING_AGE_S, "", ""), 0);
    assert_int_equal(standard("m", 2 + INCOMING_AGE_S, "", ""), 401);
    memset(long_, 'i', sizeof long_);
    long_[KEY_MAX] = 0;
    assert_int_equal(standard(long_, 0, "", ""), 0);
    long_[KEY_MAX] = 'i';
    long_[KEY_MAX + 1] = 0;
    assert_int_equal(standard(long_, 0, "", ""), 401);
    memset(long_, ' ', sizeof long_);
    long_[KEY_MAX - 47] = 0; /* a signature has 47 letters */
    assert_int_equal(standard("m", 0, long_, ""), 0);
    rig.s.now += INCOMING_FAILURES_MS;
    long_[KEY_MAX - 47] = ' ';
    long_[KEY_MAX - 46] = 0;
    assert_int_equal(standard("m", 0, long_, ""), 401);
}

static void a_signature_without_a_time_or_of_another_one_proves_nothing(void **state)
{
    static const char *const times[] = {"", "x", "-1", "4294967296", "1"};

    (void)state;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        request("standard", "{}");
        rig_header("webhook-id", "m");
        rig_header("webhook-timestamp", times[i]);
        rig_header("webhook-signature", "v1,x");
        assert_int_equal(serve(), 401);
    }
    write_file("whsec", "no secret\n");
    assert_int_equal(standard("m", 0, "", ""), 401);
    write_file("whsec", WHSEC "\n");
}

static void a_secret_that_cannot_be_read_is_no_fault_of_the_sender(void **state)
{
    (void)state;
    request("lost", "{}");
    rig_header("Authorization", "Bearer " SECRET);
    assert_int_equal(serve(), 503);
    assert_int_equal(rig.code, BT_UNAVAILABLE);
    request("nobody", "{}");
    assert_int_equal(serve(), 404);
    request("token", "{}");
    rig.h.params.n = 0;
    assert_int_equal(serve(), 404);
}

static void who_proves_nothing_waits_after_ten_failures_in_ten_seconds(void **state)
{
    const char *body = "{\"e\":\"x\",\"id\":1}";

    (void)state;
    for (int i = 0; i < INCOMING_FAILURES_MAX; i++) {
        rig.s.now += i == 1 ? 400 : 0;
        assert_int_equal(with_token(body, "no"), 401);
    }
    assert_int_equal(with_token(body, "no"), 429);
    assert_int_equal(rig.code, BT_BUSY);
    assert_int_equal(rig.retry_after_ms, INCOMING_FAILURES_MS - 400);
    assert_int_equal(with_token(body, SECRET), 0); /* nobody can lock out who has the secret */
    rig.s.now += INCOMING_FAILURES_MS - 401;
    assert_int_equal(with_token(body, "no"), 429);
    assert_int_equal(rig.retry_after_ms, 1);
    rig.s.now += 1;
    for (int i = 0; i < INCOMING_FAILURES_MAX; i++) {
        assert_int_equal(with_token(body, "no"), 401);
    }
    assert_int_equal(with_token(body, "no"), 429);
    assert_int_equal(rig.retry_after_ms, INCOMING_FAILURES_MS);
}

static void a_recipe_gets_what_the_body_has_and_a_plan_is_sent_as_it_is(void **state)
{
    (void)state;
    assert_int_equal(with_token("{\"e\":\"x\",\"n\":2,\"id\":1}", SECRET), 0);
    assert_int_equal(rig.spec.type, MSG_plan_submit);
    assert_int_equal(rig.spec.answer, MSG_plan_submit_ok);
    assert_false(rig.spec.reads); /* it starts something: it is not sent again by itself */
    assert_non_null(strstr(rig.fields, "\"task\":\"do x 2\""));
    assert_int_equal(with_token("{\"e\":\"x\",\"id\":1}", SECRET), 0);
    assert_non_null(strstr(rig.fields, "\"task\":\"do x 1\""));
    request("bearer", "");
    rig.h.heads.traceparent = "00-t";
    rig_header("Authorization", "Bearer " SECRET);
    assert_int_equal(serve(), 0);
    assert_string_equal(rig.fields, "{\"plan\":{\"steps\":[{\"stepId\":\"a\",\"agentId\":\"c\","
                                    "\"task\":\"once\"}]}}");
    assert_true(str_is(rig.spec.traceparent, "00-t"));
    assert_int_equal(with_token("{\"id\":1}", SECRET), 400); /* e is required */
    assert_int_equal(with_token("{\"id\":1,\"e\":[1]}", SECRET), 400);
    assert_int_equal(with_token("{\"id\":1", SECRET), 400);
    assert_int_equal(rig.asked, 0);
}

/* clientKey of what was sent; "" = none. */
static const char *key_sent(void)
{
    static char key[160];
    const char *at = strstr(rig.fields, "\"clientKey\":\"");

    (void)snprintf(key, sizeof key, "%s", at == NULL ? "" : at + 13);
    key[strcspn(key, "\"")] = 0;
    return key;
}

static void the_key_of_a_request_is_a_digest_with_the_name_of_its_hook(void **state)
{
    char first[160];
    char mac[80];
    char key[KEY_MAX + 2];

    (void)state;
    (void)with_token("{\"e\":\"x\",\"id\":7}", SECRET);
    (void)snprintf(first, sizeof first, "%s", key_sent());
    assert_int_equal(strlen(first), strlen("hook:token:") + 40);
    assert_int_equal(strncmp(first, "hook:token:", 11), 0);
    (void)with_token("{\"e\":\"y\",\"id\":7}", SECRET);
    assert_string_equal(key_sent(), first);
    (void)with_token("{\"e\":\"x\",\"id\":\"7\"}", SECRET);
    assert_string_not_equal(key_sent(), first);
    assert_int_equal(with_token("{\"e\":\"x\"}", SECRET), 400);
    assert_int_equal(rig.code, BT_INVALID);
    assert_string_equal(rig.field, "/id");
    mac_of("{}", "", mac);
    assert_int_equal(with_mac("{}", mac, "7"), 0);
    assert_int_equal(strncmp(key_sent(), "hook:hmac:", 10), 0);
    assert_int_equal(with_mac("{}", mac, ""), 400);
    assert_string_equal(rig.field, "X-Key");
    memset(key, 'k', sizeof key);
    key[KEY_MAX] = 0;
    assert_int_equal(with_mac("{}", mac, key), 0);
    key[KEY_MAX] = 'k';
    key[KEY_MAX + 1] = 0;
    assert_int_equal(with_mac("{}", mac, key), 400);
}

static void the_answer_is_the_plan_or_the_refusal_of_the_daemon(void **state)
{
    struct incoming_hook *k = incoming_find(rig.s.parts.incoming, STR_LIT("token"));

    (void)state;
    (void)with_token("{\"e\":\"x\",\"id\":7}", SECRET);
    rig_answer("{'planId':'P'}");
    assert_int_equal(rig.h.status, 202);
    assert_int_equal(rig.woken, 1);
    assert_null(rig.h.call);
    assert_string_equal(rig.h.type, "application/json");
    assert_string_equal(rig_out(), "{\"planId\":\"P\"}");
    assert_int_equal(k->started, 1);
    assert_int_equal(k->refused, 0);
    assert_int_equal(k->last_status, 202);
    assert_string_equal(k->last_plan, "P");
    (void)with_token("{\"e\":\"x\",\"id\":8}", SECRET);
    rig_refuse(BT_CONFLICT, "not so");
    assert_int_equal(rig.h.status, 409);
    assert_string_equal(rig.message, "not so");
    assert_int_equal(rig.woken, 1);
    assert_null(rig.h.call);
    assert_int_equal(k->refused, 1);
    assert_int_equal(k->last_status, 409);
    assert_string_equal(k->last_plan, "P"); /* the last one that was started */
    assert_true(k->last_wall > 0);
}

static void what_cannot_be_asked_is_refused_at_once_and_counted(void **state)
{
    struct incoming_hook *k = incoming_find(rig.s.parts.incoming, STR_LIT("token"));

    (void)state;
    request("token", "{\"e\":\"x\",\"id\":7}");
    rig_header("X-Token", SECRET);
    rig.no_caller = true;
    assert_int_equal(serve(), 503);
    assert_int_equal(rig.code, BT_UNAVAILABLE);
    request("token", "{\"e\":\"x\",\"id\":7}");
    rig_header("X-Token", SECRET);
    rig.busy = BT_BUSY;
    assert_int_equal(serve(), 503);
    assert_int_equal(rig.code, BT_BUSY);
    assert_string_equal(rig.message, "too many wait");
    assert_int_equal(k->refused, 2);
    assert_int_equal(k->started, 0);
    assert_int_equal(k->last_status, 503);
}

/* ---- what is shown ---- */

static void expect_shown(const char *text)
{
    char path[128];
    char shown[TEXT_BYTES];
    FILE *f;
    size_t n;

    path_of("hooks.json", path);
    f = fopen(path, "r");
    assert_true((f != NULL) == (text != NULL));
    if (f != NULL) {
        n = fread(shown, 1, sizeof shown - 1, f);
        shown[n] = 0;
        (void)fclose(f);
        assert_string_equal(shown, text);
    }
}

static void what_came_of_requests_is_written_twice_a_second_at_most(void **state)
{
    struct incoming *in = hooks_of("a: {" FINE "}\n"
                                   "b: {plan: plan.yaml, scheme: hmac, secretEnv: X}\n"
                                   "c: {plan: plan.yaml, scheme: standard, secretEnv: X}\n");
    struct incoming_hook *b = incoming_find(in, STR_LIT("b"));

    (void)state;
    assert_int_equal(incoming_deadline(NULL), MSEC_NEVER);
    assert_int_equal(incoming_deadline(in), 0); /* that there are hooks */
    expect_shown(NULL);
    incoming_run(in, dir, 1000);
#define NONE "\"started\":0,\"refused\":0,\"lastMs\":0,\"lastStatus\":0}"
    expect_shown("{\"hooks\":[{\"name\":\"a\",\"scheme\":\"token\"," NONE
                 ",{\"name\":\"b\",\"scheme\":\"hmac\"," NONE
                 ",{\"name\":\"c\",\"scheme\":\"standard\"," NONE "]}");
    assert_int_equal(incoming_deadline(in), MSEC_NEVER);
    incoming_note(in, b, 202, STR_LIT("P"));
    incoming_note(in, b, 401, STR_LIT(""));
    b->last_wall = 5;
    assert_int_equal(incoming_deadline(in), 1500);
    incoming_run(in, dir, 1499);
    assert_int_equal(incoming_deadline(in), 1500);
    incoming_run(in, dir, 1500);
    expect_shown("{\"hooks\":[{\"name\":\"a\",\"scheme\":\"token\"," NONE
                 ",{\"name\":\"b\",\"scheme\":\"hmac\",\"lastPlanId\":\"P\",\"started\":1,"
                 "\"refused\":1,\"lastMs\":5,\"lastStatus\":401}"
                 ",{\"name\":\"c\",\"scheme\":\"standard\"," NONE "]}");
    incoming_show_none(dir);
    expect_shown(NULL);
}

int main(void)
{
#define SERVES(f) cmocka_unit_test_setup(f, begin_hooks)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_in_a_file_is_named),
        cmocka_unit_test(a_file_that_is_not_there_is_not_found),
        cmocka_unit_test(a_file_has_a_mebibyte),
        cmocka_unit_test(so_many_hooks_and_inputs_have_room_and_no_more),
        cmocka_unit_test(a_hook_says_where_its_secret_and_its_key_are),
        SERVES(a_token_is_the_whole_secret_of_its_header),
        SERVES(a_bearer_is_what_comes_after_the_word),
        SERVES(a_secret_has_sixteen_characters),
        SERVES(a_signature_is_of_the_whole_body),
        SERVES(a_standard_signature_is_one_of_several_and_not_older_than_five_minutes),
        SERVES(a_signature_without_a_time_or_of_another_one_proves_nothing),
        SERVES(a_secret_that_cannot_be_read_is_no_fault_of_the_sender),
        SERVES(who_proves_nothing_waits_after_ten_failures_in_ten_seconds),
        SERVES(a_recipe_gets_what_the_body_has_and_a_plan_is_sent_as_it_is),
        SERVES(the_key_of_a_request_is_a_digest_with_the_name_of_its_hook),
        SERVES(the_answer_is_the_plan_or_the_refusal_of_the_daemon),
        SERVES(what_cannot_be_asked_is_refused_at_once_and_counted),
        cmocka_unit_test(what_came_of_requests_is_written_twice_a_second_at_most),
    };
#undef SERVES
    const int failed = cmocka_run_group_tests(tests, make_dir, remove_dir);

    rig_end();
    return failed;
}
