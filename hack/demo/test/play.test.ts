import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join, resolve } from 'node:path';
import { freePort } from '@tollgate/testkit/free-port';
import t from 'tap';
import { applyEdit, ask, askUntilAsExpected } from '../play.ts';
import { type Row, scenario } from '../scenario.ts';

const config = resolve(import.meta.dirname, '../config');
const row: Row = { path: '/orders', headers: { 'x-tenant': 'acme' }, expect: { status: 200 } };

/** Answers each request with the next of the statuses, and with the last one from then on. */
async function serveStatuses(t: Tap, statuses: number[]): Promise<string> {
  const server = createServer((request, response) => {
    const status =
      request.headers['x-tenant'] === 'acme' ? (statuses.length > 1 ? statuses.shift() : statuses[0]) : 400;
    response.writeHead(status ?? 500).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
}

type Tap = Pick<typeof t, 'teardown'>;

t.test('a row is sent with its headers and answered with a status', async (t) => {
  const url = await serveStatuses(t, [200]);
  const outcome = await ask(row, { url, signal: new AbortController().signal });
  t.match(outcome, { answered: true, answer: { status: 200 } });
});

t.test('a row that nobody answers says why', async (t) => {
  const url = `http://127.0.0.1:${await freePort()}`;
  const outcome = await ask(row, { url, signal: new AbortController().signal });
  t.match(outcome, { answered: false, reason: /^no answer: .*ECONNREFUSED/ });
});

t.test('a row after an edit is sent until it comes out as expected', async (t) => {
  const url = await serveStatuses(t, [429, 429, 200, 429]);
  const outcome = await askUntilAsExpected(row, { url, signal: new AbortController().signal });
  t.match(outcome, { answered: true, answer: { status: 200 } });
});

t.test('asking ends at once when the demo is stopped', async (t) => {
  const url = await serveStatuses(t, [429]);
  const stop = new AbortController();
  const asking = askUntilAsExpected(row, { url, signal: stop.signal });
  stop.abort(new Error('stopped'));
  await t.rejects(asking, { message: 'stopped' });
});

t.test('an edit changes the one line that it names', async (t) => {
  const folder = t.testdir({ 'a.yaml': 'x: 1\ny: 10\n' });
  await applyEdit({ file: 'a.yaml', from: 'x: 1', to: 'x: 2' }, folder);
  t.equal(readFileSync(join(folder, 'a.yaml'), 'utf8'), 'x: 2\ny: 10\n');
});

t.test('an edit of a line that is not there, or there twice, is an error', async (t) => {
  const folder = t.testdir({ 'a.yaml': 'x: 1\nx: 1\n' });
  await t.rejects(applyEdit({ file: 'a.yaml', from: 'x: 1', to: 'x: 2' }, folder), {
    message: /exactly one line/,
  });
  await t.rejects(applyEdit({ file: 'a.yaml', from: 'z: 1', to: 'x: 2' }, folder), {
    message: /exactly one line/,
  });
});

t.test('every edit of the scenario finds its line in the rules of the demo', async (t) => {
  const folder = t.testdir({});
  mkdirSync(folder, { recursive: true });
  const edits = scenario.flatMap(({ edit }) => edit ?? []);
  t.ok(edits.length > 0);
  for (const edit of edits) {
    writeFileSync(join(folder, edit.file), readFileSync(join(config, edit.file)));
    await t.resolves(applyEdit(edit, folder));
  }
});
