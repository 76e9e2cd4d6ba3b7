import t from 'tap';
import { ClientRegistry, escapeClientText } from '../../src/ads/clients.ts';
import { makeLimiter, makeRejection, versions } from '../support/limiters.ts';
import { manualSchedule } from '../support/manual-schedule.ts';

const accepted = versions({ shop: '1' });

const countedIds = (limiters: ClientRegistry): readonly string[] =>
  [...limiters.settled()].map(({ id }) => id);

function registry() {
  const time = manualSchedule();
  const limiters = new ClientRegistry({ schedule: time.schedule });
  const changes = { count: 0 };
  limiters.onChange(() => {
    changes.count += 1;
  });
  return { time, limiters, changes };
}

t.test('new limiter counts after its first answer or its timeout', async (t) => {
  const { time, limiters, changes } = registry();
  for (const id of ['1', '2', '3', '4']) limiters.put(makeLimiter(id));
  t.equal(limiters.size, 4);
  t.strictSame(countedIds(limiters), []);
  limiters.put(makeLimiter('1', { accepted }));
  limiters.put(makeLimiter('2', { rejection: makeRejection(accepted, 'no') }));
  limiters.remove('3');
  t.strictSame(countedIds(limiters), ['1', '2']);
  const before = changes.count;
  time.advance(5_000);
  t.strictSame(countedIds(limiters), ['1', '2', '4']);
  t.equal(changes.count, before + 1, 'notified once');
});

t.test('disconnected limiter does not count and leaves no timer', async (t) => {
  const { time, limiters, changes } = registry();
  limiters.put(makeLimiter('1', { accepted }));
  limiters.put(makeLimiter('2'));
  for (const id of ['1', '2', '3']) limiters.remove(id);
  t.equal(limiters.size, 0);
  t.strictSame([...limiters.all()], []);
  t.strictSame(countedIds(limiters), []);
  t.equal(time.waiting, 0);
  t.equal(changes.count, 4);
});

t.test('client text is cut, and invisible characters are escaped', async (t) => {
  t.equal(escapeClientText('first: größe\nsecond: 限', 100), 'first: größe\nsecond: 限');
  t.equal(escapeClientText('a\u001b[2J\r\u0000b', 100), 'a\\u001b[2J\\u000d\\u0000b');
  t.equal(escapeClientText('\u202egnp\u200b.exe\u2028', 100), '\\u202egnp\\u200b.exe\\u2028');
  t.equal(escapeClientText('\u0000'.repeat(50), 20).length, 20);
  t.equal(escapeClientText('a😀b', 2), 'a\ufffd');
});
