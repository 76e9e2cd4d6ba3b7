import t from 'tap';
import { type ClientRegistry, clientText, createClientRegistry } from '../../src/ads/limiters.ts';
import { limiterOf, rejectionOf, versions } from '../support/limiters.ts';
import { manualSchedule } from '../support/manual-schedule.ts';

const accepted = versions({ shop: '1' });

const countedIds = (clients: ClientRegistry): readonly string[] => [...clients.counted()].map(({ id }) => id);

function registry() {
  const time = manualSchedule();
  const clients = createClientRegistry({ schedule: time.schedule });
  const changes = { count: 0 };
  clients.onChange(() => {
    changes.count += 1;
  });
  return { time, clients, changes };
}

t.test('one that is new counts when it has answered, or has had the time to', async (t) => {
  const { time, clients, changes } = registry();
  for (const id of ['1', '2', '3', '4']) clients.put(limiterOf(id));
  t.equal(clients.size, 4);
  t.strictSame(countedIds(clients), []);
  clients.put(limiterOf('1', { accepted }));
  clients.put(limiterOf('2', { rejection: rejectionOf(accepted, 'no') }));
  clients.remove('3');
  t.strictSame(countedIds(clients), ['1', '2']);
  const before = changes.count;
  time.advance(5_000);
  t.strictSame(countedIds(clients), ['1', '2', '4']);
  t.equal(changes.count, before + 1, 'told once');
});

t.test('one that has gone does not count, and leaves nothing behind', async (t) => {
  const { time, clients, changes } = registry();
  clients.put(limiterOf('1', { accepted }));
  clients.put(limiterOf('2'));
  for (const id of ['1', '2', '3']) clients.remove(id);
  t.equal(clients.size, 0);
  t.strictSame([...clients.all()], []);
  t.strictSame(countedIds(clients), []);
  t.equal(time.waiting, 0);
  t.equal(changes.count, 4);
});

t.test('text of a client is cut, and shows what would not be seen', async (t) => {
  t.equal(clientText('first: größe\nsecond: 限', 100), 'first: größe\nsecond: 限');
  t.equal(clientText('a\u001b[2J\r\u0000b', 100), 'a\\u001b[2J\\u000d\\u0000b');
  t.equal(clientText('\u202egnp\u200b.exe\u2028', 100), '\\u202egnp\\u200b.exe\\u2028');
  t.equal(clientText('\u0000'.repeat(50), 20).length, 20);
  t.equal(clientText('a😀b', 2), 'a\ufffd');
});
