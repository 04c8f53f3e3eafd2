// What waits for a person: what would be done, with its values; approve, edit, reject, skip, answer.

import { get, may, path, post } from './api.js';
import { badge, button, empty, field, fill, h, icon, problem } from './dom.js';
import { ago, fully, short } from './format.js';
import { jsonOf } from './actions.js';
import { listen } from './events.js';
import { toast } from './dialog.js';
import { markdown, result, textBlock, tree, value } from './value.js';

const KINDS = {
    before_step: ['Approve before it begins', 'Approve'],
    human_review: ['Review', 'Approve'],
    approval: ['An agent asks for approval', 'Approve'],
    input: ['An agent asks a question', 'Answer'],
    failure: ['A step failed', 'Try again'],
    unknown_outcome: ['Nobody knows whether it was done', 'Run it again'],
    plan: ['Sign the plan off', 'Sign off'],
    planning: ['The plan cannot run', 'Plan again'],
};
const noSkip = new Set(['plan', 'planning']);

/** Fields for the members of a JSON Schema, when it is that simple; otherwise null. */
function formOf(schema) {
    const members = Object.entries(schema?.properties ?? {});
    if (schema?.type !== 'object' || members.length === 0 || members.length > 12 || !members.every(([, m]) => ['string', 'number', 'integer', 'boolean'].includes(m.type))) {
        return null;
    }
    const inputs = members.map(([name, m]) => {
        const required = (schema.required ?? []).includes(name);
        const input = m.enum ? h('select', null, required ? null : h('option', { value: '' }, ''), m.enum.map((x) => h('option', { value: x }, x)))
            : m.type === 'boolean' ? h('input', { type: 'checkbox' }) : h('input', { type: m.type === 'string' ? 'text' : 'number', step: m.type === 'number' ? 'any' : '1', required });
        return { name, m, input, node: field(m.title ?? name, input, m.description) };
    });
    return {
        node: h('div', null, inputs.map((i) => i.node)),
        read: () => Object.fromEntries(inputs.filter((i) => i.m.type === 'boolean' || i.input.value !== '').map((i) => [i.name, i.m.type === 'boolean' ? i.input.checked : i.m.type === 'string' ? i.input.value : Number(i.input.value)])),
    };
}

function subject(r) {
    const steps = r.steps?.length ? h('section', null, h('h3', null, `${r.stepCount ?? r.steps.length} steps`), h('div', { class: 'scrolls', tabindex: 0, role: 'region', 'aria-label': 'Steps' }, h('table', null,
        h('thead', null, h('tr', null, ['Step', 'Agent', 'Task', 'Parameters', 'Effects'].map((x) => h('th', null, x)))),
        h('tbody', null, r.steps.slice(0, 300).map((s) => h('tr', null, h('td', { class: 'strong' }, s.stepId), h('td', null, [s.agentId, s.skill].filter(Boolean).join(' / ')), h('td', null, s.task ?? ''), h('td', null, s.parameters ? tree(s.parameters, 1) : ''), h('td', null, s.effects ? badge(s.effects === 'unsafe' ? 'failed' : 'pending', s.effects) : ''))))))) : null;
    return [
        r.prompt ? h('div', { class: 'prompt markdown' }, markdown(r.prompt)) : null,
        r.task && r.task !== r.prompt ? h('p', { class: 'task' }, r.task) : null,
        h('dl', { class: 'pairs' }, [['Agent', r.agentId], ['Skill', r.skill], ['Effects', r.effects], ['Asked', r.askedAt && fully(r.askedAt)], ['Until', r.until && fully(r.until)], ['Falls back to', r.fallbackAgents?.join(', ')], ['Revision', r.revision]]
            .filter(([, v]) => v).map(([k, v]) => [h('dt', null, k), h('dd', null, v)])),
        r.error ? h('div', { class: 'problem' }, textBlock(r.error)) : null,
        r.parameters !== undefined && r.parameters !== null ? h('section', null, h('h3', null, 'What would be sent'), value(r.parameters)) : null,
        r.feedback ? h('section', null, h('h3', null, 'Feedback'), textBlock(r.feedback)) : null,
        steps,
        r.upstreamResults?.length ? h('section', null, h('h3', null, 'Results before it'), r.upstreamResults.map((u) => h('details', { open: r.upstreamResults.length < 3 }, h('summary', null, u.stepId), result({ text: u.result, data: u.data }), u.truncated ? h('p', { class: 'hint' }, 'It is cut here; the step has the whole.') : null))) : null,
    ];
}

function decideForm(r, after) {
    const [, verb] = KINDS[r.kind] ?? ['', 'Approve'];
    const comment = h('textarea', { rows: 2, maxlength: 2000 });
    const made = r.kind === 'input' ? formOf(r.schema) : null;
    const wantsData = ['before_step', 'approval', 'human_review', 'input', 'failure', 'unknown_outcome', 'planning'].includes(r.kind) && !made;
    const edit = h('textarea', { rows: 6, class: 'mono', spellcheck: 'false' });
    const start = r.kind !== 'input' && r.kind !== 'planning' && r.parameters && typeof r.parameters === 'object' ? JSON.stringify(r.parameters, null, 2) : '';
    edit.value = start;
    const errors = h('div', { 'aria-live': 'assertive' });

    async function decide(decision) {
        try {
            let data;
            if (decision === 'approve') {
                data = made ? made.read() : wantsData && edit.value.trim() !== start.trim() ? jsonOf(edit, 'edit') : undefined;
            }
            await post(path('reviews', r.reviewId, 'decide'), { decision, comment: comment.value.trim() || undefined, edit: data });
            toast({ approve: 'Approved.', reject: 'Rejected.', skip: 'Skipped.' }[decision]);
            after();
        } catch (e) {
            errors.replaceChildren(problem(e));
        }
    }
    return h('form', { class: 'decide', onsubmit: (e) => {
        e.preventDefault();
        decide('approve');
    } }, made?.node, wantsData ? h('details', { open: r.kind === 'input' || r.kind === 'human_review' || start !== '' }, h('summary', null, r.kind === 'input' ? 'Answer' : r.kind === 'planning' ? 'A plan instead' : r.kind === 'human_review' ? 'Data' : 'Edit the parameters'),
        field(r.kind === 'planning' ? '{"plan": \u2026} as JSON' : 'JSON', edit, r.kind === 'input' && r.schema ? 'It must fit: ' + JSON.stringify(r.schema).slice(0, 300) : start ? 'What you change here is sent instead.' : 'It may be empty.')) : null,
    field('Comment', comment, r.kind === 'human_review' ? 'It becomes the result of the step.' : 'It is kept with the decision.'), errors,
    h('div', { class: 'row wraps' }, h('button', { type: 'submit', class: 'button primary', 'data-action': 'approve' }, verb),
        noSkip.has(r.kind) ? null : button('Skip', () => decide('skip'), { 'data-action': 'skip' }), button('Reject', () => decide('reject'), { kind: 'danger', 'data-action': 'reject' })));
}

export function reviewsPage(parts) {
    let picked = parts[0] || null;
    let list = [];
    const inbox = h('div', { class: 'inbox' });
    const detail = h('div', { class: 'card detail', tabindex: -1, role: 'region', 'aria-label': 'Review' });
    const status = h('span', { class: 'muted', 'aria-live': 'polite' });
    const page = h('div', { class: 'page two' }, h('header', { class: 'head' }, h('h1', null, 'Reviews'), status), h('div', { class: 'columns' }, inbox, detail));

    function entries() {
        status.textContent = list.length ? `${list.length} wait${list.length === 1 ? 's' : ''}` : '';
        page.classList.toggle('is-picked', picked !== null);
        fill(inbox, list.length === 0 ? empty('Nothing waits for you', 'When a plan needs an approval, an answer or a decision, it appears here.') : h('ul', { class: 'entries' }, list.map((r) => h('li', null,
            h('a', { class: 'entry', href: '#/reviews/' + encodeURIComponent(r.reviewId), 'aria-current': r.reviewId === picked ? 'true' : null },
                h('strong', null, (r.prompt || r.task || KINDS[r.kind]?.[0] || r.kind).slice(0, 160)),
                h('span', { class: 'sub' }, `${KINDS[r.kind]?.[0] ?? r.kind} \u00b7 ${r.stepId ?? 'the plan'} \u00b7 ${short(r.planId)}${r.askedAt ? ' \u00b7 ' + ago(r.askedAt) : ''}`))))));
    }

    async function show() {
        detail.hidden = picked === null;
        if (picked === null) {
            return;
        }
        try {
            const { review: r } = await get(path('reviews', picked));
            fill(detail, h('a', { class: 'back', href: '#/reviews' }, icon('back', 16), 'All reviews'),
                h('h2', null, KINDS[r.kind]?.[0] ?? r.kind), h('p', { class: 'muted' }, h('a', { href: `#/plans/${r.planId}${r.stepId ? '?step=' + encodeURIComponent(r.stepId) : ''}` }, `${r.stepId ? 'step ' + r.stepId + ' of ' : ''}plan ${short(r.planId)}`)),
                r.decision ? h('p', null, badge(r.decision === 'approve' ? 'completed' : 'failed', r.decision), ` by ${r.by?.user || r.by?.id || r.by?.via || 'somebody'}${r.comment ? ': ' + r.comment : ''}`) : null,
                subject(r), r.decision ? null : may('reviewer') ? decideForm(r, next) : h('p', { class: 'hint' }, `Your role is observer or submitter: a reviewer decides this.`));
            detail.focus({ preventScroll: true });
            page.parentNode?.scrollTo(0, 0);
        } catch (e) {
            fill(detail, problem(e, show));
        }
    }

    function next() {
        const at = list.findIndex((r) => r.reviewId === picked);
        const other = list.filter((r) => r.reviewId !== picked)[Math.max(0, at)] ?? list.find((r) => r.reviewId !== picked);
        location.hash = other ? '#/reviews/' + encodeURIComponent(other.reviewId) : '#/reviews';
        read();
    }

    async function read() {
        try {
            list = (await get('/v1/reviews', { limit: 500 })).reviews ?? [];
            entries();
        } catch (e) {
            fill(inbox, problem(e, read));
        }
    }

    let timer = 0;
    const deaf = listen((events) => {
        if (events === null || events.some((e) => /^(plan_step_waiting|review_|plan_paused|plan_resumed|plan_completed)/.test(e.type))) {
            timer ||= setTimeout(() => {
                timer = 0;
                read();
            }, 120);
        }
    });
    read();
    show();
    return {
        node: page,
        update(p) {
            picked = p[0] || null;
            entries();
            show();
        },
        escape: () => (location.hash = '#/reviews'),
        leave() {
            deaf();
            clearTimeout(timer);
        },
    };
}
