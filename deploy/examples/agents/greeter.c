/* A whole agent.     cc greeter.c -o greeter $(pkg-config --cflags --libs baton-agent) */
#include <baton/agent.h>

static void greet(struct bt_step *step, void *self)
{
    (void)self;
    bt_step_reply_text(step, "Hello, %s!", bt_step_param_string(step, "name", "world"));
}

static const struct bt_skill skills[] = {
    {.id = "greet", .description = "Greets somebody by name.", .run = greet},
};
static const struct bt_agent_def def = {
    .agent_id = "greeter", .version = "1.0.0", .skills = skills, .skill_count = 1};

int main(int argc, char **argv)
{
    return bt_agent_main(&def, argc, argv);
}
