import { join } from 'node:path';
import t from 'tap';
import { createAdmin } from '../admin.ts';
import { PolicyFolder } from '../policies.ts';
import type { Change, Row } from '../scenario.ts';
import {
  counted,
  createPerson,
  createStory,
  limited,
  perform,
  performAfter,
  readReply,
  stockReader,
  tampered,
} from '../story.ts';

const { signal } = new AbortController();
// No services run: the test defines what rows and changes do.
const url = 'http://127.0.0.1:1';
const person = (name: string) => createPerson({ name, authUrl: url, mailboxUrl: url, signal });
const story = createStory({
  gatewayUrl: url,
  signal,
  ada: person('ada'),
  bob: person('bob'),
  admin: createAdmin({ url, jwtSecret: 'a secret of this test' }),
  policies: new PolicyFolder(join(url, 'policies')),
});
const change: Change = { make: async () => undefined, after: () => 'it was made' };

/** Answers with each of the texts in turn, and with the last one from then on. */
function toRow(...texts: string[]): Row {
  return {
    what: 'GET /',
    expect: 'yes',
    act: async () => (texts.length > 1 ? texts.shift() : texts[0]) ?? '',
  };
}

t.test('a row compares its result with the expected one', async (t) => {
  t.match(await perform(toRow('yes'), story, signal), { asExpected: true, answered: true, actual: 'yes' });
  t.match(await perform(toRow('no'), story, signal), { asExpected: false, answered: true, actual: 'no' });
});

t.test('a row without a response says why', async (t) => {
  const row: Row = {
    what: 'GET /',
    expect: 'yes',
    act: async ({ get }) => String((await get('/')).status),
  };
  t.match(await perform(row, story, signal), {
    asExpected: false,
    answered: false,
    actual: /^no answer: .+/,
  });
});

t.test('a row after a change is repeated until it has the expected result', async (t) => {
  const events: string[] = [];
  const recorded: Change = { ...change, make: async () => events.push('changed') };
  const row = toRow('no', 'no', 'yes');
  const counting: Row = {
    ...row,
    act: (to) => {
      events.push('asked');
      return row.act(to);
    },
  };
  t.match(await performAfter(recorded, counting, { story, signal }), { asExpected: true, actual: 'yes' });
  t.same(events, ['changed', 'asked', 'asked', 'asked']);
});

t.test('repeating ends at once when the demo is stopped', async (t) => {
  const stop = new AbortController();
  const asking = performAfter(change, toRow('no'), { story, signal: stop.signal });
  stop.abort(new Error('stopped'));
  await t.rejects(asking);
});

const names = new Map([['u1', 'ada']]);
const ada = { caller: { userId: 'u1', plan: 'free', role: 'authenticated' } };
const rateLimit = { 'ratelimit-limit': '5', 'ratelimit-remaining': '4' };

function reply(status: number, body: unknown, headers: Record<string, string> = {}) {
  return readReply(new Response(typeof body === 'string' ? body : JSON.stringify(body), { status, headers }));
}

t.test('a response of the shop shows the user and the remaining requests', async (t) => {
  t.equal(counted(await reply(200, ada, rateLimit), names), '200 ada (free), 4 of 5 left');
  t.equal(counted(await reply(200, ada), names), '200 ada (free), not counted');
  t.equal(counted(await reply(200, { caller: {} }), names), '200 no user, not counted');
  t.equal(counted(await reply(200, ada), new Map()), '200 u1 (free), not counted');
});

t.test('where other requests may count, too, only the limit is shown', async (t) => {
  t.equal(limited(await reply(200, ada, rateLimit), names), '200 ada (free), limit 5');
  t.equal(limited(await reply(200, ada), names), '200 ada (free), limit none');
});

t.test('a rejection shows its error code', async (t) => {
  t.equal(counted(await reply(401, { error_code: 'bad_jwt' }), names), '401 bad_jwt');
  t.equal(limited(await reply(502, { error: 'no stock' }), names), '502 no stock');
  t.equal(counted(await reply(503, 'no healthy upstream'), names), '503 without a reason');
});

t.test('the catalogue shows the identity that read the stock', async (t) => {
  t.equal(
    stockReader(await reply(200, { stock: { caller: { role: 'service' } } })),
    '200 stock read as service',
  );
  t.equal(stockReader(await reply(200, { stock: { caller: {} } })), '200 stock read as anonymous');
  t.equal(stockReader(await reply(502, { error: 'no stock' })), '502 no stock');
});

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

t.test('a tampered token has another role and the original signature', async (t) => {
  const token = `${encode({ alg: 'HS256' })}.${encode({ sub: 'u1', role: 'authenticated' })}.signature`;
  t.equal(tampered(token), `${encode({ alg: 'HS256' })}.${encode({ sub: 'u1', role: 'service' })}.signature`);
});
