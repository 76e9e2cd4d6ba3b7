import { join } from 'node:path';
import t from 'tap';
import { createAdmin } from '../../admin.ts';
import { folderRules } from '../../rules/folder-rules.ts';
import { perform, performAfter } from '../../story/perform.ts';
import { createPerson } from '../../story/person.ts';
import type { Change, Row } from '../../story/scenario.ts';
import { createStory } from '../../story/story.ts';

const { signal } = new AbortController();
// Nobody is asked: what rows and changes do is the test's.
const url = 'http://127.0.0.1:1';
const person = (name: string) => createPerson({ name, authUrl: url, mailboxUrl: url, signal });
const story = createStory({
  gatewayUrl: url,
  signal,
  ada: person('ada'),
  bob: person('bob'),
  admin: createAdmin({ url, jwtSecret: 'a secret of this test' }),
  rules: folderRules(join(url, 'limits')),
});
const change: Change = { make: async () => undefined, after: () => 'it was made' };

/** Answers with each of the texts in turn, and with the last one from then on. */
function rowOf(...texts: string[]): Row {
  return {
    what: 'GET /',
    expect: 'yes',
    act: async () => (texts.length > 1 ? texts.shift() : texts[0]) ?? '',
  };
}

t.test('a row comes out as expected, or not', async (t) => {
  t.match(await perform(rowOf('yes'), story, signal), { asExpected: true, answered: true, came: 'yes' });
  t.match(await perform(rowOf('no'), story, signal), { asExpected: false, answered: true, came: 'no' });
});

t.test('a row that nobody answers says why', async (t) => {
  const row: Row = {
    what: 'GET /',
    expect: 'yes',
    act: async ({ get }) => String((await get('/')).status),
  };
  t.match(await perform(row, story, signal), {
    asExpected: false,
    answered: false,
    came: /^no answer: .+/,
  });
});

t.test('a row after a change is repeated until it comes out as expected', async (t) => {
  const events: string[] = [];
  const recorded: Change = { ...change, make: async () => events.push('changed') };
  const row = rowOf('no', 'no', 'yes');
  const counting: Row = {
    ...row,
    act: (to) => {
      events.push('asked');
      return row.act(to);
    },
  };
  t.match(await performAfter(recorded, counting, { story, signal }), { asExpected: true, came: 'yes' });
  t.same(events, ['changed', 'asked', 'asked', 'asked']);
});

t.test('repeating ends at once when the demo is stopped', async (t) => {
  const stop = new AbortController();
  const asking = performAfter(change, rowOf('no'), { story, signal: stop.signal });
  stop.abort(new Error('stopped'));
  await t.rejects(asking);
});
