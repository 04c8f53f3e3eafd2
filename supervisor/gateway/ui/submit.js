// A new plan: a goal in words, or a document; what is wrong with it as one types, and how it would look.

import { ask, get, post } from './api.js';
import { badge, button, field, fill, h, problem, s } from './dom.js';
import { duration, money, number } from './format.js';
import { groups, place } from './layout.js';

const EXAMPLE = `goal: Add two numbers, and double the sum
steps:
  - stepId: sum
    agentId: calc
    skill: evaluate
    task: Add the two numbers
    parameters: {expression: "20 + 1"}
    dependsOn: []
  - stepId: double
    agentId: calc
    skill: evaluate
    task: Multiply the sum by two
    parameters: {expression: "{{results.sum.text}} * 2"}
    dependsOn: [sum]
`;
const SIZE = { width: 150, height: 44, gapX: 40, gapY: 14 };

/** The body of a request with the document in it: YAML has JSON in it, too, and its places stay right but for one line. */
export function yamlBody(text, more) {
    return Object.entries(more).filter(([, v]) => v !== undefined && v !== '').map(([k, v]) => `${k}: ${JSON.stringify(v)}\n`).join('') + 'plan:\n' + text.split('\n').map((l) => (l.trim() ? '  ' + l : '')).join('\n') + '\n';
}

/** A place in the body that was sent, as one in what the person typed. */
function placed(e, lines) {
    e.message = e.message.replace(/^body:(\d+):(\d+): /, (_, l, c) => `line ${Math.max(1, l - lines)}, column ${Math.max(1, c - 2)}: `);
    return e;
}

function preview(plan) {
    const steps = (plan?.steps ?? []).map((st, i) => ({ ...st, stepId: st.stepId ?? 'step-' + (i + 1), stepIndex: i }));
    if (steps.length === 0) {
        return null;
    }
    const chain = steps.every((st) => st.dependsOn === undefined);
    const nodes = groups(steps, (st) => (chain ? (st.stepIndex > 0 ? [steps[st.stepIndex - 1].stepId] : []) : [st.dependsOn ?? []].flat()), new Set());
    const made = place(nodes, SIZE);
    return h('div', { class: 'scrolls', tabindex: 0, role: 'region', 'aria-label': 'How the plan would look' }, s('svg', { class: 'graph', width: made.width + 20, height: made.height + 20, viewBox: `-10 -10 ${made.width + 20} ${made.height + 20}`, role: 'img', 'aria-label': `${steps.length} steps` },
        made.edges.map((e) => s('path', { class: 'link', d: 'M' + e.points.map((p) => `${p.x} ${p.y}`).join('L') })),
        nodes.map((n) => s('g', { class: 'node is-pending', transform: `translate(${n.x} ${n.y})` }, s('rect', { class: 'box', width: SIZE.width, height: SIZE.height, rx: 8 }), s('text', { class: 't1', x: 12, y: 19 }, (n.steps.length > 1 ? n.steps.length + ' steps' : n.id).slice(0, 18)), s('text', { class: 't2', x: 12, y: 35 }, (n.steps[0].agentId ?? n.steps[0].type ?? '').slice(0, 20))))));
}

export function submitPage() {
    let kind = 'goal';
    const goal = h('textarea', { rows: 5, maxlength: 8192, placeholder: 'Read /var/log/dpkg.log, then count the installs per day' });
    const planner = h('select', null, h('option', { value: '' }, 'as configured'));
    const doc = h('textarea', { rows: 20, class: 'mono code', spellcheck: 'false', wrap: 'off' });
    const session = h('input', { type: 'text', maxlength: 64 });
    const dry = h('input', { type: 'checkbox' });
    const found = h('div', { class: 'found', 'aria-live': 'polite' });
    const errors = h('div', { 'aria-live': 'assertive' });
    const submit = h('button', { type: 'submit', class: 'button primary', 'data-action': 'submit' }, 'Submit');
    const look = button('Preview the plan', () => lint(true), { 'data-action': 'preview' });
    let key = crypto.randomUUID();
    let stamp = 0;

    const goalPart = h('div', null, field('Goal', goal, 'Say what you want in words. A planner makes the steps.'), field('Planner', planner), h('div', { class: 'field' }, look));
    const docPart = h('div', { hidden: true }, field('Plan', doc, 'YAML or JSON. It is checked as you type.'), button('Insert an example', () => {
        doc.value = EXAMPLE;
        lint();
    }, { kind: 'quiet small' }));
    const tabs = [['goal', 'Goal in words'], ['doc', 'Plan document']].map(([name, text]) => h('button', { type: 'button', role: 'tab', id: 'kind-' + name, 'aria-selected': name === kind, 'aria-controls': 'kind-panel', tabindex: name === kind ? 0 : -1, onclick: () => choose(name) }, text));
    const bar = h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Kind of plan' }, tabs);
    const panel = h('div', { role: 'tabpanel', id: 'kind-panel', 'aria-labelledby': 'kind-goal' }, goalPart, docPart);

    function choose(name) {
        kind = name;
        tabs.forEach((t) => {
            t.setAttribute('aria-selected', t.id === 'kind-' + name);
            t.tabIndex = t.id === 'kind-' + name ? 0 : -1;
        });
        panel.setAttribute('aria-labelledby', 'kind-' + name);
        goalPart.hidden = name !== 'goal';
        docPart.hidden = name !== 'doc';
        fill(found);
        (name === 'goal' ? goal : doc).focus();
        if (name === 'doc') {
            lint();
        }
    }
    bar.addEventListener('keydown', (e) => {
        if (e.key === 'ArrowRight' || e.key === 'ArrowLeft') {
            choose(kind === 'goal' ? 'doc' : 'goal');
            tabs.find((t) => t.tabIndex === 0).focus();
        }
    });

    const sends = (url, more, extra) => (kind === 'goal' ? post(url, { goal: goal.value.trim(), planner: planner.value || undefined, ...more }, extra)
        : ask('POST', url, { body: yamlBody(doc.value, more), type: 'application/yaml', ...extra }));

    async function lint(asked) {
        const mine = ++stamp;
        if (kind === 'doc' ? !doc.value.trim() : !asked || !goal.value.trim()) {
            fill(found);
            return;
        }
        if (asked) {
            fill(found, h('p', { class: 'muted' }, h('span', { class: 'spinner' }), ' An agent makes the plan\u2026'));
        }
        try {
            const r = await sends('/v1/lint', {});
            if (mine !== stamp) {
                return;
            }
            const problems = r.problems ?? [];
            const bad = problems.filter((p) => p.severity === 'error').length;
            fill(found, h('div', { class: 'row' }, badge(r.valid ? 'completed' : 'failed', r.valid ? 'it can run' : `${bad} error${bad === 1 ? '' : 's'}`), r.valid && problems.length ? h('span', { class: 'muted' }, `${problems.length} warning${problems.length === 1 ? '' : 's'}`) : null,
                r.worstCaseMs ? h('span', { class: 'muted' }, `at worst ${duration(r.worstCaseMs)}${r.worstCaseTokens ? `, ${number(r.worstCaseTokens)} tokens` : ''} ${money(r.worstCaseCostMicros)}`) : null),
            problems.length ? h('ul', { class: 'problems' }, problems.slice(0, 200).map((p) => h('li', { class: 'is-' + p.severity }, badge(p.severity === 'error' ? 'failed' : 'waiting', p.severity), h('div', null, [p.stepId, p.field].filter(Boolean).length ? h('code', null, [p.stepId, p.field].filter(Boolean).join(' \u203a ')) : null, ' ', p.message)))) : null, preview(r.plan));
        } catch (e) {
            if (mine === stamp) {
                fill(found, problem(placed(e, 1)));
            }
        }
    }
    let timer = 0;
    doc.addEventListener('input', () => {
        key = crypto.randomUUID();
        clearTimeout(timer);
        timer = setTimeout(() => lint(), 350);
    });
    goal.addEventListener('input', () => {
        key = crypto.randomUUID();
    });

    const form = h('form', { class: 'card form' }, bar, panel, h('div', { class: 'row tops wraps' }, field('Session', session, 'It may be empty.'), h('label', { class: 'check' }, dry, 'Only plan it, run nothing')), errors, h('div', { class: 'row' }, submit, h('span', { class: 'muted' }, 'Ctrl+Enter')));
    form.addEventListener('submit', async (e) => {
        e.preventDefault();
        if (submit.disabled) {
            return;
        }
        submit.disabled = true;
        fill(errors);
        try {
            const r = await sends('/v1/plans', { sessionId: session.value.trim() || undefined, dryRun: dry.checked || undefined }, { key });
            location.hash = '#/plans/' + r.planId;
        } catch (error) {
            fill(errors, problem(placed(error, 1 + (session.value.trim() ? 1 : 0) + (dry.checked ? 1 : 0))));
            submit.disabled = false;
        }
    });
    form.addEventListener('keydown', (e) => e.key === 'Enter' && (e.ctrlKey || e.metaKey) && form.requestSubmit());

    get('/v1/agents').then(({ agents = [] }) => agents.filter((a) => (a.card.skills ?? []).some((k) => k.id === 'plan' || (k.tags ?? []).includes('planner'))).forEach((a) => planner.append(h('option', { value: a.card.agentId }, a.card.name || a.card.agentId))), () => {});
    return { node: h('div', { class: 'page' }, h('header', { class: 'head' }, h('h1', null, 'New plan')), h('div', { class: 'columns even' }, form, h('div', { class: 'card' }, h('h2', null, 'Check'), found))), entered: () => goal.focus(), leave: () => clearTimeout(timer) };
}
