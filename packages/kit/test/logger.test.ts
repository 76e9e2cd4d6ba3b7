import t from 'tap';
import { AppError, defineErrors, grpcStatus } from '../src/errors.ts';
import { createLogger, FailureLog, type LogFormat, type Logger, type LogLevel } from '../src/logger.ts';

const now = (): number => Date.UTC(2026, 0, 2, 3, 4, 5, 67);

function capture(format: LogFormat, level: LogLevel = 'trace'): { logger: Logger; lines: string[] } {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  return { logger: createLogger({ level, format, destination, now }), lines };
}

function jsonOf(write: (logger: Logger) => void): Record<string, unknown> {
  const { logger, lines } = capture('json');
  write(logger);
  return JSON.parse(lines.join('')) as Record<string, unknown>;
}

function textOf(write: (logger: Logger) => void): string {
  const { logger, lines } = capture('text');
  write(logger);
  return lines.join('');
}

t.test('a JSON line has message, timestamp, level and fields', (t) => {
  const { logger, lines } = capture('json');
  logger.info({ domain: 'd', hits: 3 }, 'over limit');
  t.equal(lines.length, 1);
  t.match(lines[0], /^[^\n]+\n$/);
  t.same(JSON.parse(lines[0] ?? ''), {
    '@message': 'over limit',
    '@timestamp': '2026-01-02T03:04:05.067Z',
    level: 'info',
    domain: 'd',
    hits: 3,
  });
  t.end();
});

t.test('a text line is written as logrus does, quoted where needed', (t) => {
  t.equal(
    textOf((logger) =>
      logger
        .child({ port: 8081 })
        .warn({ path: '/a-b_c.d', empty: '', list: ['x', 1], ok: true }, 'over limit'),
    ),
    'time="2026-01-02T03:04:05.067Z" level=warning msg="over limit" port=8081 path=/a-b_c.d empty="" list="[\\"x\\",1]" ok=true\n',
  );
  t.equal(
    textOf((logger) => logger.info('ready')),
    'time="2026-01-02T03:04:05.067Z" level=info msg=ready\n',
  );
  t.end();
});

t.test('no value can start a new line or control the terminal', (t) => {
  const line = textOf((logger) =>
    logger.info({ key: 'a\nlevel=error\r\u001b[31m\u2028\u0085x' }, 'two\nlines'),
  );
  t.equal(line.split(/[\n\r\u2028\u0085]/).length, 2, line);
  t.notMatch(line, '\u001b');
  t.match(line, 'msg="two\\nlines"');
  t.end();
});

t.test('lower levels are not written, and each level has its logrus name', (t) => {
  const { logger, lines } = capture('json', 'warn');
  for (const level of ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const) logger[level](level);
  t.same(
    lines.map((line) => (JSON.parse(line) as { level: string }).level),
    ['warning', 'error', 'fatal'],
  );
  t.end();
});

t.test('an error is described with its code, detail, stack and causes', (t) => {
  const cause = Object.assign(new Error('connect redis://u:hunter2@h'), { code: 'ECONNREFUSED' });
  const definition = { httpStatus: 503, grpcStatus: grpcStatus.unavailable, message: 'try again' };
  const err = new AppError('backend_failed', definition, { detail: 'node 3', cause });
  const line = jsonOf((logger) => logger.error({ err }, 'failed'));
  const { stack, ...shown } = line.err as { stack: string; cause: { stack?: string } };
  delete shown.cause.stack;
  t.match(stack, 'logger.test.ts');
  t.same(shown, {
    type: 'AppError',
    message: 'try again',
    code: 'backend_failed',
    detail: 'node 3',
    cause: { type: 'Error', message: 'connect redis://***@h', code: 'ECONNREFUSED' },
  });
  t.equal(
    textOf((logger) => logger.error({ err }, 'failed')).replace(/^.* msg/, 'msg'),
    'msg=failed err="try again" err.code=backend_failed err.detail="node 3" err.cause="connect redis://***@h" err.cause.code=ECONNREFUSED\n',
  );
  t.end();
});

t.test('cyclic causes, AggregateErrors and thrown values are described', (t) => {
  const circular = new Error('round');
  circular.cause = circular;
  t.match(
    textOf((logger) => logger.error({ err: circular })),
    /err=round err\.cause=round/,
  );
  const joined = new AggregateError([new Error('one'), new Error('two')], 'both');
  t.match(
    textOf((logger) => logger.error({ err: joined })),
    /err=both err\.errors\.0=one err\.errors\.1=two/,
  );
  t.match(
    textOf((logger) => logger.error({ err: 'thrown text' })),
    /err="thrown text"/,
  );
  t.match(
    textOf((logger) => logger.error({ err: { code: 7 } })),
    /err="\{\\"code\\":7\}"/,
  );
  t.match(
    textOf((logger) => logger.error(new Error('bare'))),
    /msg=bare err=bare/,
  );
  t.end();
});

t.test('an error logged without a message uses its own, without credentials', (t) => {
  const err = new Error('connect redis://u:hunter2@h');
  for (const line of [textOf((logger) => logger.error({ err })), textOf((logger) => logger.error(err))]) {
    t.match(line, 'msg="connect redis://***@h" err="connect redis://***@h"');
  }
  t.end();
});

t.test('an enormous error is truncated', (t) => {
  const { logger, lines } = capture('json');
  logger.error({ err: new Error('x'.repeat(10_000_000)) });
  t.ok(lines.join('').length < 100_000);
  t.end();
});

t.test('a field cannot replace the message, the time or the level', (t) => {
  const { logger, lines } = capture('json');
  logger.info({ level: 'fatal', '@message': 'm', '@timestamp': 't', key: 1 }, 'real');
  t.equal(lines[0]?.match(/"level":/g)?.length, 1);
  t.match(JSON.parse(lines[0] ?? ''), {
    level: 'info',
    '@message': 'real',
    '@timestamp': '2026-01-02T03:04:05.067Z',
    'fields.level': 'fatal',
    'fields.@message': 'm',
    'fields.@timestamp': 't',
    key: 1,
  });
  t.end();
});

t.test('fields with names of secrets are hidden', (t) => {
  for (const format of ['json', 'text'] as const) {
    const { logger, lines } = capture(format);
    logger.info({ password: 'hunter2', redis: { auth: 'hunter3', host: 'h' }, token: 'hunter4' }, 'settings');
    t.notMatch(lines[0], 'hunter', format);
    t.match(lines[0], '(hidden)', format);
  }
  t.end();
});

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
  const failures = new FailureLog({ logger, message: 'call failed', nowMs: () => clock.nowMs });
  return { lines, clock, failures };
}

t.test('equal failures are logged once a second, with the number withheld', async (t) => {
  const { lines, clock, failures } = recordFailures();
  for (let i = 0; i < 3_000; i += 1) {
    clock.nowMs = i;
    failures.log(backendFailure('no connection to Redis'));
  }
  t.match(
    lines.map(({ withheld }) => withheld),
    [0, 999, 999],
  );
  t.match(lines[0], { code: 'backend_failure', level: 'warning', '@message': 'call failed' });
});

t.test('a different failure is logged at once, with the fields of the call', async (t) => {
  const { lines, failures } = recordFailures();
  failures.log(backendFailure('no connection to Redis'));
  failures.log(errors.empty_domain(), { method: 'ShouldRateLimit' });
  failures.log(new TypeError('a defect'));
  t.match(lines, [
    { code: 'backend_failure' },
    { code: 'empty_domain', method: 'ShouldRateLimit' },
    { code: 'internal_error', level: 'error', err: { message: 'a defect' } },
  ]);
});

t.test('failures that all differ are logged up to a limit', async (t) => {
  const { lines, clock, failures } = recordFailures();
  for (let i = 0; i < 1_000; i += 1) {
    failures.log(backendFailure(`failure ${i}`));
  }
  t.equal(lines.length, 50);
  clock.nowMs = 1_000;
  failures.log('not even an error');
  t.match(lines.at(-1), { withheld: 950 });
});
