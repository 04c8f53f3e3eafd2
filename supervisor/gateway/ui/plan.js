// One plan: what it is about, and tabs that show it as a graph, a table, a timeline, a story, an answer.

import { get, path } from './api.js';
import { badge, button, empty, fill, h, icon, problem } from './dom.js';
import { ago, duration, fully, money, ms, number, short, tokens } from './format.js';
import { planActions } from './actions.js';
import { graphTab } from './graph.js';
import { DOCUMENT_STEPS_MAX, isOver, PlanModel } from './plan_model.js';
import { progress, title } from './plans.js';
import { stepPanel } from './step.js';
import { stepsTab } from './steps.js';
import { storyTab } from './story.js';
import { timelineTab } from './timeline.js';
import { answer, result, tree, value } from './value.js';
import { toast } from './dialog.js';

function resultTab(model) {
    const node = h('div', { class: 'tab result' });
    let mark = '';
    async function read() {
        const plan = model.plan;
        const now = plan ? plan.status + plan.lastSeq : '';
        if (!plan || now === mark) {
            return;
        }
        if (!isOver(plan.status)) {
            fill(node, empty('No answer yet', 'It is here when the plan has ended. Results of single steps are in the steps.'));
            return;
        }
        mark = now;
        try {
            const r = await get(path('plans', model.planId, 'result'), { steps: false });
            fill(node, plan.failureReason ? h('div', { class: 'problem' }, h('strong', null, 'The plan failed'), h('p', null, plan.failureReason), plan.hint ? h('p', null, plan.hint) : null) : null,
                r.aggregatedResult ? h('section', null, h('h2', null, 'Answer'), answer(r.aggregatedResult)) : null,
                r.result !== undefined && r.result !== null ? h('section', null, h('h2', null, 'Result'), result(r.result)) : null,
                r.artifacts?.length ? h('section', null, h('h2', null, 'Files'), value(r.artifacts)) : null,
                r.truncated ? h('p', { class: 'hint' }, 'It was cut; the steps have the whole.') : null,
                !r.aggregatedResult && !r.result && !plan.failureReason ? empty('No answer', 'The plan ended without one.') : null);
        } catch (e) {
            mark = '';
            fill(node, problem(e, read));
        }
    }
    return { node, structure: read, change: read, entered: read };
}

function aboutTab(model) {
    const node = h('div', { class: 'tab result' });
    async function read() {
        fill(node, h('p', { class: 'muted' }, 'Reading\u2026'));
        try {
            const [history, plan] = await Promise.all([get(path('plans', model.planId, 'history')), get(path('plans', model.planId), { steps: false, document: model.steps.length <= DOCUMENT_STEPS_MAX || undefined })]);
            const part = (name, list) => (list?.length ? h('section', null, h('h2', null, name), value(list)) : null);
            fill(node, part('Orders', history.orders), part('Reviews', history.reviews), part('Phases', history.phases), part('Revisions', history.revisions), part('Replans', history.replans),
                part('Handoffs', history.handoffs), plan.about && Object.keys(plan.about).length ? h('section', null, h('h2', null, 'About'), h('div', { class: 'value' }, tree(plan.about, 2))) : null,
                plan.document ? h('section', null, h('h2', null, 'Document'), value(plan.document)) : null);
        } catch (e) {
            fill(node, problem(e, read));
        }
    }
    return { node, structure() {}, change() {}, entered: read };
}

const TABS = [['graph', 'Graph'], ['steps', 'Steps'], ['timeline', 'Timeline'], ['events', 'Events'], ['result', 'Result'], ['about', 'History']];

export function planPage(parts, q) {
    const model = new PlanModel(parts[0]);
    const panel = stepPanel(model, () => pick(null));
    const tabs = {
        graph: graphTab(model, pick, (steps) => {
            openTab('steps');
            tabs.steps.showGroup(steps);
        }),
        steps: stepsTab(model, pick),
        timeline: timelineTab(model, pick),
        events: storyTab(model, pick),
        result: resultTab(model),
        about: aboutTab(model),
    };
    let tab = null;
    let picked = null;
    const head = h('div', { class: 'plan-head' });
    const actions = h('div', { class: 'row wraps', role: 'group', 'aria-label': 'Actions' });
    const bar = h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Views of the plan' });
    const body = h('div', { class: 'tab-body', role: 'tabpanel', id: 'tabpanel', 'aria-labelledby': 'tab-graph' });
    const errors = h('div', null);
    const names = new Map(TABS.map(([name, text]) => {
        const t = h('button', { type: 'button', role: 'tab', id: 'tab-' + name, 'aria-controls': 'tabpanel', onclick: () => openTab(name) }, text);
        bar.append(t);
        return [name, t];
    }));
    bar.addEventListener('keydown', (e) => {
        const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
        if (by) {
            const at = TABS.findIndex(([n]) => n === tab);
            openTab(TABS[(at + by + TABS.length) % TABS.length][0]);
            names.get(tab).focus();
        }
    });

    function address() {
        history.replaceState(null, '', `#/plans/${model.planId}${tab === 'graph' ? '' : '/' + tab}${picked ? '?step=' + encodeURIComponent(picked) : ''}`);
    }

    function openTab(name) {
        if (tab === name) {
            return;
        }
        tab = tabs[name] ? name : 'graph';
        for (const [n, t] of names) {
            t.setAttribute('aria-selected', n === tab);
            t.tabIndex = n === tab ? 0 : -1;
        }
        body.setAttribute('aria-labelledby', 'tab-' + tab);
        fill(body, tabs[tab].node);
        if (model.plan) {
            tabs[tab].structure();
        }
        tabs[tab].entered?.();
        address();
    }

    function pick(stepId) {
        picked = stepId;
        tabs.graph.pick(stepId);
        if (stepId) {
            panel.open(stepId);
        } else {
            panel.shut();
            body.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
        }
        address();
    }

    let sign = '';
    function showHead() {
        const p = model.plan;
        const took = p.completedAt ? ms(p.completedAt) - ms(p.createdAt) : Date.now() - ms(p.createdAt);
        const now = JSON.stringify([p.status, p.counts, p.query, p.paused, p.cancelling, p.usage, p.failureReason, Math.floor(took / 1000), p.revision]);
        if (now === sign) {
            return;
        }
        const buttons = JSON.stringify([p.status, p.paused, p.cancelling, model.steps.length > 0]);
        sign = now;
        document.title = `${p.status}: ${title(p).slice(0, 60)} \u00b7 Baton`;
        const facts = [
            h('button', { type: 'button', class: 'fact mono', title: 'Copy the id ' + p.planId, onclick: () => navigator.clipboard?.writeText(p.planId).then(() => toast('The id is copied.')) }, short(p.planId), icon('copy', 13)),
            h('span', { class: 'fact', title: fully(p.createdAt) }, ago(p.createdAt)),
            h('span', { class: 'fact num' }, duration(took)),
            p.owner ? h('span', { class: 'fact' }, 'of ' + p.owner) : null,
            p.sessionId ? h('a', { class: 'fact', href: '#/sessions/' + encodeURIComponent(p.sessionId) }, 'session ' + short(p.sessionId)) : null,
            p.schedule ? h('a', { class: 'fact', href: '#/schedules/' + encodeURIComponent(p.schedule) }, 'schedule ' + p.schedule) : null,
            p.parentPlanId ? h('a', { class: 'fact', href: '#/plans/' + p.parentPlanId }, 'from ' + short(p.parentPlanId)) : null,
            p.revision > 1 ? h('span', { class: 'fact' }, 'revision ' + p.revision) : null,
            tokens(p.usage) ? h('span', { class: 'fact num' }, `${number(tokens(p.usage))} tokens ${money(p.usage.costMicros)}`) : null,
        ];
        const c = p.counts ?? {};
        const parts = [['completed', c.completed], ['running', (c.running ?? 0) + (c.in_progress ?? 0)], ['waiting', (c.waiting ?? 0) + (c.sleeping ?? 0)], ['failed', c.failed], ['skipped', c.skipped], ['cancelled', c.cancelled]].filter(([, n]) => n);
        fill(head, h('a', { class: 'back', href: '#/plans' }, icon('back', 16), 'Plans'),
            h('div', { class: 'row top' }, h('h1', { title: title(p) }, title(p)), actions),
            h('div', { class: 'row wraps facts' }, badge(p.cancelling && !isOver(p.status) ? 'cancelling' : p.status), facts),
            c.total ? h('div', { class: 'row progress-row' }, progress({ ...c, running: (c.running ?? 0) + (c.in_progress ?? 0) + (c.ready ?? 0) }), h('span', { class: 'muted num' }, `${parts.map(([n, x]) => `${x} ${n}`).join(', ') || 'nothing yet'} of ${c.total}`)) : null,
            p.failureReason ? h('div', { class: 'problem small', role: 'alert' }, h('strong', null, 'It failed: '), p.failureReason.slice(0, 600)) : null,
            p.damaged ? h('div', { class: 'problem', role: 'alert' }, h('strong', null, 'In quarantine'), h('p', null, p.damaged)) : null);
        if (actions.dataset.mark !== buttons) {
            actions.dataset.mark = buttons;
            fill(actions, planActions(model));
        }
    }

    model.addEventListener('structure', () => {
        tabs[tab]?.structure();
        panel.change();
    });
    model.addEventListener('change', () => {
        showHead();
        tabs[tab]?.change();
        panel.change();
    });
    model.addEventListener('history', () => {
        tabs[tab]?.history?.();
        panel.change();
    });
    const clock = setInterval(() => model.plan && showHead(), 1000);

    async function load() {
        try {
            await model.load();
            fill(errors);
            if (q.get('step') && picked === null) {
                pick(q.get('step'));
            }
        } catch (e) {
            fill(errors, problem(e, load), h('p', null, h('a', { href: '#/plans' }, 'To all plans')));
        }
    }
    openTab(parts[1] ?? 'graph');
    load();
    return {
        node: h('div', { class: 'page fills plan' }, head, errors, bar, h('div', { class: 'split' }, body, panel.node)),
        update(next, query) {
            openTab(next[1] ?? 'graph');
            const step = query.get('step');
            if (step !== picked) {
                pick(step);
            }
        },
        escape: () => picked && pick(null),
        leave() {
            clearInterval(clock);
            model.close();
            Object.values(tabs).forEach((t) => t.leave?.());
        },
    };
}
