// Where the nodes of a plan stand: layers from left to right by dependency, each layer ordered so that few edges cross. Large
// plans are grouped first: siblings with the same dependencies, agent and skill, and rows of steps one after the other.

const GROUP_FROM = 60; // nodes; fewer are shown one by one
const SIBLINGS = 4;
const MAX_NODES = 240;

/** Longest path from a start; a cycle (there is none in a plan) would end at the number of nodes. */
function layersOf(nodes) {
    const layer = new Map();
    const after = new Map(nodes.map((n) => [n.id, []]));
    const open = new Map();
    for (const n of nodes) {
        n.before = n.before.filter((b) => after.has(b) && b !== n.id);
        open.set(n.id, n.before.length);
        n.before.forEach((b) => after.get(b).push(n.id));
    }
    const todo = nodes.filter((n) => n.before.length === 0).map((n) => n.id);
    todo.forEach((id) => layer.set(id, 0));
    for (let i = 0; i < todo.length; i++) {
        for (const next of after.get(todo[i])) {
            layer.set(next, Math.max(layer.get(next) ?? 0, layer.get(todo[i]) + 1));
            open.set(next, open.get(next) - 1);
            if (open.get(next) === 0) {
                todo.push(next);
            }
        }
    }
    nodes.forEach((n) => layer.has(n.id) || layer.set(n.id, 0));
    return { layer, after };
}

function merge(nodes, sets) {
    const into = new Map();
    for (const set of sets) {
        set.members.forEach((m) => into.set(m, set.id));
    }
    const name = (id) => into.get(id) ?? id;
    const byId = new Map(nodes.map((n) => [n.id, n]));
    const made = [];
    for (const n of nodes) {
        if (!into.has(n.id)) {
            made.push({ ...n, before: [...new Set(n.before.map(name))] });
        }
    }
    for (const set of sets) {
        const members = set.members.map((m) => byId.get(m));
        const before = new Set(members.flatMap((m) => m.before.map(name)));
        before.delete(set.id);
        made.push({ id: set.id, before: [...before], kind: set.kind, at: members[0].at, steps: members.flatMap((m) => m.steps) });
    }
    return made.sort((a, b) => a.at - b.at);
}

function siblings(nodes, kindOf) {
    const sets = new Map();
    for (const n of nodes) {
        const key = JSON.stringify([n.before, n.steps.length === 1 ? kindOf(n.steps[0]) : n.id]);
        sets.set(key, [...(sets.get(key) ?? []), n.id]);
    }
    return [...sets.values()].filter((ids) => ids.length >= SIBLINGS).map((ids) => ({ id: 'g:' + ids[0], kind: 'siblings', members: ids }));
}

function rows(nodes) {
    const { after } = layersOf(nodes);
    const byId = new Map(nodes.map((n) => [n.id, n]));
    const inner = (n) => n && n.before.length <= 1 && after.get(n.id).length <= 1;
    const seen = new Set();
    const sets = [];
    for (const n of nodes) {
        if (seen.has(n.id) || !inner(n) || (n.before.length === 1 && inner(byId.get(n.before[0])))) {
            continue;
        }
        const members = [];
        for (let at = n; inner(at) && !seen.has(at.id); at = byId.get(after.get(at.id)[0])) {
            seen.add(at.id);
            members.push(at.id);
        }
        if (members.length >= SIBLINGS) {
            sets.push({ id: 'c:' + members[0], kind: 'chain', members });
        }
    }
    return sets;
}

/** Whatever the graph is: layers next to each other become one node. */
function bands(nodes) {
    const { layer } = layersOf(nodes);
    const last = Math.max(...layer.values());
    const width = Math.ceil((last + 1) / 40);
    const sets = new Map();
    for (const n of nodes) {
        const band = Math.floor(layer.get(n.id) / width);
        sets.set(band, [...(sets.get(band) ?? []), n.id]);
    }
    return [...sets].filter(([, ids]) => ids.length > 1).map(([band, ids]) => ({ id: 'b:' + band, kind: 'band', members: ids }));
}

export function groups(steps, before, opened) {
    const kindOf = (s) => [s.agentId, s.skill, s.type, s.superseded];
    let nodes = steps.map((st) => ({ id: st.stepId, before: before(st), steps: [st], at: st.stepIndex, kind: 'step' }));
    const known = new Set(nodes.map((n) => n.id));
    nodes.forEach((n) => {
        n.before = n.before.filter((b) => known.has(b));
    });
    if (nodes.length <= GROUP_FROM) {
        return nodes;
    }
    const closed = (sets) => sets.filter((x) => !opened.has(x.id));
    nodes = merge(nodes, closed(siblings(nodes, kindOf)));
    nodes = merge(nodes, closed(rows(nodes)));
    return nodes.length > MAX_NODES ? merge(nodes, bands(nodes)) : nodes;
}

function order(columns, neighbours) {
    const place = new Map();
    columns.forEach((c) => c.forEach((n, i) => place.set(n.id, i)));
    for (let round = 0; round < 6; round++) {
        const down = round % 2 === 0;
        const list = down ? columns : [...columns].reverse();
        for (const column of list) {
            const weight = new Map(column.map((n) => {
                const near = neighbours(n, down).filter((x) => place.has(x));
                return [n.id, near.length ? near.reduce((a, x) => a + place.get(x), 0) / near.length : place.get(n.id)];
            }));
            column.sort((a, b) => weight.get(a.id) - weight.get(b.id) || a.at - b.at);
            column.forEach((n, i) => place.set(n.id, i));
        }
    }
}

/** Gives each node x and y; edges are [from, to, points]. An edge over several layers goes round through places of its own. */
export function place(nodes, { width, height, gapX, gapY }) {
    const { layer, after } = layersOf(nodes);
    const columns = [];
    const edges = [];
    const virtual = [];
    const before = new Map(nodes.map((n) => [n.id, [...n.before]]));
    const next = new Map(nodes.map((n) => [n.id, []]));
    for (const n of nodes) {
        for (const b of n.before) {
            const path = [b];
            const far = layer.get(n.id) - layer.get(b);
            for (let i = 1; i < far && far <= 30; i++) {
                const v = { id: `${b}>${n.id}>${i}`, at: n.at, virtual: true };
                virtual.push(v);
                layer.set(v.id, layer.get(b) + i);
                before.set(v.id, [path.at(-1)]);
                next.set(v.id, []);
                next.get(path.at(-1)).push(v.id);
                path.push(v.id);
            }
            next.get(path.at(-1)).push(n.id);
            if (path.length > 1) {
                before.set(n.id, before.get(n.id).map((x) => (x === b ? path.at(-1) : x)));
            }
            edges.push({ from: b, to: n.id, path: [...path, n.id] });
        }
    }
    for (const n of [...nodes, ...virtual]) {
        (columns[layer.get(n.id)] ??= []).push(n);
    }
    const all = columns.map((c) => c ?? []);
    order(all, (n, down) => (down ? before.get(n.id) : next.get(n.id)) ?? []);
    const tall = (c) => c.reduce((a, n) => a + (n.virtual ? gapY * 1.5 : height + gapY), -gapY);
    const most = Math.max(0, ...all.map(tall));
    const at = new Map();
    all.forEach((column, i) => {
        let y = (most - tall(column)) / 2;
        for (const n of column) {
            const h = n.virtual ? gapY / 2 : height;
            at.set(n.id, { x: i * (width + gapX), y: y + h / 2, virtual: n.virtual });
            y += h + gapY;
        }
    });
    for (const n of nodes) {
        n.x = at.get(n.id).x;
        n.y = at.get(n.id).y - height / 2;
    }
    for (const e of edges) {
        e.points = e.path.map((id, i) => {
            const p = at.get(id);
            return p.virtual ? { x: p.x + width / 2, y: p.y } : { x: p.x + (i === 0 ? width : 0), y: p.y };
        });
    }
    return { edges, width: all.length * (width + gapX) - gapX, height: most, after };
}
