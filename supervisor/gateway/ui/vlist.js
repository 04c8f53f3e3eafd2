// A table that draws only the rows one can see: 10,000 of them cost as much as thirty.

import { fill, h } from './dom.js';

let serial = 0;

/**
 * columns: [{title, class, cell(row)}]; key(row): its name; open(row): a click or Enter; more(): the end is near.
 * sign(row): a text that changes when the row looks different.
 */
export function vlist({ label, columns, key, sign, open, more, rowHeight = 44, emptyNode = null, rowClass = null }) {
    const name = 'v' + ++serial;
    const body = h('div', { class: 'vbody', role: 'rowgroup' });
    const head = h('div', { class: 'vhead', role: 'rowgroup' },
        h('div', { class: 'vrow', role: 'row' }, columns.map((c) => h('div', { class: 'vcell ' + (c.class ?? ''), role: 'columnheader' }, c.title))));
    const scroll = h('div', { class: 'vlist', role: 'grid', tabindex: 0, 'aria-label': label }, head, body);
    const rest = h('div', { class: 'vempty' });
    const root = h('div', { class: 'vwrap' }, scroll, rest);
    const drawn = new Map(); // key -> {node, sign, index}
    let rows = [];
    let active = null; // key
    let indexOf = new Map();

    function cells(node, row) {
        columns.forEach((c, i) => fill(node.children[i], c.cell(row)));
        node.className = 'vrow ' + (rowClass?.(row) ?? '');
    }

    function draw() {
        const top = Math.max(0, Math.floor((scroll.scrollTop - rowHeight) / rowHeight) - 6);
        const n = Math.ceil((scroll.clientHeight || 800) / rowHeight) + 14;
        const wanted = new Set();
        for (let i = top; i < Math.min(rows.length, top + n); i++) {
            const row = rows[i];
            const k = key(row);
            const now = sign ? sign(row) : '';
            let d = drawn.get(k);
            wanted.add(k);
            if (!d) {
                d = { node: h('div', { class: 'vrow', role: 'row', id: name + '-' + (serial += 1) },
                    columns.map((c) => h('div', { class: 'vcell ' + (c.class ?? ''), role: 'gridcell' }))), sign: null, index: -1 };
                d.node.dataset.key = k;
                drawn.set(k, d);
                body.append(d.node);
            }
            if (d.index !== i) {
                d.index = i;
                d.node.style.transform = `translateY(${i * rowHeight}px)`;
                d.node.setAttribute('aria-rowindex', i + 2);
            }
            if (!sign || d.sign !== now) {
                d.sign = now;
                cells(d.node, row);
            }
            d.node.classList.toggle('is-active', k === active);
            d.node.setAttribute('aria-selected', k === active);
        }
        for (const [k, d] of drawn) {
            if (!wanted.has(k)) {
                d.node.remove();
                drawn.delete(k);
            }
        }
        if (active !== null && drawn.has(active)) {
            scroll.setAttribute('aria-activedescendant', drawn.get(active).node.id);
        } else {
            scroll.removeAttribute('aria-activedescendant');
        }
        if (more && top + n > rows.length - 20) {
            more();
        }
    }

    function go(i) {
        if (rows.length === 0) {
            return;
        }
        const at = Math.max(0, Math.min(rows.length - 1, i));
        active = key(rows[at]);
        const y = at * rowHeight;
        const room = scroll.clientHeight - head.offsetHeight;
        if (y < scroll.scrollTop) {
            scroll.scrollTop = y;
        } else if (y + rowHeight > scroll.scrollTop + room) {
            scroll.scrollTop = y + rowHeight - room;
        }
        draw();
    }

    scroll.addEventListener('scroll', () => draw(), { passive: true });
    body.addEventListener('click', (e) => {
        const node = e.target.closest('.vrow');
        if (!node || e.defaultPrevented || e.target.closest('a, button') || getSelection().toString()) {
            return;
        }
        active = node.dataset.key;
        draw();
        const i = indexOf.get(active);
        if (i !== undefined) {
            open?.(rows[i]);
        }
    });
    scroll.addEventListener('keydown', (e) => {
        const i = active === null ? -1 : indexOf.get(active) ?? -1;
        const page = Math.max(1, Math.floor(scroll.clientHeight / rowHeight) - 2);
        const to = { ArrowDown: i + 1, j: i + 1, ArrowUp: i - 1, k: i - 1, Home: 0, End: rows.length - 1, PageDown: i + page, PageUp: i - page }[e.key];
        if (e.target !== scroll || e.ctrlKey || e.metaKey || e.altKey) {
            return;
        }
        if (to !== undefined) {
            e.preventDefault();
            go(to);
        } else if (e.key === 'Enter' && i >= 0) {
            e.preventDefault();
            open?.(rows[i]);
        }
    });
    new ResizeObserver(() => draw()).observe(scroll);

    return {
        root,
        focus: () => scroll.focus({ preventScroll: true }),
        get rows() {
            return rows;
        },
        set(next) {
            rows = next;
            indexOf = new Map(rows.map((r, i) => [key(r), i]));
            body.style.height = rows.length * rowHeight + 'px';
            scroll.setAttribute('aria-rowcount', rows.length + 1);
            fill(rest, rows.length === 0 ? emptyNode?.() : null);
            root.classList.toggle('has-none', rows.length === 0);
            draw();
        },
        /** Something in the rows changed, not which ones there are. */
        redraw: draw,
        reset() {
            scroll.scrollTop = 0;
            active = null;
        },
        activate(k) {
            const i = indexOf.get(k);
            if (i !== undefined) {
                go(i);
            }
        },
    };
}
