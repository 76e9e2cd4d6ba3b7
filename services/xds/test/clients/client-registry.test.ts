import { compareText } from '@tollgate/kit/compare-text';
import t from 'tap';
import { type ClientRegistry, createClientRegistry } from '../../src/clients/client-registry.ts';
import { limiterOf, rejectionOf, versions } from '../support/limiters.ts';
import { manualSchedule } from '../support/manual-schedule.ts';

const accepted = versions({ shop: '1' });

const expectedIds = (clients: ClientRegistry): readonly string[] =>
  [...clients.expected()].map(({ id }) => id).sort(compareText);

function registry() {
  const time = manualSchedule();
  const clients = createClientRegistry({ schedule: time.schedule });
  const changes = { count: 0 };
  clients.onChange(() => {
    changes.count += 1;
  });
  return { time, clients, changes };
}

t.test('a limiter that leaves is expected back for a while', async (t) => {
  const { time, clients, changes } = registry();
  clients.put(limiterOf('1', { accepted }));
  clients.remove('1');
  t.equal(clients.size, 0);
  t.strictSame([...clients.all()], []);
  t.strictSame(expectedIds(clients), ['1']);
  time.advance(9_999);
  t.strictSame(expectedIds(clients), ['1']);
  t.equal(changes.count, 2);
  time.advance(1);
  t.strictSame(expectedIds(clients), []);
  t.equal(changes.count, 3);
});

t.test('one that is back, on another port, is counted once', async (t) => {
  const { time, clients } = registry();
  clients.put(limiterOf('1', { nodeId: 'one', peer: '[::1]:40001', accepted }));
  clients.remove('1');
  clients.put(limiterOf('2', { nodeId: 'one', peer: '[::1]:40002' }));
  t.strictSame(expectedIds(clients), ['1'], 'until it has answered, for what it enforces');
  clients.put(limiterOf('2', { nodeId: 'one', peer: '[::1]:40002', accepted }));
  t.strictSame(expectedIds(clients), ['2']);
  t.equal(time.waiting, 0);
});

t.test('one that is new counts when it has answered, or has had the time to', async (t) => {
  const { time, clients, changes } = registry();
  for (const id of ['1', '2', '3', '4']) clients.put(limiterOf(id));
  t.equal(clients.size, 4);
  t.strictSame(expectedIds(clients), []);
  clients.put(limiterOf('1', { accepted }));
  clients.put(limiterOf('2', { rejection: rejectionOf(accepted, 'no') }));
  clients.remove('3');
  t.strictSame(expectedIds(clients), ['1', '2']);
  const before = changes.count;
  time.advance(5_000);
  t.strictSame(expectedIds(clients), ['1', '2', '4']);
  t.equal(changes.count, before + 1, 'told once');
});

t.test('of several of one name and address, one that comes is one that left', async (t) => {
  const { time, clients } = registry();
  for (const id of ['1', '2', '3']) clients.put(limiterOf(id, { nodeId: 'default', accepted }));
  clients.remove('1');
  clients.remove('2');
  clients.put(limiterOf('4', { nodeId: 'default', accepted }));
  t.equal(expectedIds(clients).length, 3);
  clients.put(limiterOf('4', { nodeId: 'default', accepted }));
  t.equal(expectedIds(clients).length, 3, 'what it says later is no coming');
  time.advance(10_000);
  t.strictSame(expectedIds(clients), ['3', '4']);
});

t.test('another name, or another address, is somebody else', async (t) => {
  const { clients } = registry();
  clients.put(limiterOf('1', { nodeId: 'one', peer: '10.0.0.1:1', accepted }));
  clients.remove('1');
  clients.put(limiterOf('2', { nodeId: 'two', peer: '10.0.0.1:1', accepted }));
  clients.put(limiterOf('3', { nodeId: 'one', peer: '10.0.0.2:1', accepted }));
  t.strictSame(expectedIds(clients), ['1', '2', '3']);
});

t.test('one that had accepted nothing is not missed', async (t) => {
  const { time, clients } = registry();
  clients.put(limiterOf('1'));
  time.advance(5_000);
  clients.remove('1');
  t.strictSame(expectedIds(clients), []);
  t.equal(time.waiting, 0);
});

t.test('there is an end to how many are remembered', async (t) => {
  const { clients } = registry();
  for (let i = 0; i < 10_001; i += 1) {
    clients.put(limiterOf(`${i}`, { accepted }));
    clients.remove(`${i}`);
  }
  t.equal(expectedIds(clients).length, 10_000);
});
