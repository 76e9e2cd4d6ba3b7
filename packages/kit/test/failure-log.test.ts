import t from 'tap';
import { defineErrors, grpcStatus } from '../src/errors.ts';
import { createFailureLog, createLogger } from '../src/logger.ts';

const errors = defineErrors({
  backend_failure: { httpStatus: 500, grpcStatus: grpcStatus.unavailable, message: 'backend failure' },
  empty_domain: { httpStatus: 400, grpcStatus: grpcStatus.unknown, message: 'domain must not be empty' },
});

const backendFailure = (message: string) => errors.backend_failure({ message });

function recordFailures() {
  const lines: Readonly<Record<string, unknown>>[] = [];
  const clock = { nowMs: 0 };
  const logger = createLogger({
    level: 'warn',
    format: 'json',
    destination: { write: (line) => lines.push(JSON.parse(line)) },
  });
  const logFailure = createFailureLog({ logger, message: 'call failed', nowMs: () => clock.nowMs });
  return { lines, clock, logFailure };
}

t.test('equal failures are told once a second, with how many there were besides', async (t) => {
  const { lines, clock, logFailure } = recordFailures();
  for (let i = 0; i < 3_000; i += 1) {
    clock.nowMs = i;
    logFailure(backendFailure('no connection to Redis'));
  }
  t.match(
    lines.map(({ withheld }) => withheld),
    [0, 999, 999],
  );
  t.match(lines[0], { code: 'backend_failure', level: 'warning', '@message': 'call failed' });
});

t.test('another failure is told at once, with what is known of the call', async (t) => {
  const { lines, logFailure } = recordFailures();
  logFailure(backendFailure('no connection to Redis'));
  logFailure(errors.empty_domain(), { method: 'ShouldRateLimit' });
  logFailure(new TypeError('a defect'));
  t.match(lines, [
    { code: 'backend_failure' },
    { code: 'empty_domain', method: 'ShouldRateLimit' },
    { code: 'internal_error', level: 'error', err: { message: 'a defect' } },
  ]);
});

t.test('failures that all differ are told up to a bound', async (t) => {
  const { lines, clock, logFailure } = recordFailures();
  for (let i = 0; i < 1_000; i += 1) {
    logFailure(backendFailure(`failure ${i}`));
  }
  t.equal(lines.length, 50);
  clock.nowMs = 1_000;
  logFailure('not even an error');
  t.match(lines.at(-1), { withheld: 950 });
});
