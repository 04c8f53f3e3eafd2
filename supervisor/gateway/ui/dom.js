// Elements without markup: text of others only ever becomes text nodes.

// Control characters, and those that turn the direction of text or have no width.
// eslint-disable-next-line no-control-regex
const ODD = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;
// Colours and other commands for terminals (ECMA-48, and OSC).
// eslint-disable-next-line no-control-regex
const TERMINAL = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\^_])/g;

/** Text as it may be shown: commands for terminals are gone, other odd characters are visible. */
export function shown(text) {
    const s = String(text);
    ODD.lastIndex = 0;
    if (!ODD.test(s)) {
        return s;
    }
    return s.replace(TERMINAL, '').replace(/\r\n?/g, '\n')
        .replace(ODD, (c) => '\u27e8U+' + c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0') + '\u27e9');
}

/** Whether shown() changes more than line ends: people should know. */
export function isOdd(text) {
    ODD.lastIndex = 0;
    return ODD.test(String(text).replaceAll('\r\n', '\n'));
}

function append(node, children) {
    for (const child of children) {
        if (Array.isArray(child)) {
            append(node, child);
        } else if (child instanceof Node) {
            node.append(child);
        } else if (child !== null && child !== undefined && child !== false) {
            node.append(document.createTextNode(shown(child)));
        }
    }
}

function setAll(node, props) {
    for (const [name, value] of Object.entries(props ?? {})) {
        if (value === null || value === undefined || value === false) {
            continue;
        }
        if (name.startsWith('on')) {
            node.addEventListener(name.slice(2), value);
        } else if (name === 'style') {
            Object.assign(node.style, value); // through the object model: the policy permits no style attributes
        } else if (name === 'value') {
            node.value = value;
        } else if (name === 'title' || name === 'aria-label') {
            node.setAttribute(name, shown(value).slice(0, 400));
        } else {
            const flag = value === true && !name.startsWith('aria-'); // aria-selected="" is not selected
            node.setAttribute(name, flag ? '' : String(value));
        }
    }
}

/** h('a', {href: '#', onclick: f}, 'text', node, [more]): children that are null or false are left out. */
export function h(tag, props, ...children) {
    const node = document.createElement(tag);
    setAll(node, props);
    append(node, children);
    return node;
}

export function s(tag, props, ...children) {
    const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
    setAll(node, props);
    append(node, children);
    return node;
}

/** Replaces what is in a node. */
export function fill(node, ...children) {
    node.replaceChildren();
    append(node, children);
    return node;
}

/** A button; `kind` is a class: primary, danger, quiet, icon. */
export function button(label, onclick, { kind = '', icon: mark, ...more } = {}) {
    return h('button', { type: 'button', class: 'button ' + kind, onclick, ...more }, mark, h('span', { class: 'label' }, label));
}

const PATHS = {
    plans: 'M4 6h4v4H4zM16 4h4v4h-4zM16 16h4v4h-4zM8 8h4v10h4M12 8V6h4',
    reviews: 'M4 5h16v11H9l-5 4zM8.5 10.5l2.5 2.5 4.5-4.5',
    agents: 'M6 8h12v10H6zM12 4v4M9 12v2M15 12v2M3 12v3M21 12v3',
    sessions: 'M4 5h12v9H8l-4 3zM20 9v10l-3-2h-7',
    schedules: 'M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16M12 8v4l3 2',
    cost: 'M5 19V11M10 19V5M15 19v-9M20 19v-5',
    submit: 'M12 5v14M5 12h14',
    search: 'M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13M15.5 15.5 20 20',
    theme: 'M12 4a8 8 0 1 0 8 8 6 6 0 0 1-8-8',
    help: 'M9 9a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.4M12 17.5v.5',
    out: 'M10 5H5v14h5M14 8l4 4-4 4M18 12H9',
    close: 'M6 6l12 12M18 6 6 18',
    back: 'M14 6l-6 6 6 6',
    completed: 'M5 12.5l4.5 4.5L19 7.5',
    failed: 'M7 7l10 10M17 7 7 17',
    running: 'M8 5.5v13l10.5-6.5z',
    waiting: 'M9 6v12M15 6v12',
    sleeping: 'M12 6v6l4 3M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17',
    skipped: 'M6 6l7 6-7 6M17 6v12',
    cancelled: 'M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16M6.5 6.5l11 11',
    pending: 'M12 6.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11',
    more: 'M5 12h.01M12 12h.01M19 12h.01',
    copy: 'M8 8h11v11H8zM5 15V5h10',
};

export function icon(name, size = 18) {
    return s('svg', { viewBox: '0 0 24 24', width: size, height: size, class: 'icon', 'aria-hidden': 'true' },
        s('path', { d: PATHS[name] ?? PATHS.pending }));
}

/** How a state is drawn: its icon and its colour's class. */
const LOOKS = {
    completed: 'completed', success: 'completed', approved: 'completed', up: 'completed', healthy: 'completed', active: 'completed', partial: 'waiting',
    failed: 'failed', failure: 'failed', down: 'failed', quarantined: 'failed', open: 'failed', dead: 'failed', fatal: 'failed',
    running: 'running', in_progress: 'running', planning: 'running', cancelling: 'running', starting: 'running', retrying: 'sleeping',
    waiting: 'waiting', paused: 'waiting', draining: 'waiting', suspect: 'waiting', half_open: 'waiting',
    sleeping: 'sleeping', skipped: 'skipped', superseded: 'skipped', planned: 'skipped', cancelled: 'cancelled', stopped: 'cancelled', disabled: 'cancelled',
};

export const look = (status) => LOOKS[status] ?? 'pending';

const WORDS = { in_progress: 'running', half_open: 'half open' };

/** A state by icon, colour and word, so that none of them is needed to know it. */
export function badge(status, text = WORDS[status] ?? status) {
    return h('span', { class: 'badge is-' + look(status) }, icon(look(status), 14), h('span', null, text || 'unknown'));
}

export function dot(status) {
    return h('span', { class: 'dot is-' + look(status), title: status }, icon(look(status), 14));
}

/** What there is when there is nothing, and what to do next. */
export function empty(title, text, ...actions) {
    return h('div', { class: 'empty' }, h('h2', null, title), h('p', null, text), h('div', { class: 'row' }, actions));
}

/** An error of the API: what, where, what to do. */
export function problem(e, retry) {
    const advice = e.status === 403 ? 'Log in with a credential whose role permits it.'
        : e.status === 404 ? 'It may have been deleted, or it belongs to somebody else.'
            : e.status === 0 ? 'The page connects again by itself.'
                : e.retryable ? 'It may work when you try again.' : '';
    return h('div', { class: 'problem', role: 'alert' },
        h('strong', null, e.title ?? 'It did not work'),
        h('p', null, e.message, e.field ? h('code', null, ' ' + e.field) : null),
        advice ? h('p', { class: 'muted' }, advice) : null,
        retry ? button('Try again', retry) : null);
}

export function field(label, input, hint) {
    input.id ||= 'f' + Math.random().toString(36).slice(2);
    return h('div', { class: 'field' }, h('label', { for: input.id }, label), input, hint ? h('p', { class: 'hint' }, hint) : null);
}
