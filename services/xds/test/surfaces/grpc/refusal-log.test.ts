import { createLogger } from '@tollgate/kit/logger';
import { fakeClock } from '@tollgate/testkit/fake-clock';
import t from 'tap';
import { createRefusalLog } from '../../../src/surfaces/grpc/refusal-log.ts';

t.test('refusals are told once a second, with how many there were besides', async (t) => {
  const clock = fakeClock();
  const lines: unknown[] = [];
  const logger = createLogger({
    level: 'trace',
    format: 'json',
    destination: { write: (line) => void lines.push(JSON.parse(line)) },
  });
  const logRefusal = createRefusalLog({ logger, nowMs: clock.now });
  const refusal = { peer: '10.0.0.1:5000', node: 'limiter-1', reason: 'no token' };
  for (let count = 0; count < 100; count += 1) logRefusal(refusal);
  clock.advance(1_000);
  logRefusal(refusal);
  clock.set(0);
  logRefusal(refusal);
  t.match(lines, [
    { ...refusal, level: 'warning', '@message': 'stream refused', withheld: 0 },
    { ...refusal, withheld: 99 },
    { ...refusal, withheld: 0 },
  ]);
  t.equal(lines.length, 3);
});
