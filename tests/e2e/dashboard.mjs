// The dashboard in Chromium, as people use it. usage: node dashboard.mjs SCENARIO JSON, see test_dashboard.py. A line {"do": NAME, "with": [...]}
// asks the test for something; its answer is a line.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import assert from 'node:assert/strict';
import fs from 'node:fs';

const [scenario, given] = process.argv.slice(2);
const g = JSON.parse(given);
const require = createRequire(g.modules + '/');
const { chromium } = require('playwright-core');
const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function ask(name, ...args) {
    process.stdout.write(JSON.stringify({ do: name, with: args }) + '\n');
    return JSON.parse((await lines.next()).value);
}

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
const complaints = [];
let allowed = null; // of complaints, while something is refused on purpose

async function open(options = {}) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, permissions: ['clipboard-write'], ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(g.patience ?? 20000);
    page.on('console', (m) => (m.type() === 'error' || m.type() === 'warning') && !allowed?.test(m.text()) && complaints.push(m.text()));
    page.on('pageerror', (e) => complaints.push(e.stack));
    page.on('dialog', (d) => complaints.push('a dialog: ' + d.message()));
    await page.goto(g.url + '/');
    return page;
}

async function logIn(page, bearer) {
    await page.getByLabel('Token or credential').fill(bearer);
    await page.getByLabel('Token or credential').press('Enter');
    await page.waitForSelector('nav a[aria-current=page]');
}

// axe takes half a second a page: of each kind one; BATON_DASHBOARD=all has it look at every one.
const ALWAYS = new Set(['login', 'submit', 'plan graph with a step', 'plan steps', 'plan timeline', 'plan events', 'review', 'plans', 'agents', 'session', 'plan dark', 'small plans dark']);

/** No serious finding of axe; nothing wider than the screen. */
async function sound(page, what) {
    if (g.all || ALWAYS.has(what)) {
        await page.evaluate(axe);
        const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
        const bad = found.violations.filter((v) => v.impact === 'serious' || v.impact === 'critical');
        assert.deepEqual(bad.map((v) => `${what}: ${v.id} ${v.nodes[0].html.slice(0, 160)} ${v.nodes[0].any[0]?.message ?? ''}`), []);
    }
    const wide = await page.evaluate(() => [...document.querySelectorAll('body, main, .page')].filter((n) => n.scrollWidth > n.clientWidth + 1).map((n) => n.className || n.tagName));
    assert.deepEqual(wide, [], what + ' is wider than the screen');
    if (g.shots) {
        await page.screenshot({ path: `${g.shots}/${what.replaceAll(' ', '-')}.png` });
    }
}

const go = (page, hash) => page.evaluate((x) => {
    location.hash = x;
}, hash);
const action = (page, name) => page.locator(`[data-action="${name}"]:visible`);
const confirm = (page) => page.locator('dialog[open] button[type=submit]').click();
const status = (page, text, timeout) => page.locator('.facts .badge', { hasText: text }).waitFor(timeout ? { timeout } : {});

const calc = (stepId, more) => ({ stepId, agentId: 'calc', skill: 'evaluate', task: 'Add one and two, and say what comes out', parameters: { expression: '1+2' }, ...more });
const HOSTILE = '<script>window.hurt = 1</script><img src=x onerror="window.hurt = 2"> [link](javascript:window.hurt=3) \u001b[31mred\u001b[0m \u202egnp.exe \u0007 **bold** ' + 'x'.repeat(30000);

const scenarios = {
    async tour() {
        // ---- who are you? ----
        const page = await open();
        await sound(page, 'login');
        allowed = /401|403/;
        await page.getByLabel('Token or credential').fill('0'.repeat(64));
        await page.keyboard.press('Enter');
        await page.getByText('That is not a token or credential of this daemon').waitFor();
        allowed = null;
        await page.getByLabel('Token or credential').fill('');
        await logIn(page, g.token);
        assert.ok(!page.url().includes(g.token.slice(0, 12)), 'a token in the address');
        const kept = await page.evaluate(() => document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage));
        assert.ok(!kept.includes(g.token.slice(0, 12)), 'scripts can read the token');
        await page.getByText('No plans yet').waitFor();
        await sound(page, 'no plans');
        await page.reload();
        await page.waitForSelector('nav'); // still logged in

        // ---- submit: a document with lint as one types ----
        await page.getByRole('link', { name: 'New plan' }).first().click();
        await page.getByRole('tab', { name: 'Goal in words', selected: true }).waitFor();
        await page.getByRole('tab', { name: 'Plan document' }).click();
        await page.getByLabel('Plan', { exact: true }).fill('goal: x\nsteps:\n  - {agentId: calc, skil: evaluate, task: Add one and two}\n');
        await page.getByText('unknown field').waitFor();
        await page.getByLabel('Plan', { exact: true }).fill('goal: x\nsteps: [\n');
        allowed = /400/;
        await page.getByText(/line \d+, column/).waitFor();
        allowed = null;
        await sound(page, 'submit');
        await page.getByRole('button', { name: 'Insert an example' }).click();
        await page.getByText('it can run').waitFor();
        assert.equal(await page.locator('.found .node').count(), 2);
        await action(page, 'submit').click();
        await status(page, 'completed');
        await page.locator('.node.is-completed').nth(1).waitFor();

        // ---- and a goal in words: preview, then submit by the keyboard ----
        await go(page, '/submit');
        await page.getByLabel('Goal', { exact: true }).fill('add 2 and 3');
        await action(page, 'preview').click();
        await page.getByText('it can run').waitFor();
        await page.getByLabel('Goal', { exact: true }).press('Control+Enter');
        await status(page, 'completed');
        await page.getByRole('tab', { name: 'Result' }).click();
        await page.locator('.result .markdown', { hasText: '5' }).first().waitFor();
        await sound(page, 'result');

        // ---- a plan with all sorts of steps, live; pause, resume, review with edit, step panel ----
        const rich = await ask('submit', { goal: 'Prepare the report, and pay for it', steps: [calc('sum', { dependsOn: [] }),
            { stepId: 'each', forEach: ['a', 'b', 'c'], agentId: 'exec', skill: 'echo', task: 'Say each of the items aloud', parameters: { text: 'item {{item}}' }, dependsOn: ['sum'] },
            { stepId: 'flaky', agentId: 'exec', skill: 'fail', task: 'It fails, and the plan goes on without it', onFailure: 'continue', dependsOn: ['sum'] },
            { stepId: 'pay', agentId: 'exec', skill: 'echo', task: 'Pay what was ordered, after somebody approved', parameters: { text: 'paid 5' }, requiresApproval: true, dependsOn: ['each'] },
            { stepId: 'later', wait: { signal: 'delivered' }, task: 'Wait for the delivery of the goods', dependsOn: ['pay'] }] });
        await go(page, '/plans/' + rich.planId);
        await page.locator('.node.is-waiting').waitFor();
        await page.locator('.node', { hasText: '3 of 3 items' }).waitFor();
        await page.locator('.node.is-failed', { hasText: 'flaky' }).click();
        await page.locator('.panel', { hasText: 'exit code 1' }).waitFor();
        await page.locator('.panel .attempts li').first().waitFor();
        await sound(page, 'plan graph with a step');
        await page.keyboard.press('Escape');
        await page.locator('.panel').waitFor({ state: 'hidden' });
        await action(page, 'pause').click();
        await page.getByLabel('Reason').fill('lunch');
        await confirm(page);
        await action(page, 'resume').click();
        await action(page, 'pause').waitFor();
        for (const [tab, there] of [['Steps', '.vbody .vrow >> text=flaky'], ['Timeline', '.lane .span'], ['Events', '.vbody .vrow >> text=plan_step_completed'], ['History', 'text=Document']]) {
            await page.getByRole('tab', { name: tab }).click();
            await page.locator(there).first().waitFor();
            await sound(page, 'plan ' + tab.toLowerCase());
        }
        await page.getByRole('link', { name: /Reviews/ }).click();
        await page.locator('.entry').click();
        await page.getByText('What would be sent').waitFor();
        await page.locator('.decide textarea.mono').fill('{"text": "paid 7"}');
        await page.getByLabel('Comment').fill('only seven');
        await sound(page, 'review');
        await action(page, 'approve').click();
        await page.getByText('Nothing waits for you').waitFor();
        await go(page, `/plans/${rich.planId}?step=pay`);
        await page.locator('.panel pre', { hasText: 'paid 7' }).waitFor();
        await action(page, 'signal').click();
        await page.locator('dialog textarea').fill('{"by": "train"}');
        await confirm(page);
        await status(page, 'completed');

        // ---- retry, fork; cancel; a step of its own that is skipped ----
        const again = await ask('submit', { goal: 'Fail at first', steps: [calc('sum'), { stepId: 'ask', type: 'human_review', task: 'Shall it go on from here?' }] });
        await go(page, '/plans/' + again.planId);
        await action(page, 'cancel').click();
        await page.getByLabel('Reason').fill('it is too late');
        await confirm(page);
        await status(page, 'cancelled');
        await action(page, 'retry').click();
        await confirm(page);
        await page.waitForFunction((id) => !location.hash.includes(id), again.planId);
        await status(page, 'waiting');
        await go(page, '/plans/' + again.planId);
        await status(page, 'cancelled');
        await action(page, 'fork').click();
        await page.locator('dialog select').selectOption('ask');
        await confirm(page);
        await page.waitForFunction((id) => !location.hash.includes(id), again.planId);
        await status(page, 'waiting');
        await action(page, 'cancel').click();
        await confirm(page);
        await status(page, 'cancelled');
        const slow = await ask('submit', { steps: [{ stepId: 'slow', agentId: 'exec', skill: 'wait', task: 'Take a while, and then end', parameters: { name: 'n', seconds: 60 } }, calc('next')] });
        await go(page, `/plans/${slow.planId}?step=next`);
        await page.locator('.panel').getByRole('button', { name: 'Skip' }).click();
        await confirm(page);
        await page.locator('.panel .badge', { hasText: 'skipped' }).waitFor();
        await go(page, `/plans/${slow.planId}?step=slow`);
        await page.locator('.panel').getByRole('button', { name: 'Cancel step' }).click();
        await confirm(page);
        await page.locator('.panel .badge', { hasText: 'cancelled' }).waitFor();

        // ---- a hostile result is text ----
        const bad = await ask('submit', { goal: HOSTILE.slice(0, 300), steps: [{ stepId: 'evil', agentId: 'exec', skill: 'echo', task: HOSTILE.slice(0, 180), parameters: { text: HOSTILE } }] });
        await go(page, `/plans/${bad.planId}?step=evil`);
        await page.locator('.panel', { hasText: 'control characters' }).waitFor();
        const text = await page.locator('.panel').innerText();
        assert.ok(text.includes('<script>') && text.includes('\u27e8U+202E\u27e9') && !text.includes('\u001b') && !text.includes('\u202e'), text.slice(0, 400));
        await page.getByRole('tab', { name: 'Result' }).click();
        await page.locator('.markdown strong', { hasText: 'bold' }).first().waitFor();
        assert.equal(await page.locator('.result img, .result script, .panel img, a[href^="javascript"]').count(), 0);
        await page.getByRole('tab', { name: 'Events' }).click();
        await page.locator('.vbody .vrow').first().waitFor();
        await go(page, '/plans');
        await page.locator('.vbody .vrow').first().waitFor();
        assert.equal(await page.evaluate('window.hurt'), undefined);
        await sound(page, 'plans');

        // ---- filters and search ----
        await page.getByLabel('State').selectOption('cancelled');
        await page.locator('.vbody .vrow').first().waitFor();
        await page.waitForFunction(() => [...document.querySelectorAll('.vbody .badge')].every((b) => b.innerText.includes('cancelled')));
        await page.getByLabel('State').selectOption('');
        await page.getByLabel('Search words or an id').fill('pay for it');
        await page.waitForFunction(() => document.querySelectorAll('.vbody .vrow').length === 1);
        await page.getByLabel('Search words or an id').fill('nothing has these words');
        await page.getByText('No plan fits').waitFor();

        // ---- agents, schedules, sessions, cost ----
        await go(page, '/agents');
        await page.locator('.agent', { hasText: 'exec' }).click();
        await page.getByRole('heading', { name: 'Instances' }).waitFor();
        await sound(page, 'agents');
        await action(page, 'drain').click();
        await confirm(page);
        await page.locator('.detail .badge', { hasText: 'disabled' }).first().waitFor();
        await action(page, 'enable').click();
        await confirm(page);
        await page.locator('.detail > .row > .badge', { hasText: 'up' }).waitFor();
        await action(page, 'restart').click();
        await confirm(page);
        await page.locator('.detail .badge', { hasText: 'healthy' }).first().waitFor();
        await go(page, '/schedules');
        await page.getByText('No schedules').waitFor();
        await action(page, 'schedule').click();
        await page.getByLabel('Name').fill('nightly');
        await page.getByLabel('Goal').fill('add 2 and 3');
        await confirm(page);
        await page.locator('.entry', { hasText: 'nightly' }).click();
        await action(page, 'pause').click();
        await page.locator('.detail .badge', { hasText: 'paused' }).waitFor();
        await action(page, 'resume').click();
        await page.locator('.detail .badge', { hasText: 'active' }).waitFor();
        await sound(page, 'schedules');
        await action(page, 'trigger').click();
        await page.getByText('The last plan').waitFor();
        await action(page, 'delete').click();
        await confirm(page);
        await page.getByText('No schedules').waitFor();
        await go(page, '/sessions');
        await page.getByRole('button', { name: 'New session' }).first().click();
        await page.getByLabel('Message').fill('add 20 and 22');
        await page.getByLabel('Message').press('Enter');
        await page.locator('.bubble.is-other .markdown', { hasText: '42' }).waitFor(); // its time may hold 42, too
        await page.locator('.plan-strip .badge', { hasText: 'completed' }).waitFor();
        await sound(page, 'session');
        await go(page, '/cost');
        await page.getByText('Nothing was spent').waitFor();
        await sound(page, 'cost');

        // ---- keyboard only: from the list to a step and back ----
        await page.keyboard.press('g');
        await page.keyboard.press('p');
        await page.locator('.vbody .vrow').first().waitFor();
        await page.keyboard.press('?');
        await page.getByText('switch between light and dark').waitFor();
        await page.keyboard.press('Escape');
        await page.keyboard.press('/');
        assert.equal(await page.evaluate(() => document.activeElement.type), 'search');
        await page.keyboard.press('ArrowDown'); // into the list
        await page.keyboard.press('ArrowDown');
        await page.keyboard.press('Enter');
        await page.waitForURL(/plans\/[0-9A-F]/);
        await page.locator('.node').first().waitFor();
        for (let i = 0; i < 40 && !(await page.evaluate(() => document.activeElement.matches('.node'))); i++) {
            await page.keyboard.press('Tab');
        }
        await page.keyboard.press('Enter');
        await page.locator('.panel:visible').waitFor();
        await page.keyboard.press('Escape');
        await page.locator('.panel').waitFor({ state: 'hidden' });

        // ---- dark, and a switch that stays ----
        await page.keyboard.press('d');
        assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
        await sound(page, 'plan dark');
        await page.reload();
        await page.waitForSelector('nav');
        assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
        await page.getByRole('button', { name: 'Log out' }).click();
        await page.getByRole('heading', { name: 'Log in' }).waitFor();
        await page.context().close();

        // ---- roles: who may not act sees no action ----
        const gate = await ask('submit', { goal: 'Ask somebody', steps: [{ stepId: 'ask', type: 'human_review', task: 'Is all of this right?' }] });
        const olga = await open({ colorScheme: 'dark', viewport: { width: 390, height: 844 }, hasTouch: true });
        await logIn(olga, g.observer);
        await olga.locator('.vbody .vrow').first().waitFor();
        await sound(olga, 'small plans dark');
        for (const [hash, there] of [['/plans/' + gate.planId, '.node.is-waiting'], ['/plans/' + rich.planId, '.node.is-failed'], ['/reviews/' + encodeURIComponent(gate.planId + '/ask/r1'), '.detail .hint'],
            ['/agents/calc', '.detail table'], ['/schedules', '.empty'], ['/sessions', '.entry'], ['/cost', '.empty']]) {
            await go(olga, hash);
            await olga.locator(there).first().waitFor();
            assert.equal(await olga.locator('[data-action]:visible').count(), 0, hash);
            await sound(olga, 'small ' + hash.split('/').slice(1, 2) + ' dark ' + hash.length);
        }
        for (const [tab, there] of [['steps', '.vbody .vrow'], ['timeline', '.lane .span'], ['events', '.vbody .vrow'], ['result', '.markdown']]) {
            await go(olga, `/plans/${rich.planId}/${tab}`);
            await olga.locator(there).first().waitFor();
            await sound(olga, 'small plan ' + tab);
        }
        await olga.context().close();
        const sven = await open();
        await logIn(sven, g.submitter);
        await go(sven, '/sessions');
        await sven.getByRole('button', { name: 'New session' }).first().click();
        await sven.getByLabel('Message').fill('add 30 and 41');
        await sven.getByLabel('Message').press('Enter');
        await sven.locator('.bubble.is-other .markdown', { hasText: '71' }).waitFor();
        await sven.getByLabel('Message').fill('add 31 and 41');
        await sven.getByLabel('Message').press('Enter');
        await sven.locator('.bubble.is-other .markdown', { hasText: '72' }).waitFor();
        assert.equal(await sven.locator('.entry').count(), 1, 'both are of one session');
        await sven.context().close();
        const rita = await open();
        await logIn(rita, g.reviewer);
        await rita.getByRole('link', { name: /Reviews/ }).click();
        await rita.locator('.entry', { hasText: 'Is all of this right?' }).click();
        await action(rita, 'reject').click();
        await rita.waitForFunction((id) => !document.querySelector('.inbox').innerText.includes('Is all of this right'), gate.planId);
        await go(rita, '/agents/calc');
        await rita.getByRole('heading', { name: 'Instances' }).waitFor();
        assert.equal(await action(rita, 'drain').count(), 0);
        await rita.context().close();
    },

    /** g.plans plans in the list, and one of 10,000 steps. */
    async large() {
        const page = await open();
        await logIn(page, g.token);
        await page.locator('.vbody .vrow').first().waitFor();
        for (let i = 0; i < 2000 && !(await page.evaluate((n) => document.querySelector('.head .muted').textContent === `${n} plans`, g.plans)); i++) {
            await page.keyboard.press('End');
            await page.waitForTimeout(15);
        }
        await page.waitForFunction((n) => document.querySelector('.head .muted').textContent === `${n} plans`, g.plans);
        assert.ok(await page.locator('.vbody .vrow').count() < 80, 'rows that nobody sees are drawn');
        assert.equal(await page.locator('.vlist').getAttribute('aria-rowcount'), String(g.plans + 1));
        await page.keyboard.press('Home');
        await page.getByLabel('Search words or an id').fill(g.oldest.slice(0, 36));
        await page.waitForFunction(() => document.querySelectorAll('.vbody .vrow').length === 1);
        await sound(page, 'many plans');

        await go(page, '/plans/' + g.wide);
        await page.getByText('10000 steps in 3 nodes').waitFor();
        const phone = await open({ viewport: { width: 390, height: 844 }, hasTouch: true });
        await logIn(phone, g.token);
        for (const tab of ['steps', 'timeline', 'events']) {
            await go(phone, `/plans/${g.wide}/${tab}`);
            await phone.locator('.vbody .vrow').first().waitFor();
            assert.ok(await phone.locator('.vbody .vrow').count() < 80, `${tab} on a phone: rows that nobody sees are drawn`);
        }
        await go(phone, `/plans/${g.wide}/steps`);
        await phone.getByRole('grid', { name: 'Steps' }).press('End');
        await phone.locator('.vbody .vrow', { hasText: 'last' }).waitFor();
        await sound(phone, 'large steps on a phone');
        await phone.context().close();
        await sound(page, 'large graph');
        await page.locator('.node', { hasText: '9998 side by side' }).click(); // too many to be drawn: to the table
        await page.getByText('9998 of 10000 steps').waitFor();
        assert.ok(await page.locator('.vbody .vrow').count() < 80, 'rows that nobody sees are drawn');
        await page.getByRole('grid', { name: 'Steps' }).press('End');
        await page.locator('.vbody .vrow', { hasText: 's9998' }).waitFor();
        await page.getByLabel('Search steps').fill('s7777');
        await page.locator('.vbody .vrow', { hasText: 's7777' }).click();
        await page.locator('.panel', { hasText: 's7777' }).waitFor();
        await page.keyboard.press('Escape');
        await action(page, 'signal').click();
        await confirm(page);
        await page.getByRole('tab', { name: 'Graph' }).click();
        await page.waitForFunction(() => / completed/.test(document.querySelector('.progress-row')?.innerText ?? ''));
        await page.getByRole('tab', { name: 'Timeline' }).click();
        await page.locator('.lane .span').first().waitFor();
        await action(page, 'cancel').click();
        await confirm(page);
        await status(page, 'cancelled', 120000);
    },

    /** Figures, one line of JSON: tests/bench/dashboard.py. */
    async speed() {
        const page = await open({ viewport: { width: 1280, height: 1700 } });
        await logIn(page, g.token);
        const painted = async (rows) => {
            await page.waitForSelector('.vbody .vrow');
            return page.evaluate((r) => ({ ['first_paint_ms' + r]: Math.round(performance.getEntriesByName('first-contentful-paint')[0].startTime), ['rows_ms' + r]: Math.round(performance.now()) }), rows);
        };
        const cdp = await page.context().newCDPSession(page);
        await cdp.send('Network.clearBrowserCache');
        await page.reload();
        const cold = await painted('_cold');
        await page.reload();
        const warm = await painted('_warm');
        const { planId } = await ask('begin');
        await page.goto(`${g.url}/#/plans/${planId}/steps`);
        await page.waitForSelector('.vbody .vrow');
        await page.evaluate(async () => {
            const { listen } = await import(document.querySelector('link[href$="events.js"]').href);
            globalThis.ages = [];
            listen((list) => list?.forEach((e) => globalThis.ages.push(Date.now() - e.tsMs)));
            globalThis.seen = {};
            const look = () => {
                for (const row of document.querySelectorAll('.vbody .vrow')) {
                    if (row.querySelector('.badge.is-completed')) {
                        globalThis.seen[row.dataset.key] ??= Date.now();
                    }
                }
                requestAnimationFrame(look);
            };
            look();
            globalThis.already = Object.keys(globalThis.seen); // before it was looked at
        });
        await ask('end');
        await page.waitForTimeout(500);
        const shown = await page.evaluate(() => Object.fromEntries(Object.entries(globalThis.seen).filter(([k]) => !globalThis.already.includes(k))));
        const ages = await page.evaluate(() => globalThis.ages.sort((a, b) => a - b));
        const part = (x) => ages[Math.floor((ages.length - 1) * x)];
        console.log(JSON.stringify({ ...cold, ...warm, in_page_ms_p50: part(0.5), in_page_ms_p99: part(0.99), shown }));
    },

    async away() {
        const page = await open();
        await logIn(page, g.token);
        await page.waitForFunction(() => document.documentElement.dataset.live === 'true');
        allowed = /ERR_|Failed to (load|fetch)|net::/;
        await ask('away');
        await page.locator('.banner', { hasText: 'The gateway is away' }).waitFor();
        await ask('back');
        await page.locator('.banner').waitFor({ state: 'hidden' });
        await page.getByText('Nothing was lost').waitFor();
        const { planId } = await ask('submit');
        await page.locator('.vbody .vrow').first().waitFor();
        await go(page, `/plans/${planId}/events`);
        await page.locator('.node, .vbody .vrow').first().waitFor();
        await ask('away');
        await page.locator('.banner:visible').waitFor();
        await page.goto('about:blank');
        await ask('back');
        await page.goto(`${g.url}/#/plans/${planId}/events`);
        const { lastSeq } = await ask('last', planId);
        await page.locator(`.vrow[data-key="${lastSeq}"]`).waitFor(); // still logged in, and all of it is there
        const { n, text } = await page.evaluate(() => ({ n: document.querySelectorAll('.vbody .vrow').length, text: document.querySelector('.filters').innerText }));
        assert.ok(n > 0 && /(\d+) of \1 events/.test(text), text);
    },
};

try {
    await scenarios[scenario]();
    assert.deepEqual(complaints, []);
    if (scenario !== 'speed') {
        console.log('all is well');
    }
} catch (e) {
    const pages = browser.contexts().flatMap((c) => c.pages());
    for (const [i, p] of pages.entries()) {
        await p.screenshot({ path: `/tmp/dashboard-failed-${i}.png` }).catch(() => {});
        console.error(p.url());
    }
    console.error(e.stack, complaints);
    process.exitCode = 1;
} finally {
    await browser.close();
    process.exit();
}
