/* baton */
#include "supervisor/cli/entry.h"

int main(int argc, char **argv)
{
    return cli_entry(argc, argv);
}
