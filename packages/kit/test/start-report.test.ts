import { createLogger } from '@tollgate/kit/logger';
import { defineSettings, duration, int, list, text } from '@tollgate/kit/settings';
import { type SettingSources, StartReport } from '@tollgate/kit/start-report';
import t from 'tap';

const common = { group: 'Server', doc: 'D.' };
const spec = defineSettings({
  host: text({ ...common, env: 'SVC_HOST', aliases: ['GOTRUE_HOST'], default: 'localhost' }),
  ttlMs: duration({ ...common, env: 'SVC_TTL', default: '1h' }),
  size: int({ ...common, env: 'SVC_SIZE', default: 10, min: 1, max: 100, clamp: true }),
  hosts: list({ ...common, env: 'SVC_HOSTS', default: [] }),
  hookUrl: text({ ...common, env: 'SVC_HOOK_URL', default: '' }),
  secret: text({ ...common, env: 'SVC_SECRET', required: true, secret: true }),
  webhookUrl: text({ ...common, env: 'SVC_WEBHOOK_URL', default: '', hidden: 'path' }),
  templateUrl: text({ ...common, env: 'SVC_TEMPLATE_URL', default: '', hidden: 'path' }),
  headers: text({ ...common, env: 'SVC_HEADERS', default: '', hidden: true }),
});

function report(sources: SettingSources) {
  return new StartReport({ service: 'auth', version: '1.2.3', replica: 'auth-1', spec, sources });
}

function describe(sources: SettingSources) {
  return Object.fromEntries(
    report(sources)
      .get()
      .settings.map(({ name, ...rest }) => [name, rest]),
  );
}

t.test('each setting has its value, default and source', async (t) => {
  const found = describe({
    env: { GOTRUE_HOST: 'example.com', SVC_TTL: '60m', SVC_SIZE: '200', SVC_SECRET: 'canary' },
    files: new Map([['SVC_SIZE', '/etc/server.env']]),
  });
  t.strictSame(found.SVC_HOST, {
    ...{ group: 'Server', description: 'D.', form: 'text', secret: false, set: true, changed: true },
    ...{ value: 'example.com', default: 'localhost', source: 'environment', variable: 'GOTRUE_HOST' },
  });
  t.match(found.SVC_TTL, { value: '1h', changed: false, source: 'environment' }, '60m is the default');
  t.match(
    found.SVC_SIZE,
    { value: '100', default: '10', source: 'file', from: '/etc/server.env' },
    'clamped',
  );
  t.match(found.SVC_HOSTS, { value: '', default: '', set: false, changed: false, source: 'default' });
  t.strictSame(
    [found.SVC_SECRET?.value, found.SVC_SECRET?.default, found.SVC_SECRET?.set, found.SVC_SECRET?.changed],
    [undefined, undefined, true, true],
  );
});

t.test('values that another setting implies are defaults, or replace what is set', async (t) => {
  const implied = new Map([
    ['SVC_HOST', { value: '127.0.0.1', by: 'SVC_MODE=development', isForced: true as const }],
    ['SVC_TTL', { value: '10m', by: 'SVC_SECURITY_PROFILE=strict' }],
    ['SVC_SIZE', { value: '20', by: 'SVC_SECURITY_PROFILE=strict' }],
  ]);
  const found = describe({ env: { SVC_HOST: '0.0.0.0', SVC_TTL: '', SVC_SIZE: '10' }, implied });
  t.match(found.SVC_HOST, { value: '127.0.0.1', source: 'default', from: 'SVC_MODE=development' });
  t.match(found.SVC_TTL, { value: '10m', default: '10m', source: 'default', changed: false });
  t.match(found.SVC_SIZE, { value: '10', default: '20', source: 'environment', changed: true });
});

t.test('credentials are not shown', async (t) => {
  const canary = 'canary-of-the-test';
  const env = {
    SVC_HOOK_URL: `https://user:${canary}@hooks.example.com/in?key=${canary},${canary}&user=ada`,
    ...{ SVC_SECRET: canary, SVC_HEADERS: `{"x-token":["${canary}"]}` },
  };
  const found = describe({ env });
  t.notMatch(JSON.stringify(found), canary);
  t.equal(found.SVC_HOOK_URL?.value, 'https://***@hooks.example.com/in?key=***&user=***');
  t.match(found.SVC_HEADERS, { secret: true, set: true, changed: true });
});

t.test('warnings and errors of the start are collected from the log, whatever its format', async (t) => {
  const started = report({ env: {} });
  const destination = { write: () => undefined };
  const logger = createLogger({ level: 'info', format: 'text', destination, onLine: started.readLine });
  logger.info({ port: 1 }, 'listening');
  logger.warn({ variable: 'SVC_HOTS', meant: 'SVC_HOST', token: 'canary' }, 'unknown setting');
  logger.error({ err: new Error('in use'), port: 6070 }, 'debug server not started');
  for (let line = 0; line < 200; line++) logger.warn('again');
  const { warnings, ...identity } = started.get();
  t.match(identity, { service: 'auth', version: '1.2.3', replica: 'auth-1', started: /Z$/ });
  t.equal(warnings.length, 100);
  t.strictSame(warnings.slice(0, 2), [
    {
      level: 'warning',
      message: 'unknown setting',
      details: { variable: 'SVC_HOTS', meant: 'SVC_HOST', token: '(hidden)' },
    },
    { level: 'error', message: 'debug server not started', details: { err: 'in use', port: '6070' } },
  ]);
  const next = report({ env: {} });
  next.start();
  next.readLine('{"level":"warning","@message":"later"}');
  t.strictSame(next.get().warnings, [], 'later ones are not of the start');
});

t.test('lines of the log and warnings show of URLs what the settings in force show', (t) => {
  const canary = 'canary-of-the-test';
  const env = {
    SVC_HOOK_URL: `https://hooks.example.com/in?key=${canary}`,
    SVC_WEBHOOK_URL: ` https://ada:${canary}@hooks.example.com/${canary}`,
    SVC_TEMPLATE_URL: `https://ada:${canary}@hooks.example.com/${canary}/"${canary}"`,
    SVC_HOST: 'localhost',
  };
  for (const format of ['json', 'text'] as const) {
    const started = report({ env });
    const lines: string[] = [];
    const logger = createLogger({
      ...{ level: 'info', format, mask: started.maskLine, onLine: started.readLine },
      destination: { write: (line) => void lines.push(line) },
    });
    for (const url of Object.values(env)) {
      logger.warn({ location: url, err: new Error(`GET ${url.trim()}: 500`) }, 'template unavailable');
      if (URL.canParse(url)) logger.error(new Error(`404: ${new URL(url).href}`));
    }
    t.notMatch(lines.join(''), canary);
    t.match(lines[0], 'https://hooks.example.com/in?key=***');
    t.match(lines[2], 'https://hooks.example.com/***');
    t.match(lines.at(-1), 'GET localhost: 500');
    const { warnings } = started.get();
    t.equal(warnings.length, lines.length);
    t.notMatch(JSON.stringify(warnings), canary);
    t.match(warnings[4]?.details, { location: 'https://hooks.example.com/***' });
  }
  t.end();
});
