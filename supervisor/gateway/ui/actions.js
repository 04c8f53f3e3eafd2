// What a person may do with a plan. Each asks before it does what cannot be undone.

import { owns, path, post } from './api.js';
import { button, field, h } from './dom.js';
import { dialog, toast } from './dialog.js';
import { isOver } from './plan_model.js';

const area = (more) => h('textarea', { rows: 3, ...more });

/** JSON of a text field; nothing when it is empty. */
export function jsonOf(input, name) {
    const text = input.value.trim();
    if (!text) {
        return undefined;
    }
    try {
        return JSON.parse(text);
    } catch (e) {
        throw Object.assign(new Error(`${name}: expected JSON. ${e.message}`), { title: 'That is no JSON' });
    }
}

function withReason(title, text, label, kind, act) {
    const reason = h('input', { type: 'text', maxlength: 500 });
    return dialog({ title, label, kind, content: [h('p', null, text), field('Reason', reason, 'It is kept with the plan. It may be empty.')], act: () => act(reason.value.trim() || undefined) });
}

async function cancel(plan) {
    const done = await withReason('Cancel the plan?', 'Steps that run are asked to stop, and no others begin. This cannot be undone; it can be retried as a new plan.', 'Cancel the plan', 'danger',
        (reason) => post(path('plans', plan.planId, 'cancel'), { reason }));
    if (done) {
        toast('The plan is cancelled.');
    }
}

async function pause(plan) {
    const done = await withReason('Pause the plan?', 'Steps that run go on; no others begin until you resume it.', 'Pause', 'primary', (reason) => post(path('plans', plan.planId, 'pause'), { reason }));
    if (done) {
        toast('The plan is paused.');
    }
}

async function resume(plan) {
    try {
        await post(path('plans', plan.planId, 'resume'), {});
        toast('The plan goes on.');
    } catch (e) {
        toast(e.message, 'bad');
    }
}

function follow(answer) {
    if (answer?.planId) {
        toast(`A new plan, with ${answer.reused ?? 0} results reused.`);
        location.hash = '#/plans/' + answer.planId;
    }
}

export async function retry(plan) {
    const key = crypto.randomUUID();
    follow(await dialog({ title: 'Retry the plan?', label: 'Retry', content: h('p', null, 'A new plan begins. Results of steps that completed are reused; the others run again.'),
        act: () => post(path('plans', plan.planId, 'retry'), {}, { key }) }));
}

export async function fork(plan, step) {
    const key = crypto.randomUUID();
    const ids = h('select', null, (plan.steps ?? []).slice(0, 2000).map((s) => h('option', { value: s.stepId, selected: s.stepId === step }, s.stepId)));
    const policy = area({ placeholder: '{"maxRetries": 5}', class: 'mono' });
    follow(await dialog({ title: 'Fork the plan', label: 'Fork', content: [h('p', null, 'A new plan runs one step, and what depends on it, again. All other results are reused.'),
        field('From the step', ids), field('Policy', policy, 'JSON that changes the rules of the plan; it may be empty.')],
    act: () => post(path('plans', plan.planId, 'fork'), { fromStep: ids.value, policy: jsonOf(policy, 'policy') }, { key }) }));
}

export async function signal(plan, name = '') {
    const key = crypto.randomUUID();
    const input = h('input', { type: 'text', required: true, maxlength: 64, value: name });
    const data = area({ placeholder: '{"paid": true}', class: 'mono' });
    const done = await dialog({ title: 'Send a signal', label: 'Send', content: [h('p', null, 'A step that waits for this name takes it; otherwise it is kept for one.'), field('Name', input), field('Data', data, 'JSON; it may be empty.')],
        act: () => post(path('plans', plan.planId, 'signal'), { name: input.value.trim(), data: jsonOf(data, 'data') }, { key }) });
    if (done) {
        toast(done.stepId ? `The step ${done.stepId} took it.` : 'It is kept until a step waits for it.');
    }
}

/** Skips or cancels one step of an open plan. */
export async function changeStep(model, step, kind) {
    const done = await withReason(kind === 'skip_steps' ? `Skip ${step.stepId}?` : `Cancel ${step.stepId}?`,
        kind === 'skip_steps' ? 'It does not run. What depends on it begins as if it had completed.' : 'An attempt that is under way is cancelled.',
        kind === 'skip_steps' ? 'Skip the step' : 'Cancel the step', 'danger', (reasoning) => post(path('plans', model.planId, 'modify'), { kind, stepId: step.stepId, reasoning }, { match: model.plan.revision }));
    if (done) {
        toast('The plan has a new revision.');
    }
}

/** The buttons that fit the plan and the person. */
export function planActions(model) {
    const plan = model.plan;
    if (!plan || !owns(plan)) {
        return [];
    }
    const whole = { ...plan, steps: model.steps };
    if (isOver(plan.status)) {
        const c = plan.counts ?? {};
        const done = plan.status === 'completed' && !c.failed && !c.cancelled;
        return [done ? null : button('Retry', () => retry(plan), { kind: 'primary', 'data-action': 'retry' }), model.steps.length ? button('Fork', () => fork(whole), { 'data-action': 'fork' }) : null].filter(Boolean);
    }
    const requested = (plan.paused ?? []).includes('requested') || plan.status === 'paused';
    return [button('Signal', () => signal(plan, model.steps.find((s) => s.waiting?.signal)?.waiting.signal), { 'data-action': 'signal' }),
        requested ? button('Resume', () => resume(plan), { kind: 'primary', 'data-action': 'resume' }) : button('Pause', () => pause(plan), { 'data-action': 'pause' }),
        plan.cancelling ? null : button('Cancel', () => cancel(plan), { kind: 'danger', 'data-action': 'cancel' })].filter(Boolean);
}
