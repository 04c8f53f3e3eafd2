/* A YAML file as JSON, read as Baton reads it. usage: yaml_json FILE */
#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "supervisor/config/yaml.h"

int main(int argc, char **argv)
{
    static char text[1 << 20];
    FILE *f = argc == 2 ? fopen(argv[1], "rb") : NULL;
    struct cJSON *tree = NULL;
    struct bt_error err;
    char *json;
    size_t n;

    if (f == NULL) {
        (void)fprintf(stderr, "usage: yaml_json FILE\n");
        return 2;
    }
    n = fread(text, 1, sizeof text, f);
    (void)fclose(f);
    if (yaml_read((struct str){text, n}, argv[1], &tree, NULL, &err) != BT_OK) {
        (void)fprintf(stderr, "%s\n", err.msg);
        return 2;
    }
    json = cJSON_PrintUnformatted(tree);
    (void)puts(json != NULL ? json : "");
    cJSON_free(json);
    cJSON_Delete(tree);
    return 0;
}
