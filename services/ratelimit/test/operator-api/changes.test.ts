import { createLogger } from '@tollgate/kit/logger';
import t from 'tap';
import { Overrides } from '../../src/decision/overrides.ts';
import { CounterChanges } from '../../src/operator-api/changes.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';

t.test('changes at the same time are one message, and invalid messages are ignored', async (t) => {
  const { shared: store } = new MemoryStore({ nowMs: Date.now, maxCounters: 10 });
  const lines: string[] = [];
  const logger = createLogger({
    level: 'warn',
    format: 'json',
    destination: { write: (line) => lines.push(line) },
  });
  const overrides = new Overrides({ store, nowMs: Date.now, logger, onEnded: () => undefined });
  const changes = new CounterChanges({ store, overrides, logger });
  t.teardown(() => changes.stop());
  const forgotten: string[] = [];
  changes.addCache({
    forget: (keys) => forgotten.push(...keys),
    forgetByPrefix: (prefix) => forgotten.push(`${prefix}*`),
  });
  await changes.start();
  t.strictSame(forgotten.splice(0), ['*'], 'messages before the subscription were missed');
  const messages: string[] = [];
  const stopping = new AbortController();
  t.teardown(() => stopping.abort());
  const onMessage = (message: string) => messages.push(message);
  await store.subscribe({ onMessage, onGap: () => undefined }, stopping.signal);
  await Promise.all([
    changes.announce({ keys: ['a'] }),
    changes.announce({ keys: ['b', 'c'] }),
    changes.announce({ prefix: 'd' }),
  ]);
  t.equal(messages.length, 1);
  await changes.announce({ keys: ['e'] });
  t.equal(messages.length, 2);
  t.strictSame(new Set(forgotten), new Set(['a', 'b', 'c', 'd*', 'e']));
  for (const message of ['', '{}', '[1]', '[null]']) await store.publish(message);
  t.equal(lines.filter((line) => line.includes('ignored invalid message')).length, 4);
});
