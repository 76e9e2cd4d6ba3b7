import t from 'tap';
import {
  describeRedisAddress,
  describeRedisTarget,
  parseRedisAddress,
  parseRedisAuth,
  parseRedisTarget,
  type RedisAddress,
} from '../../src/config/redis-target.ts';

t.test('every form of an address is parsed', (t) => {
  const tcp = (host: string, port: number, more = {}): RedisAddress => ({ kind: 'tcp', host, port, ...more });
  const unix = (path: string): RedisAddress => ({ kind: 'unix', path });
  const forms: readonly (readonly [url: string, socketType: string, address: RedisAddress])[] = [
    ['localhost:6379', 'tcp', tcp('localhost', 6379)],
    ['localhost:6379', 'unix', tcp('localhost', 6379)],
    ['redis.example_1.svc:1', 'TCP', tcp('redis.example_1.svc', 1)],
    ['[::1]:6380', 'tcp', tcp('::1', 6380)],
    [':6379', 'tcp', tcp('localhost', 6379)],
    [':6379', 'unix', tcp('localhost', 6379)],
    ['[::ffff:127.0.0.1]:6380', 'tcp6', tcp('::ffff:127.0.0.1', 6380)],
    ['/run/redis.sock', 'unix', unix('/run/redis.sock')],
    ['/run/redis.sock', 'tcp', unix('/run/redis.sock')],
    ['redis.sock', 'unix', unix('redis.sock')],
    ['redis.sock', 'UNIX', unix('redis.sock')],
    ['unix:///run/redis.sock', 'tcp', unix('/run/redis.sock')],
    ['redis://h', 'unix', tcp('h', 6379)],
    ['redis://h:1', 'tcp', tcp('h', 1)],
    ['REDIS://h:1', 'tcp', tcp('h', 1)],
    ['redis://[::1]:1', 'tcp', tcp('::1', 1)],
    ['redis://h/2', 'tcp', tcp('h', 6379, { db: 2 })],
    ['redis://h/2?db=3', 'tcp', tcp('h', 6379, { db: 3 })],
    [
      'redis://user:p%40ss@h:1?db=2',
      'tcp',
      tcp('h', 1, { credentials: { username: 'user', password: 'p@ss' }, db: 2 }),
    ],
    ['redis://:secret@h:1', 'tcp', tcp('h', 1, { credentials: { password: 'secret' } })],
    ['rediss://h:1', 'tcp', tcp('h', 1, { tls: true })],
  ];
  for (const [url, socketType, address] of forms) {
    t.strictSame(parseRedisAddress(url, socketType), { ok: true, address }, `${url} (${socketType})`);
  }
  t.end();
});

t.test('an invalid address is rejected with the valid forms', (t) => {
  const bad: readonly (readonly [url: string, socketType: string])[] = [
    ['', 'tcp'],
    ['', 'unix'],
    ['unix://', 'tcp'],
    ['localhost', 'tcp'],
    ['localhost:', 'tcp'],
    ['localhost:0', 'tcp'],
    ['localhost:65536', 'tcp'],
    ['localhost:port', 'tcp'],
    ['::1:6379', 'tcp'],
    ['[::1]', 'tcp'],
    ['a:1,b:2', 'tcp'],
    ['user:secret@h:1', 'tcp'],
    ['http://h:1', 'tcp'],
    ['http://h/', 'unix'],
    ['redis://', 'tcp'],
    ['redis:///2', 'tcp'],
    ['redis://h:65536', 'tcp'],
    ['redis://h?db=two', 'tcp'],
    ['redis://h?db=-1', 'tcp'],
    ['redis://user@h', 'tcp'],
    ['redis://user:p%zz@h', 'tcp'],
  ];
  for (const [url, socketType] of bad) {
    t.match(
      parseRedisAddress(url, socketType),
      { ok: false, expected: /host:port.*unix socket/ },
      `"${url}"`,
    );
  }
  t.end();
});

t.test('KVSTORE_AUTH is a password, or user and password split at the first colon', (t) => {
  t.equal(parseRedisAuth(''), undefined);
  t.strictSame(parseRedisAuth('secret'), { password: 'secret' });
  t.strictSame(parseRedisAuth('user:sec:ret'), { username: 'user', password: 'sec:ret' });
  t.strictSame(parseRedisAuth(':secret'), { password: 'secret' });
  t.end();
});

t.test('an address is described without credentials', (t) => {
  const described = (url: string): string => {
    const parsed = parseRedisAddress(url, 'tcp');
    return parsed.ok ? describeRedisAddress(parsed.address) : '';
  };
  t.equal(described('redis://user:secret@h:1?db=2'), 'h:1');
  t.equal(described('[::1]:1'), '[::1]:1');
  t.equal(described('/run/redis.sock'), '/run/redis.sock');
  t.end();
});

const node = (host: string, port: number, more: object = {}) => ({ kind: 'tcp', host, port, ...more });

t.test('sentinels follow the name of the master', (t) => {
  t.strictSame(parseRedisTarget('sentinel', 'mymaster,10.0.0.1:26379, [::1]:26380', 'unix'), {
    ok: true,
    target: {
      kind: 'sentinel',
      master: 'mymaster',
      sentinels: [node('10.0.0.1', 26379), node('::1', 26380)],
    },
  });
  t.end();
});

t.test('some nodes are enough to discover a cluster', (t) => {
  t.strictSame(parseRedisTarget('cluster', 'a:7000,redis://:secret@b:7001', 'unix'), {
    ok: true,
    target: {
      kind: 'cluster',
      nodes: [node('a', 7000), node('b', 7001, { credentials: { password: 'secret' } })],
    },
  });
  t.end();
});

t.test('invalid targets are rejected with the expected form', (t) => {
  for (const url of [
    '',
    'mymaster',
    'host:26379',
    'host:1,host:2',
    ',host:1',
    'mymaster,',
    'mymaster,host',
    'm,/socket',
    'm,redis://:secret@host:1',
    'm,rediss://host:1',
  ]) {
    const result = parseRedisTarget('sentinel', url, 'tcp');
    t.match(result, { ok: false, expected: /name of the master/ }, url);
  }
  for (const url of ['', 'host', 'a:1,', 'a:1,b', 'a:1,/socket', 'a:0', 'a:1 b:2', 'a:1,redis://b:1?db=2']) {
    t.match(parseRedisTarget('cluster', url, 'tcp'), { ok: false, expected: /nodes of the cluster/ }, url);
  }
  t.end();
});

t.test('a list for a single server is rejected with the setting to change', (t) => {
  for (const url of ['mymaster,10.0.0.1:26379', 'a:7000,b:7001', 'redis://a:7000,b:7001', 'rediss://a,b/0']) {
    t.match(parseRedisTarget('single', url, 'tcp'), { ok: false, expected: /sentinel or cluster/ }, url);
  }
  for (const url of ['redis://u:one,two@a:1', '/run/a,b.sock', 'unix:///run/a,b.sock']) {
    t.match(parseRedisTarget('single', url, 'tcp'), { ok: true }, url);
  }
  t.end();
});

t.test('it is logged without credentials', (t) => {
  const shown = (type: 'single' | 'sentinel' | 'cluster', url: string) => {
    const result = parseRedisTarget(type, url, 'tcp');
    return result.ok ? describeRedisTarget(result.target) : undefined;
  };
  t.equal(shown('single', 'redis://u:secret@a:1?db=2'), 'a:1');
  t.equal(shown('sentinel', 'mymaster,a:1,b:2'), 'mymaster,a:1,b:2');
  t.equal(shown('cluster', 'redis://u:secret@a:1,b:2'), 'a:1,b:2');
  t.end();
});
