// The plan as a picture: steps and what they wait for. Zoom by buttons, wheel with Ctrl, or + and -.

import { button, empty, fill, h, icon, look, s, shown } from './dom.js';
import { duration, ms } from './format.js';
import { groups, place } from './layout.js';

const SIZE = { width: 196, height: 58, gapX: 52, gapY: 18 };

function cut(text, n) {
    const t = shown(text ?? '');
    return t.length > n ? t.slice(0, n - 1) + '\u2026' : t;
}

function curve(points) {
    let d = `M${points[0].x} ${points[0].y}`;
    for (let i = 1; i < points.length; i++) {
        const [a, b] = [points[i - 1], points[i]];
        const mid = (a.x + b.x) / 2;
        d += `C${mid} ${a.y} ${mid} ${b.y} ${b.x} ${b.y}`;
    }
    return d;
}

/** The state of a group is that of the member that matters most. */
function stateOf(steps) {
    const is = (x) => steps.some((st) => st.status === x);
    return ['failed', 'waiting', 'in_progress', 'sleeping', 'ready'].find(is)
        ?? (steps.every((st) => st.status === 'completed' || st.status === 'skipped') ? steps[0].status === 'skipped' && steps.every((x) => x.status === 'skipped') ? 'skipped' : 'completed'
            : is('pending') ? 'pending' : steps[0].status);
}

function about(step) {
    if (step.children) {
        const c = step.children;
        return c.items !== undefined ? `${c.over ?? 0} of ${c.items} items` : c.rounds ? `${c.kind === 'calls' ? 'turn' : 'round'} ${c.rounds}` : 'a plan of its own';
    }
    if (step.progress?.text) {
        return step.progress.text;
    }
    if (step.waiting?.text && (step.status === 'waiting' || step.status === 'sleeping')) {
        return step.waiting.kind === 'person' ? 'waits for a person' : step.waiting.text;
    }
    if (step.status === 'in_progress' && step.attempts > 1) {
        return 'attempt ' + step.attempts;
    }
    const took = step.durationMs ?? (step.completedAt && step.startedAt ? ms(step.completedAt) - ms(step.startedAt) : undefined);
    return [step.agentName || step.agentId || step.type, took !== undefined ? duration(took) : null].filter(Boolean).join(' \u00b7 ');
}

function words(node) {
    if (node.steps.length === 1) {
        const st = node.steps[0];
        return { title: st.stepId, text: about(st) };
    }
    const over = node.steps.filter((x) => ['completed', 'failed', 'skipped', 'cancelled'].includes(x.status)).length;
    const what = { siblings: 'side by side', chain: 'in a row', band: 'steps' }[node.kind];
    return { title: `${node.steps.length} ${what}`, text: `${over} of ${node.steps.length} over` };
}

export function graphTab(model, pick, showGroup) {
    const opened = new Set();
    const root = s('g', null);
    const svg = s('svg', { class: 'graph', role: 'group', 'aria-label': 'Steps of the plan' }, root);
    const scroll = h('div', { class: 'graph-scroll', tabindex: 0, role: 'region', 'aria-label': 'Graph of the plan' }, svg);
    const note = h('p', { class: 'muted' });
    let zoom = 1;
    let size = { width: 0, height: 0 };
    let drawn = new Map(); // id -> {g, sign, node}
    let edges = [];
    let selected = null;

    function scale(to) {
        zoom = Math.max(0.15, Math.min(2, to));
        svg.setAttribute('width', (size.width + 32) * zoom);
        svg.setAttribute('height', (size.height + 32) * zoom);
        svg.setAttribute('viewBox', `-16 -16 ${size.width + 32} ${size.height + 32}`);
    }
    const fit = () => scale(Math.min(1, Math.max(0.65, (scroll.clientWidth - 8) / (size.width + 32))));

    function open(node) {
        if (node.steps.length === 1) {
            pick(node.steps[0].stepId);
        } else if (node.kind !== 'band' && node.steps.length <= 60) {
            opened.add(node.id);
            build();
        } else {
            showGroup(node.steps);
        }
    }

    function paint(d) {
        const { node, g } = d;
        const state = node.steps.length === 1 ? node.steps[0].status : stateOf(node.steps);
        const { title, text } = words(node);
        const mark = [state, title, text, node.id === selected, node.steps[0].superseded].join('|');
        if (d.sign === mark) {
            return;
        }
        d.sign = mark;
        const many = node.steps.length > 1 || node.steps[0].children;
        g.setAttribute('class', `node is-${look(state)}${node.id === selected ? ' is-picked' : ''}${node.steps[0].superseded ? ' is-old' : ''}`);
        fill(g,
            many ? s('rect', { class: 'behind', x: 5, y: -5, width: SIZE.width, height: SIZE.height, rx: 10 }) : null,
            s('rect', { class: 'box', width: SIZE.width, height: SIZE.height, rx: 10 }),
            s('rect', { class: 'edge', width: 5, height: SIZE.height - 20, x: 0, y: 10, rx: 2.5 }),
            s('g', { transform: 'translate(16 17)' }, icon(look(state), 22)),
            s('text', { class: 't1', x: 50, y: 25 }, cut(title, 19)),
            s('text', { class: 't2', x: 50, y: 43 }, cut(text, 23)),
            s('text', { class: 'unseen', x: 50, y: 50 }, state === 'in_progress' ? ', running' : `, ${state}`));
    }

    function build() {
        const live = model.steps.filter((st) => !st.superseded);
        const nodes = groups(live, (st) => model.before(st), opened);
        const made = place(nodes, SIZE);
        size = { width: Math.max(made.width, 0), height: Math.max(made.height, 0) };
        drawn = new Map();
        edges = made.edges;
        const lines = made.edges.map((e) => {
            e.line = s('path', { class: 'link', d: curve(e.points) });
            return e.line;
        });
        const boxes = nodes.map((node) => {
            const g = s('g', { transform: `translate(${node.x} ${node.y})`, tabindex: 0, role: 'button', onclick: () => open(node) });
            g.addEventListener('keydown', (e) => {
                if (e.key === 'Enter' || e.key === ' ') {
                    e.preventDefault();
                    open(node);
                }
            });
            drawn.set(node.id, { node, g, sign: null });
            return g;
        });
        fill(root, lines, boxes);
        const gone = model.steps.length - live.length;
        note.textContent = [nodes.length < live.length ? `${live.length} steps in ${nodes.length} nodes: choose a group to open it` : '',
            gone ? `${gone} steps of earlier revisions are not drawn` : ''].filter(Boolean).join('. ');
        change();
        fit();
    }

    function change() {
        for (const d of drawn.values()) {
            paint(d);
        }
        for (const e of edges) {
            const from = drawn.get(e.from);
            e.line.setAttribute('class', 'link' + (from && stateOf(from.node.steps) === 'completed' ? ' is-past' : ''));
        }
    }

    scroll.addEventListener('wheel', (e) => {
        if (e.ctrlKey) {
            e.preventDefault();
            scale(zoom * (e.deltaY < 0 ? 1.1 : 0.9));
        }
    }, { passive: false });
    scroll.addEventListener('keydown', (e) => {
        if (e.key === '+' || e.key === '-') {
            scale(zoom * (e.key === '+' ? 1.2 : 1 / 1.2));
        }
    });

    const view = h('div', { class: 'graph-tab' },
        h('div', { class: 'toolbar' }, note, h('div', { class: 'grow' }),
            button('Smaller', () => scale(zoom / 1.2), { kind: 'quiet small' }), button('Larger', () => scale(zoom * 1.2), { kind: 'quiet small' }),
            button('Fit', fit, { kind: 'quiet small' })), scroll);
    const none = h('div', null);
    return {
        node: h('div', { class: 'tab' }, none, view),
        structure() {
            const has = model.steps.length > 0;
            view.hidden = !has;
            fill(none, has ? null : empty('No steps yet', model.plan?.phase === 'planning' ? 'An agent is making the plan.' : 'The plan has no steps.'));
            if (has) {
                build();
            }
        },
        change,
        pick(stepId) {
            selected = stepId;
            change();
        },
    };
}
