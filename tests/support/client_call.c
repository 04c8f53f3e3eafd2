/* One request through libbaton: what a program of others would get.
 * usage: client_call STATE TYPE [FIELDS]      prints the answer; 1 and the reason without one */
#include <stdio.h>

#include "baton/client.h"

int main(int argc, char **argv)
{
    struct bt_client *c = NULL;
    struct bt_error err = {.code = BT_INVALID, .msg = "usage: client_call STATE TYPE [FIELDS]"};
    char *json = NULL;
    enum bt_code code = argc < 3 ? BT_INVALID : bt_client_open(argv[1], &c, &err);

    if (code == BT_OK) {
        code = bt_client_call(c, argv[2], argc > 3 ? argv[3] : NULL, &json, &err);
    }
    if (code == BT_OK) {
        (void)printf("%s\n", json);
    } else {
        (void)fprintf(stderr, "%s: %s\n", bt_code_name(code), err.msg);
    }
    bt_free(json);
    bt_client_close(c);
    return code == BT_OK ? 0 : 1;
}
