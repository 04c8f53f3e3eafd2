/* The agent of the client's tests: returns "done" after parameters.ms milliseconds. */
#include <baton/agent.h>

#include <time.h>

static void do_it(struct bt_step *step, void *self)
{
    double ms = bt_step_param_number(step, "ms", 0);
    struct timespec nap = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)ms % 1000 * 1000000L};

    (void)self;
    (void)nanosleep(&nap, NULL);
    bt_step_reply_text(step, "done");
}

int main(int argc, char **argv)
{
    static const struct bt_skill skills[] = {
        {.id = "do", .description = "Says done.", .run = do_it}};
    static const struct bt_agent_def def = {.agent_id = "worker",
                                            .version = "1.0.0",
                                            .skills = skills,
                                            .skill_count = 1,
                                            .capacity = 4};

    return bt_agent_main(&def, argc, argv);
}
