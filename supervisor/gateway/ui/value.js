// What agents return, as people can read it: text, Markdown, tables, JSON. It is data of others: never markup.

import { button, h, isOdd } from './dom.js';
import { bytes } from './format.js';

const TEXT_MAX = 20000; // characters at first
const LIST_MAX = 100;

function copy(text) {
    return button('Copy', () => navigator.clipboard?.writeText(text), { kind: 'quiet small' });
}

function note(text) {
    return isOdd(text) ? h('p', { class: 'hint odd' }, 'This text has control characters: commands for terminals are left out, others are written as \u27e8U+\u2026\u27e9.') : null;
}

/** A long text, its beginning first. */
export function textBlock(text, { lines = true } = {}) {
    const body = h('pre', { class: lines ? 'text' : 'text flat', tabindex: 0 }, text.slice(0, TEXT_MAX));
    const rest = text.length - TEXT_MAX;
    const all = rest > 0 ? button(`Show all ${bytes(text.length)}`, () => {
        body.replaceChildren(h('span', null, text));
        all.remove();
    }, { kind: 'quiet small' }) : null;
    return h('div', { class: 'value' }, note(text), body, h('div', { class: 'row' }, all, copy(text)));
}

// ---- Markdown: headings, lists, tables, code, emphasis. A link shows where it leads, and is none of a script. ----

const INLINE = /(`[^`\n]+`)|(\*\*[^*\n]+\*\*)|(\*[^*\n]+\*)|\[([^\]\n]{1,300})\]\((https?:\/\/[^\s)]{1,2000})\)/;

function inline(text) {
    const out = [];
    let rest = text;
    for (let m = INLINE.exec(rest); m && out.length < 2000; m = INLINE.exec(rest)) {
        out.push(rest.slice(0, m.index));
        if (m[1]) {
            out.push(h('code', null, m[1].slice(1, -1)));
        } else if (m[2]) {
            out.push(h('strong', null, m[2].slice(2, -2)));
        } else if (m[3]) {
            out.push(h('em', null, m[3].slice(1, -1)));
        } else {
            out.push(h('a', { href: m[5], rel: 'noreferrer noopener', target: '_blank', title: m[5] }, m[4]), h('span', { class: 'muted' }, ` (${new URL(m[5]).host})`));
        }
        rest = rest.slice(m.index + m[0].length);
    }
    out.push(rest);
    return out;
}

const cells = (line) => line.trim().replace(/^\||\|$/g, '').split('|').map((c) => c.trim());

function tableOf(lines) {
    const [first, , ...rest] = lines;
    return h('div', { class: 'scrolls', tabindex: 0, role: 'region', 'aria-label': 'Table' }, h('table', null, h('thead', null, h('tr', null, cells(first).map((c) => h('th', null, inline(c))))),
        h('tbody', null, rest.slice(0, 500).map((l) => h('tr', null, cells(l).map((c) => h('td', null, inline(c))))))));
}

export function markdown(text) {
    const out = [];
    const lines = text.slice(0, 200000).split('\n');
    const take = (is) => {
        const found = [];
        while (lines.length && is(lines[0])) {
            found.push(lines.shift());
        }
        return found;
    };
    while (lines.length) {
        const line = lines[0];
        const heading = /^(#{1,6})\s+(.*)/.exec(line);
        if (/^```/.test(line)) {
            lines.shift();
            const code = take((l) => !/^```/.test(l));
            lines.shift();
            out.push(h('pre', { class: 'text', tabindex: 0 }, code.join('\n')));
        } else if (heading) {
            lines.shift();
            out.push(h('h' + Math.min(6, heading[1].length + 2), null, inline(heading[2])));
        } else if (line.includes('|') && /^[\s|:-]+$/.test(lines[1] ?? '') && (lines[1] ?? '').includes('-')) {
            out.push(tableOf(take((l) => l.includes('|'))));
        } else if (/^\s*([-*+]|\d+[.)])\s+/.test(line)) {
            const ordered = /^\s*\d/.test(line);
            out.push(h(ordered ? 'ol' : 'ul', null, take((l) => /^\s*([-*+]|\d+[.)])\s+/.test(l)).map((l) => h('li', null, inline(l.replace(/^\s*([-*+]|\d+[.)])\s+/, ''))))));
        } else if (/^\s*(---+|\*\*\*+)\s*$/.test(line)) {
            lines.shift();
            out.push(h('hr'));
        } else if (line.trim() === '') {
            lines.shift();
        } else {
            out.push(h('p', null, inline(take((l) => l.trim() !== '' && !/^(#{1,6}\s|```)/.test(l)).join('\n'))));
        }
    }
    return out;
}

/** A text that may be Markdown, and the text as it came. */
export function answer(text) {
    const plain = textBlock(text);
    const made = h('div', { class: 'markdown' }, markdown(text));
    plain.hidden = true;
    const turn = button('As it came', () => {
        plain.hidden = !plain.hidden;
        made.hidden = !plain.hidden;
        turn.querySelector('.label').textContent = plain.hidden ? 'As it came' : 'As Markdown';
    }, { kind: 'quiet small' });
    return h('div', { class: 'value' }, note(text), made, plain, h('div', { class: 'row' }, turn));
}

// ---- JSON ----

function leaf(v) {
    const kind = v === null ? 'null' : typeof v;
    if (kind !== 'string') {
        return h('span', { class: 'j-' + kind }, String(v));
    }
    return v.length > 300 || v.includes('\n') ? h('details', { class: 'j-long' }, h('summary', null, h('span', { class: 'j-string' }, JSON.stringify(v.slice(0, 120)) + '\u2026 '), h('span', { class: 'muted' }, bytes(v.length))), textBlock(v))
        : h('span', { class: 'j-string' }, JSON.stringify(v));
}

/** A value that folds; the first `depth` levels are open. A large list is shown piece by piece. */
export function tree(v, depth = 1) {
    if (v === null || typeof v !== 'object') {
        return leaf(v);
    }
    const list = Array.isArray(v);
    const entries = Object.entries(v);
    if (entries.length === 0) {
        return h('span', { class: 'muted' }, list ? '[ ]' : '{ }');
    }
    const body = h('div', { class: 'j-body' });
    const details = h('details', { class: 'json', open: depth > 0 }, h('summary', null, h('span', { class: 'muted' }, list ? `list of ${entries.length}` : `${entries.length} field${entries.length > 1 ? 's' : ''}: ${Object.keys(v).slice(0, 4).join(', ').slice(0, 80)}`)), body);
    let at = 0;
    const more = () => {
        body.querySelector(':scope > .button')?.remove();
        entries.slice(at, at + LIST_MAX).forEach(([k, x]) => body.append(h('div', { class: 'j-row' }, h('span', { class: 'j-key' }, k.slice(0, 200)), ' ', tree(x, depth - 1))));
        at += LIST_MAX;
        if (at < entries.length) {
            body.append(button(`${entries.length - at} more`, more, { kind: 'quiet small' }));
        }
    };
    if (depth > 0) {
        more();
    } else {
        details.addEventListener('toggle', () => at === 0 && more());
    }
    return details;
}

/** Rows of the same few fields are a table. */
function rowsOf(v) {
    if (!Array.isArray(v) || v.length < 2 || v.length > 1000 || !v.every((r) => r && typeof r === 'object' && !Array.isArray(r))) {
        return null;
    }
    const names = [...new Set(v.slice(0, 50).flatMap(Object.keys))];
    return names.length <= 8 && names.length > 0 ? names : null;
}

export function value(v) {
    if (v === undefined || v === null) {
        return h('p', { class: 'muted' }, 'nothing');
    }
    if (typeof v === 'string') {
        return /^#{1,6} |\*\*|^\||^[-*] |```/m.test(v) ? answer(v) : textBlock(v);
    }
    const names = rowsOf(v);
    const table = names && h('div', { class: 'scrolls', tabindex: 0, role: 'region', 'aria-label': 'Table' }, h('table', null, h('thead', null, h('tr', null, names.map((n) => h('th', null, n)))),
        h('tbody', null, v.slice(0, 200).map((r) => h('tr', null, names.map((n) => h('td', null, r[n] !== null && typeof r[n] === 'object' ? tree(r[n], 0) : r[n] === undefined ? '' : typeof r[n] === 'string' && r[n].length < 300 ? r[n] : leaf(r[n]))))))));
    return h('div', { class: 'value' }, table, tree(v, table ? 0 : 2), h('div', { class: 'row' }, copy(JSON.stringify(v, null, 2))));
}

/** {text, data, artifacts} of a step, without what is empty. */
export function result(r) {
    if (r === null || typeof r !== 'object') {
        return value(r);
    }
    const { text, data, artifacts, details, ...more } = r;
    const json = text && data !== undefined && JSON.stringify(data) === text;
    const other = Object.entries(more).filter(([, v]) => v !== false && v !== null);
    return h('div', { class: 'value' }, text && !json ? value(text) : null, data !== undefined && data !== null ? value(data) : null,
        artifacts?.length ? [h('h4', null, 'Files'), value(artifacts)] : null, details ? [h('h4', null, 'Details'), tree(details, 1)] : null,
        other.length ? tree(Object.fromEntries(other), 1) : null,
        !text && (data === undefined || data === null) && !artifacts?.length && !details && !other.length ? h('p', { class: 'muted' }, 'It returned nothing.') : null);
}
