// The events of the plan in words, as they come.

import { button, dot, empty, h } from './dom.js';
import { at, duration, fully } from './format.js';
import { tree } from './value.js';
import { vlist } from './vlist.js';

const step = (e) => e.stepId ?? e.planStepId ?? '';

/** One line for each type of event; what is not here shows its fields. */
const WORDS = {
    planning_started: (e) => `${e.agentId || 'an agent'} is asked for a plan${e.goal ? ': ' + e.goal : ''}`,
    planning_retry: (e) => `the answer was no plan that can run; asked again, attempt ${e.attempt}`,
    planning_failed: (e) => `no plan was made: ${e.reason ?? ''}`,
    plan_generated: (e) => `the plan has ${e.estimatedSteps} steps`,
    plan_started: (e) => `the plan starts, ${e.stepCount} steps`,
    plan_step_started: (e) => `begins${e.agentName || e.agentId ? ' at ' + (e.agentName || e.agentId) : ''}, attempt ${e.attempt}`,
    agent_handoff: (e) => `${e.fromAgent.agentName || e.fromAgent.agentId} \u2192 ${e.toAgent.agentName || e.toAgent.agentId}: ${e.explanation ?? e.reason}`,
    plan_step_progress: (e) => `${e.percent !== undefined ? Math.round(e.percent) + ' %, ' : ''}${e.text ?? ''}`,
    plan_step_retry: (e) => `attempt ${e.attempt} failed: ${e.error ?? e.errorClass}; the next one in ${duration(e.delayMs)}`,
    plan_step_round: (e) => `round ${e.rounds} is over; the next one in ${duration(e.delayMs)}`,
    calls_started: (e) => `turn ${e.turn}: ${e.agentId || 'its agent'} makes ${e.calls === 1 ? 'a call' : e.calls + ' calls'}`,
    calls_finished: (e) => `turn ${e.turn} is over; its agent gets the results`,
    plan_step_waiting: (e) => `waits for a person: ${e.prompt || e.kind}`,
    wait_started: (e) => (e.signal ? `waits for the signal ${e.signal}` : `waits until ${fully(e.until) || duration(e.delayMs)}`),
    signal_received: (e) => `the signal ${e.name} came`,
    review_decided: (e) => `${e.decision}${e.by?.id ? ' by ' + (e.by.user || e.by.id) : ''}${e.comment ? ': ' + e.comment : ''}`,
    plan_step_verification_failed: (e) => `the verifier rejected attempt ${e.attempt}: ${e.diagnosis ?? ''}`,
    fallback_used: (e) => `attempt ${e.attempt ?? ''} failed; another agent takes over: ${e.toAgentId ?? e.agentId ?? ''}`,
    replan_started: (e) => `it failed, and ${e.agentId || 'an agent'} is asked for new steps: ${e.diagnosis ?? ''}`,
    replan_finished: (e) => (e.ok ? `${e.newSteps ?? 0} new steps, revision ${e.revision}` : `no new steps: ${e.reason ?? ''}`),
    plan_step_completed: (e) => `${e.status}${e.durationMs !== undefined ? ' after ' + duration(e.durationMs) : ''}${e.error ? ': ' + e.error : e.result ? ': ' + e.result : ''}`,
    plan_modified: (e) => `changed (${e.kind}), revision ${e.revision}${e.reasoning ? ': ' + e.reasoning : ''}`,
    plan_paused: (e) => `paused: ${e.reason}${e.comment ? ', ' + e.comment : ''}`,
    plan_resumed: (e) => `goes on: ${e.reason}`,
    plan_cancelling: (e) => `is cancelled${e.reason ? ': ' + e.reason : ''}`,
    synthesis_started: (e) => `all steps have ended; ${e.agentId || 'an agent'} writes the answer`,
    synthesis_finished: (e) => (e.ok ? 'the answer is written' : `the answer is the joined results: ${e.reason ?? ''}`),
    text_delta: (e) => e.text,
    plan_completed: (e) => `the plan ${e.status}${e.failureReason ? ': ' + e.failureReason : ''}`,
};

const MARKS = { plan_step_started: 'running', plan_step_retry: 'sleeping', plan_step_waiting: 'waiting', wait_started: 'sleeping', plan_started: 'running', plan_paused: 'waiting',
    planning_started: 'running', planning_failed: 'failed', plan_step_verification_failed: 'failed', quality_gate_failed: 'failed', plan_cancelling: 'cancelled' };
const mark = (e) => (e.type === 'plan_step_completed' || e.type === 'plan_completed' ? e.status : MARKS[e.type] ?? 'pending');

export const words = (e) => (WORDS[e.type] ? WORDS[e.type](e) : JSON.stringify(Object.fromEntries(Object.entries(e).filter(([k]) => !HEAD.has(k)))));
const HEAD = new Set(['seq', 'planSeq', 'eventId', 'type', 'sessionId', 'planId', 'timestamp', 'tsMs']);

export function storyTab(model, pick) {
    let follow = true;
    const type = h('select', { 'aria-label': 'Type of event' }, h('option', { value: '' }, 'all events'));
    const search = h('input', { type: 'search', placeholder: 'Search events', 'aria-label': 'Search events' });
    const count = h('span', { class: 'muted', 'aria-live': 'polite' });
    const detail = h('div', { class: 'event-detail', hidden: true, role: 'region', 'aria-label': 'Fields of the event' });
    const known = new Set();

    const list = vlist({
        label: 'Events',
        columns: [
            { title: 'Time', class: 'c-clock mono', cell: (e) => h('span', { title: fully(e.timestamp) }, at(e.timestamp)) },
            { title: '', class: 'c-dot', cell: (e) => dot(mark(e)) },
            { title: 'Step', class: 'c-step', cell: (e) => step(e) },
            { title: 'Type', class: 'c-type mono', cell: (e) => e.type },
            { title: 'What', class: 'c-says', cell: (e) => words(e).slice(0, 400) },
        ],
        key: (e) => String(e.seq),
        sign: () => 'x',
        rowHeight: 34,
        open(e) {
            detail.hidden = false;
            detail.replaceChildren(h('div', { class: 'row' }, h('strong', { class: 'mono' }, `${e.seq} ${e.type}`), h('div', { class: 'grow' }),
                step(e) ? button('To the step', () => pick(step(e)), { kind: 'quiet small' }) : '', button('Close', () => (detail.hidden = true), { kind: 'quiet small' })), tree(e, 2));
        },
        emptyNode: () => (model.historyState === 'loading' ? h('p', { class: 'muted pad' }, 'Reading events\u2026') : empty('No event fits', 'Choose another type, or search for other words.')),
    });

    let n = -1;
    function filter(force) {
        if (!force && n === model.history.length) {
            return;
        }
        n = model.history.length;
        for (const e of model.history) {
            if (!known.has(e.type)) {
                known.add(e.type);
                type.append(h('option', { value: e.type }, e.type));
            }
        }
        const text = search.value.trim().toLowerCase();
        const found = model.history.filter((e) => (!type.value || e.type === type.value) && (!text || (step(e) + ' ' + e.type + ' ' + words(e)).toLowerCase().includes(text)));
        const scroll = list.root.firstChild;
        const atEnd = follow && scroll.scrollTop + scroll.clientHeight >= scroll.scrollHeight - 60;
        list.set(found);
        count.textContent = `${found.length} of ${n} events${model.historyState === 'loading' ? ', reading' : model.historyState === 'cut' ? ' (later ones are not read)' : ''}`;
        if (atEnd && n > 0 && !model.plan?.completedAt) {
            scroll.scrollTop = scroll.scrollHeight;
        }
    }
    type.addEventListener('change', () => filter(true));
    search.addEventListener('input', () => filter(true));
    return {
        node: h('div', { class: 'tab fills' }, h('div', { class: 'filters' }, h('div', { class: 'searchbox' }, search), type, count), list.root, detail),
        change: () => filter(false),
        structure: () => filter(true),
        history: () => filter(true),
        entered() {
            model.loadHistory();
            filter(true);
            list.focus();
        },
        leave() {
            follow = false;
        },
    };
}
