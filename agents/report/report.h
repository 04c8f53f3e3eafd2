/* The skills of the report agent: chart, document. */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "agents/report/chart.h"
#include "agents/sdk/step.h"
#include "baton/agent.h"

enum { REPORT_SECTIONS_MAX = 200, REPORT_CHARTS_MAX = 50, REPORT_PAGE_BYTES = 64 * 1024 * 1024 };

struct report {
    char *browser; /* of the settings; NULL: the one that PATH has */
};

extern const struct bt_skill report_skills[];
extern const size_t report_skill_count;

/* Reads {browser}. BT_INVALID names the member. */
BT_MUST_CHECK enum bt_code report_new(const char *settings_json, struct report **ret,
                                      struct bt_error *err);
/* Accepts NULL. */
void report_free(struct report *r);

/* The handlers; self is the struct report. Thread-safe. */
void report_chart(struct bt_step *step, void *self);
void report_document(struct bt_step *step, void *self);

/* ---- shared by the handlers ---- */

/* A document in pieces: Markdown, then perhaps a picture after it. */
struct piece {
    struct buf markdown;
    struct buf svg; /* empty: none */
    const char *svg_title;
};

struct pieces {
    struct piece *at;
    size_t n;
    const char *title; /* "" when there is none */
};

/* document.c: reads title, text and sections of the parameters, which are borrowed until
 * pieces_done. BT_INVALID names the section. */
BT_MUST_CHECK enum bt_code pieces_read(struct bt_step *step, const struct cJSON *params,
                                       struct pieces *ret, struct bt_error *err);
void pieces_done(struct pieces *p);
/* Appends all of it as Markdown; pictures as data: URIs. */
BT_MUST_CHECK enum bt_code pieces_to_markdown(const struct pieces *p, struct buf *out,
                                              struct bt_error *err);
/* page.c: one HTML page that needs nothing else: no scripts, no other files, a policy that forbids
 * them. Markup in the texts is shown, never obeyed. */
BT_MUST_CHECK enum bt_code pieces_to_html(const struct pieces *p, struct buf *out,
                                          struct bt_error *err);
/* Once, before the first page, while there is one thread. */
void page_start(void);
/* pdf.c: prints the page with Chromium. BT_NOT_FOUND: there is no browser; the sentence names what
 * to install or to set. BT_CANCELLED, BT_TIMEOUT, BT_IO with what the browser printed. */
BT_MUST_CHECK enum bt_code pdf_print(struct bt_step *step, const struct report *r,
                                     const struct buf *html, struct buf *ret_pdf,
                                     struct bt_error *err);
/* Adds an artifact to the result: its whole content at once. */
BT_MUST_CHECK enum bt_code report_artifact(struct bt_step *step, const char *name,
                                           const char *media_type, const struct buf *content,
                                           struct bt_error *err);
#endif
