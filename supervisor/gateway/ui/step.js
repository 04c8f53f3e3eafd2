// One step: what it was asked, what it gave back, how often it was tried, who had it.

import { get, may, owns, path } from './api.js';
import { badge, button, fill, h, icon, problem } from './dom.js';
import { at, bytes, duration, fully, ms, tokens } from './format.js';
import { changeStep, fork, signal } from './actions.js';
import { DOCUMENT_STEPS_MAX, isOver } from './plan_model.js';
import { words } from './story.js';
import { spans } from './timeline.js';
import { result, textBlock, tree } from './value.js';

const section = (title, ...content) => h('section', null, h('h3', null, title), content);
const pairs = (list) => h('dl', { class: 'pairs' }, list.filter(([, v]) => v !== undefined && v !== null && v !== '').map(([k, v]) => [h('dt', null, k), h('dd', null, v)]));

const RULES = ['verify', 'signature', 'when', 'runIf', 'wait', 'compensate', 'onFailure', 'maxRetries', 'timeoutMs', 'requiresApproval', 'verifyWith', 'gate', 'fallbackAgents', 'concurrencyKey', 'effects', 'child'];

function attempts(model, step) {
    if (model.historyState === 'none' || model.historyState === 'loading') {
        return h('p', { class: 'muted' }, 'Reading events\u2026');
    }
    const mine = model.history.filter((e) => e.stepId === step.stepId);
    const bars = spans(mine).get(step.stepId) ?? [];
    return bars.length === 0 ? h('p', { class: 'muted' }, 'None yet.')
        : h('ol', { class: 'attempts' }, bars.map((b) => h('li', null, h('span', { class: 'span is-' + b.kind, 'aria-hidden': 'true' }), h('span', null, b.text.slice(0, 300)),
            h('span', { class: 'muted num' }, `${at(new Date(b.from).toISOString())}, ${b.to ? duration(b.to - b.from) : 'still'}`))));
}

function log(model, step) {
    const mine = model.history.filter((e) => (e.stepId ?? e.planStepId) === step.stepId);
    return mine.length === 0 ? null : section('Log', h('ol', { class: 'log', tabindex: 0 }, mine.slice(-200).map((e) => h('li', null, h('time', { class: 'muted mono', title: fully(e.timestamp) }, at(e.timestamp)), ' ', words(e).slice(0, 600)))));
}

function handoffs(model, step) {
    const mine = model.history.filter((e) => e.type === 'agent_handoff' && e.planStepId === step.stepId && e.reason !== 'plan_step');
    return mine.length === 0 ? null : section('Handoffs', h('ol', { class: 'log' }, mine.map((e) => h('li', null, `${e.fromAgent.agentId} \u2192 ${e.toAgent.agentId} (${e.reason})`, e.explanation ? h('p', { class: 'muted' }, e.explanation) : null))));
}

export function stepPanel(model, close) {
    const body = h('div', { class: 'panel-body' });
    const node = h('aside', { class: 'panel', hidden: true, 'aria-label': 'Step', tabindex: -1 }, body);
    let stepId = null;
    let whole = null; // its result, as it was read
    let readFor = '';
    let sign = '';

    async function read(step) {
        const mark = step.stepId + step.status + step.completedAt;
        if (readFor === mark || !isOver(step.status) || !step.resultLen) {
            return;
        }
        readFor = mark;
        try {
            whole = await get(path('plans', model.planId, 'result'), { stepId: step.stepId });
        } catch (e) {
            whole = { error: e };
        }
        if (stepId === step.stepId) {
            sign = '';
            show();
        }
    }

    function gave(step) {
        if (step.error) {
            return section('Error', h('div', { class: 'problem' }, h('strong', null, step.errorClass || 'It failed'), textBlock(step.error), step.hint ? h('p', null, step.hint) : null), step.details ? tree(step.details, 1) : null);
        }
        if (whole?.error) {
            return section('Result', problem(whole.error));
        }
        if (whole) {
            return section('Result', result(whole.result ?? whole.aggregatedResult), whole.truncated ? h('p', { class: 'hint' }, `It was cut: the whole has ${bytes(step.resultLen)}.`) : null);
        }
        return step.result ? section('Result', textBlock(step.result)) : null;
    }

    function actions(step) {
        const plan = model.plan;
        const list = [];
        if (step.waiting?.reviewId) {
            list.push(h('a', { class: 'button primary', href: '#/reviews/' + encodeURIComponent(step.waiting.reviewId) }, may('reviewer') ? 'Decide' : 'Look at the review'));
        }
        if (step.children?.planId) {
            list.push(h('a', { class: 'button', href: '#/plans/' + step.children.planId }, 'Open its steps'));
        }
        if (owns(plan) && isOver(plan.status)) {
            list.push(button('Fork from here', () => fork({ ...model.plan, steps: model.steps }, step.stepId)));
        } else if (owns(plan) && !isOver(step.status) && !step.superseded) {
            if (step.waiting?.signal) {
                list.push(button('Send the signal', () => signal(plan, step.waiting.signal)));
            }
            list.push(button('Skip', () => changeStep(model, step, 'skip_steps')), button('Cancel step', () => changeStep(model, step, 'cancel_step'), { kind: 'danger' }));
        }
        return list.length ? h('div', { class: 'row wraps' }, list) : null;
    }

    function show() {
        const step = model.byId.get(stepId);
        if (!step) {
            return;
        }
        const now = [JSON.stringify({ ...step, waitsFor: 0 }), model.history.length && model.historyState !== 'loading' ? model.history.filter((e) => (e.stepId ?? e.planStepId) === stepId).length : model.historyState, whole ? 1 : 0, model.plan.status, model.documentOf, model.document.size].join('|');
        if (now === sign) {
            return;
        }
        sign = now;
        const written = model.document.get(stepId) ?? {};
        const rules = Object.fromEntries(RULES.filter((r) => written[r] !== undefined).map((r) => [r, written[r]]));
        const took = step.durationMs ?? (step.startedAt ? (step.completedAt ? ms(step.completedAt) : Date.now()) - ms(step.startedAt) : undefined);
        const open = new Set([...body.querySelectorAll('details[open][data-name]')].map((d) => d.dataset.name));
        const top = body.scrollTop;
        fill(body,
            h('header', null, h('div', null, h('h2', null, stepId), badge(step.superseded ? 'superseded' : step.status)), button('Close', close, { kind: 'icon quiet', icon: icon('close'), title: 'Close (Esc)' })),
            step.task ? h('p', { class: 'task' }, step.task) : null,
            step.waiting?.text && !isOver(step.status) ? h('p', { class: 'why' }, icon('waiting', 16), step.waiting.text, step.waiting.until ? `, until ${at(step.waiting.until)}` : '') : null,
            step.reason && isOver(step.status) ? h('p', { class: 'muted' }, 'Reason: ' + step.reason) : null,
            actions(step),
            pairs([['Agent', step.agentName || step.agentId], ['Skill', step.skill], ['After', model.before(step).slice(0, 20).join(', ')], ['Attempts', step.attempts], ['Began', step.startedAt && fully(step.startedAt)],
                ['Took', took !== undefined ? duration(took) : ''], ['Instance', step.instanceId], ['Condition', step.condition], ['Tokens', tokens(whole?.tokenUsage) || '']]),
            gave(step),
            model.steps.length > DOCUMENT_STEPS_MAX ? h('p', { class: 'hint' }, 'Parameters of so large a plan are not shown here: ', h('code', null, 'baton plan --full'), '.') : null,
            written.parameters !== undefined ? section('Parameters', h('div', { class: 'value' }, tree(written.parameters, 2))) : null,
            Object.keys(rules).length ? section('Rules', h('div', { class: 'value' }, tree(rules, 1))) : null,
            section('Attempts', attempts(model, step)), handoffs(model, step), log(model, step),
            step.contextTruncated ? h('p', { class: 'hint' }, 'It got a part of the results before it: they were too large.') : null);
        body.querySelectorAll('details[data-name]').forEach((d) => open.has(d.dataset.name) && (d.open = true));
        body.scrollTop = top;
        read(step);
    }

    return {
        node,
        open(id) {
            stepId = id;
            [whole, readFor, sign] = [null, '', ''];
            node.hidden = !model.byId.has(id);
            node.setAttribute('aria-label', 'Step ' + id);
            model.loadHistory();
            model.loadDocument();
            show();
            body.scrollTop = 0;
            if (!node.hidden) {
                node.focus({ preventScroll: true });
            }
        },
        shut() {
            stepId = null;
            node.hidden = true;
        },
        change() {
            if (stepId !== null) {
                node.hidden = !model.byId.has(stepId);
                show();
            }
        },
    };
}
