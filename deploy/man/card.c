/* baton_card: reads an agent's card (JSON, `--card`) from stdin and prints its skills as Markdown,
 * for the page of the agent in the manual. At build time only. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

enum { CARD_MAX = 1 << 20 };

static const char *text(const cJSON *map, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(map, name);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static bool is_required(const cJSON *schema, const char *name)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(schema, "required"))
    {
        if (cJSON_IsString(item) && strcmp(item->valuestring, name) == 0) {
            return true;
        }
    }
    return false;
}

/* "string", "a, b or c" of an enum, or "any value". */
static void put_type(const cJSON *property)
{
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(property, "type");
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(property, "enum");
    const cJSON *item;
    const char *before = "";

    if (cJSON_IsString(type) && list == NULL) {
        (void)printf("%s", type->valuestring);
        return;
    }
    list = list != NULL ? list : type;
    cJSON_ArrayForEach(item, list)
    {
        (void)printf("%s%s", before, cJSON_IsString(item) ? item->valuestring : "null");
        before = " | ";
    }
    (void)printf("%s", before[0] == 0 ? "any value" : "");
}

static void put_parameters(const cJSON *schema)
{
    const cJSON *p;

    cJSON_ArrayForEach(p, cJSON_GetObjectItemCaseSensitive(schema, "properties"))
    {
        const char *about = text(p, "description");
        (void)printf("- `%s` (", p->string);
        put_type(p);
        (void)printf("%s)%s%s\n", is_required(schema, p->string) ? ", required" : "",
                     about[0] != 0 ? ": " : "", about);
    }
}

static void put_skill(const cJSON *skill)
{
    const cJSON *example;

    (void)printf("\n### %s\n\n%s\n\n", text(skill, "id"), text(skill, "description"));
    put_parameters(cJSON_GetObjectItemCaseSensitive(skill, "inputSchema"));
    (void)printf("\nEffects: %s.\n",
                 text(skill, "effects")[0] != 0 ? text(skill, "effects") : "not said");
    example = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(skill, "examples"), 0);
    if (cJSON_IsString(example)) {
        (void)printf("A goal that it does: \"%s\".\n", example->valuestring);
    }
}

int main(void)
{
    char *bytes = malloc(CARD_MAX + 1);
    const cJSON *skill;
    cJSON *card = NULL;
    size_t n = 0;

    if (bytes != NULL) {
        n = fread(bytes, 1, CARD_MAX, stdin);
        bytes[n] = 0;
        card = cJSON_Parse(bytes);
    }
    if (card == NULL) {
        (void)fprintf(stderr, "baton_card: no card of at most %d bytes on stdin\n", CARD_MAX);
        free(bytes);
        return 1;
    }
    (void)printf("## Skills\n");
    cJSON_ArrayForEach(skill, cJSON_GetObjectItemCaseSensitive(card, "skills"))
    {
        put_skill(skill);
    }
    cJSON_Delete(card);
    free(bytes);
    return ferror(stdout) != 0 || fflush(stdout) != 0;
}
