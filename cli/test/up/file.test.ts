import { join } from 'node:path';
import t from 'tap';
import { emitKubernetes } from '../../src/up/emit.ts';
import { readUpFile } from '../../src/up/file.ts';
import { cli } from '../helpers/tollgate.ts';

const valid = `upstream: http://localhost:3000
listen: 8000
redis: redis://:secret@127.0.0.1:6379
ports: { authHttp: 7002 }
routes:
  - { path: /public, access: Public, limits: [] }
  - { path: /admin, methods: [GET], access: { roles: [admin] } }
limits:
  - { name: per-caller, by: [User], requests: 60, per: Minute, plans: { pro: { requests: 600 } } }
`;

function readValid(text = valid) {
  const read = readUpFile(text, 'up.yaml');
  if (!read.ok) throw new Error(read.problems.join('\n'));
  return read.file;
}

t.test('a file says where everything is, and who may call what', async (t) => {
  const file = readValid();
  t.match(file, {
    upstream: { host: 'localhost', port: 3000 },
    ports: { envoy: 8000, authHttp: 7002, authGrpc: 9001 },
    redis: 'redis://:secret@127.0.0.1:6379',
  });
  t.match(file.warnings, [/^up.yaml:8: limits: no limit counts API keys/]);
  t.match(readValid('upstream: http://[::1]'), {
    upstream: { host: '::1', port: 80 },
    ports: { envoy: 10_000 },
  });
});

t.test('every mistake is reported at once, with its line and what to do', async (t) => {
  const mistakes: readonly (readonly [text: string, ...problems: RegExp[]])[] = [
    ['', /^up.yaml: expected fields/],
    ['a: [', /^up.yaml:\d: /],
    ['upstream: http://a\n---\nupstream: http://b', /has several documents/],
    ['listen: 1', /:1: upstream must be the URL of your application, such as/],
    ['upstream: https://a', /:1: upstream must be/],
    ['upstream: http://a/path', /:1: upstream must be/],
    ['upstream: http://a\nlistens: 1', /:2: unknown field listens: did you mean listen\?$/],
    ['upstream: http://a\nlisten: 0', /:2: listen must be a TCP port/],
    [
      'upstream: http://a\nports:\n  authGrpc: 9002',
      /:3: .*ports.authGrpc are both 9002: change one of them/,
    ],
    ['upstream: http://a\nports:\n  auth: 1', /:3: unknown field auth: expected one of envoyAdmin, /],
    ['upstream: http://a\nredis: localhost', /:2: redis must be a URL such as redis:/],
    ['upstream: http://a\nroutes: /a', /:2: routes must be a list/],
    ['upstream: http://a\nroutes:\n  - access: Public', /:3: routes\[0\] needs a path/],
    ['upstream: http://a\nroutes:\n  - path: /auth/x', /:3: \/auth is forwarded to the auth server/],
    [
      'upstream: http://a\nroutes:\n  - { path: a, access: Open }',
      /:3: routes\[0\].access: must be one of Public/,
    ],
    ['upstream: http://a\nroutes:\n  - { path: a, access: Public }', /:3: routes\[0\].path: .*slash/],
    ['upstream: http://a\nroutes:\n  - { path: /a, limits: [b] }', /:3: routes\[0\].limits\[0\]: /],
    ['upstream: http://a\naccess: { role: [a] }', /:2: access.role: .*roles/],
    [
      'upstream: b\nlimits:\n  - { name: a, by: [Usr], requests: 1, per: Minutes }',
      ...[/:1: upstream must be/, /:3: limits\[0\].by\[0\]: /, /:3: limits\[0\].per: must be one of Second/],
    ],
  ];
  for (const [text, ...problems] of mistakes)
    t.match(readUpFile(text, 'up.yaml'), { ok: false, problems }, text);
});

t.test('objects for Kubernetes have no secrets', async (t) => {
  const text = emitKubernetes(readValid(), { name: 'shop', namespace: 'web', hosts: ['a.test', '*.a.test'] });
  t.match(text, /^#.*\n(?:#.*\n)*---\napiVersion: v1\nkind: Namespace\n/);
  t.match(text, /allowed-hosts: a.test,\*.a.test\n/);
  t.match(text, /# {3}ratelimit:\n# {5}settings:\n# {7}KVSTORE_URL: 127.0.0.1:6379\n/);
  t.match(text, /kind: AccessPolicy\nmetadata:\n {2}name: shop\n {2}namespace: web\nspec:\n {2}hosts:\n/);
  t.match(text, /matches:\n\s+- path:\n\s+value: \/admin\n\s+methods:\n\s+- GET\n/);
  t.notMatch(text, /secret/);
});

t.test('names that Kubernetes refuses are refused before', async (t) => {
  const file = join(t.testdir({ 'My Shop.yaml': valid }), 'My Shop.yaml');
  const emit = ['up', file, '--emit', 'kubernetes'];
  t.match(await cli(t)(...emit), { exitCode: 2, errors: /: My Shop\. Set --name to lower-case letters/ });
  t.match(await cli(t)(...emit, '--name', 'shop'), { exitCode: 0, output: /name: shop\n/ });
  const { output } = await cli(t)(
    'up',
    join(t.testdir({ a: valid.replaceAll('\n', '\r\n') }), 'a'),
    '--emit',
    'kubernetes',
  );
  t.match(output, /path:\n +value: \/public\n/, 'line ends of Windows');
});
