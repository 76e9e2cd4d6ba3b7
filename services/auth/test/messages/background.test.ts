import { createLogger } from '@tollgate/kit/logger';
import t from 'tap';
import { Background } from '../../src/messages/background.ts';

function startBackground() {
  const lines: string[] = [];
  const logger = createLogger({
    level: 'info',
    format: 'json',
    destination: { write: (line) => void lines.push(line) },
  });
  return { background: new Background(logger), logs: () => lines.join('') };
}

t.test('close waits for work started by other work', async (t) => {
  const { background } = startBackground();
  const gate = Promise.withResolvers<void>();
  let done = false;
  background.run('outer', async () => {
    await gate.promise;
    background.run('inner', async () => {
      await new Promise(setImmediate);
      done = true;
    });
  });
  const closed = background.close(new AbortController().signal);
  gate.resolve();
  await closed;
  t.ok(done);
});

t.test('close waits for all work, failures are logged', async (t) => {
  const { background, logs } = startBackground();
  const gate = Promise.withResolvers<void>();
  const done: number[] = [];
  for (let number = 0; number < 20; number++)
    background.run('counting', async () => {
      await gate.promise;
      done.push(number);
    });
  background.run('failing', () => Promise.reject(new Error('no way')));
  const closed = background.close(new AbortController().signal);
  gate.resolve();
  await closed;
  t.equal(done.length, 20);
  t.match(logs(), /"work":"failing"/);
  t.match(logs(), /no way/);
});

t.test('close stops waiting when the signal aborts', async (t) => {
  const { background } = startBackground();
  const gate = Promise.withResolvers<void>();
  background.run('waiting', () => gate.promise);
  await background.close(AbortSignal.abort());
  t.pass('it gave up');
  gate.resolve();
});

t.test('work beyond the queue limit is dropped and logged', async (t) => {
  const { background, logs } = startBackground();
  const gate = Promise.withResolvers<void>();
  for (let number = 0; number < 1_006; number++) background.run('waiting', () => gate.promise);
  gate.resolve();
  await background.close(new AbortController().signal);
  t.match(logs(), /QueueFull/);
  t.equal(logs().trim().split('\n').length, 1);
});
