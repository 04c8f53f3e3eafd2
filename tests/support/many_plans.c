/*
 * Submits N plans at once through libbaton, waits until every one has ended.
 * usage: many_plans STATE_DIR N PLAN_JSON      prints {"submitted": N, "completed": N}, exit 0 when
 * all completed
 */
#include <baton/client.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    struct bt_client *client = NULL;
    struct bt_error err;
    long n = argc == 4 ? strtol(argv[2], NULL, 10) : 0;
    char(*ids)[BT_ID_LEN + 1] = calloc(n > 0 ? (size_t)n : 1, sizeof *ids);
    long completed = 0;

    if (n <= 0 || ids == NULL || bt_client_open(argv[1], &client, &err) != BT_OK) {
        (void)fprintf(stderr, "many_plans: %s\n",
                      n <= 0 ? "usage: STATE_DIR N PLAN_JSON" : err.msg);
        free(ids);
        return 2;
    }
    for (long i = 0; i < n; i++) {
        struct bt_submit s = {.plan_json = argv[3]};
        if (bt_submit(client, &s, ids[i], NULL, &err) != BT_OK) {
            (void)fprintf(stderr, "many_plans: plan %ld: %s\n", i, err.msg);
            return 1;
        }
    }
    for (long i = 0; i < n; i++) {
        char *json = NULL;
        if (bt_wait(client, ids[i], 120000, &json, &err) != BT_OK) {
            (void)fprintf(stderr, "many_plans: plan %s: %s\n", ids[i], err.msg);
            return 1;
        }
        completed += strstr(json, "\"status\":\"completed\"") != NULL;
        bt_free(json);
    }
    (void)printf("{\"submitted\": %ld, \"completed\": %ld}\n", n, completed);
    bt_client_close(client);
    free(ids);
    return completed == n ? 0 : 1;
}
