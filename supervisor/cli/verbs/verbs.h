/* The function of each verb. Their table is in ../usage. */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

#include "supervisor/cli/common/cli.h"

enum cli_exit verb_agent(struct cli *cli);
enum cli_exit verb_agents(struct cli *cli);
enum cli_exit verb_approve(struct cli *cli);
enum cli_exit verb_cancel(struct cli *cli);
enum cli_exit verb_certs(struct cli *cli);
enum cli_exit verb_chat(struct cli *cli);
enum cli_exit verb_config(struct cli *cli);
enum cli_exit verb_context(struct cli *cli);
enum cli_exit verb_fleet(struct cli *cli);
enum cli_exit verb_cost(struct cli *cli);
enum cli_exit verb_decide(struct cli *cli);
enum cli_exit verb_backup(struct cli *cli);
enum cli_exit verb_delete(struct cli *cli);
enum cli_exit verb_export(struct cli *cli);
enum cli_exit verb_import(struct cli *cli);
enum cli_exit verb_prune(struct cli *cli);
enum cli_exit verb_restore(struct cli *cli);
enum cli_exit verb_verify(struct cli *cli);
enum cli_exit verb_audit(struct cli *cli);
enum cli_exit verb_credential(struct cli *cli);
enum cli_exit verb_doctor(struct cli *cli);
enum cli_exit verb_down(struct cli *cli);
enum cli_exit verb_events(struct cli *cli);
enum cli_exit verb_fork(struct cli *cli);
enum cli_exit verb_graph(struct cli *cli);
enum cli_exit verb_history(struct cli *cli);
enum cli_exit verb_info(struct cli *cli);
enum cli_exit verb_init(struct cli *cli);
enum cli_exit verb_lint(struct cli *cli);
enum cli_exit verb_reload(struct cli *cli);
enum cli_exit verb_logs(struct cli *cli);
enum cli_exit verb_mcp(struct cli *cli);
enum cli_exit verb_modify(struct cli *cli);
enum cli_exit verb_pause(struct cli *cli);
enum cli_exit verb_plan(struct cli *cli);
enum cli_exit verb_recipes(struct cli *cli);
enum cli_exit verb_reject(struct cli *cli);
enum cli_exit verb_result(struct cli *cli);
enum cli_exit verb_resume(struct cli *cli);
enum cli_exit verb_retry(struct cli *cli);
enum cli_exit verb_review(struct cli *cli);
enum cli_exit verb_reviews(struct cli *cli);
enum cli_exit verb_run(struct cli *cli);
enum cli_exit verb_schedule(struct cli *cli);
enum cli_exit verb_sessions(struct cli *cli);
enum cli_exit verb_skip(struct cli *cli);
enum cli_exit verb_signal(struct cli *cli);
enum cli_exit verb_stats(struct cli *cli);
enum cli_exit verb_status(struct cli *cli);
enum cli_exit verb_timeline(struct cli *cli);
enum cli_exit verb_top(struct cli *cli);
enum cli_exit verb_ui(struct cli *cli);
enum cli_exit verb_up(struct cli *cli);
enum cli_exit verb_webhook(struct cli *cli);
#endif
