import { makeTextFolder } from '@tollgate/testkit/text-folder';
import t from 'tap';
import { runCommand } from '../support/run-command.ts';

const check = (...args: string[]) => runCommand('cli/check-manifests.ts', args);

const manifest = (name: string, domain: string, unit = 'Hour') => `
apiVersion: ratelimit.tollgate.dev/v1alpha1
kind: RateLimitConfig
metadata: { name: ${name} }
spec:
  domain: ${domain}
  descriptors:
    - { key: user, rateLimit: { unit: ${unit}, requestsPerUnit: 1 } }
`;

t.test('a folder whose objects would all be accepted ends with what they come to', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('a.yaml', `${manifest('one', 'one')}---${manifest('two', 'two')}`);
  const { exitCode, output, errors } = await check('-folder', folder.path);
  t.strictSame([exitCode, output, errors], [0, 'ok: 2 objects, 2 domains, 2 limits\n', '']);
});

t.test('what is no YAML, objects that are not valid, and conflicts are told with their place', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('a.yaml', manifest('one', 'one'));
  folder.write('b.yaml', manifest('two', 'one'));
  folder.write('c.yaml', manifest('three', 'three', 'Eon'));
  folder.write('d.yaml', 'kind: [');
  const { exitCode, output } = await check('-folder', folder.path);
  t.equal(exitCode, 1);
  const lines = output.trimEnd().split('\n');
  t.match(lines[0], `${folder.path}/d.yaml:`);
  t.match(output, new RegExp(`${folder.path}/b\\.yaml#1: DuplicateKey: [^]*a\\.yaml#1`));
  t.match(output, new RegExp(`${folder.path}/c\\.yaml#1: Invalid: [^]*rateLimit\\.unit: must be one of`));
  t.equal(lines.at(-1), 'not ok: 3 problems');
});

t.test('manifests behind a link to a directory are passed over with a warning', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('elsewhere/b.yaml', manifest('two', 'two'));
  folder.write('config/a.yaml', manifest('one', 'one'));
  folder.swapLink('config/more', '../elsewhere');
  const { exitCode, output } = await check('-folder', `${folder.path}/config`);
  t.equal(exitCode, 0);
  t.strictSame(output.trimEnd().split('\n'), [
    `${folder.path}/config/more: warning: a link to a directory is not followed`,
    'ok: 1 object, 1 domain, 1 limit',
  ]);
  t.match(JSON.parse((await check('-folder', `${folder.path}/config`, '-json')).output), {
    ok: true,
    warnings: [{ source: `${folder.path}/config/more`, message: 'a link to a directory is not followed' }],
  });
});

t.test('-json prints the same for programs', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('a.yaml', manifest('one', 'one'));
  const { exitCode, output } = await check('-folder', folder.path, '-json');
  t.equal(exitCode, 0);
  t.strictSame(JSON.parse(output), {
    ok: true,
    problems: [],
    warnings: [],
    objects: 1,
    domains: 1,
    limits: 1,
  });
});

t.test('a folder with nothing for the server is told', async (t) => {
  const folder = makeTextFolder(t);
  folder.write('a.yaml', 'apiVersion: apps/v1\nkind: Deployment\n');
  const { exitCode, output } = await check('-folder', folder.path);
  t.strictSame(
    [exitCode, output],
    [
      1,
      `${folder.path}: there is no RateLimitConfig in its .yaml, .yml and .json files\nnot ok: 1 problem\n`,
    ],
  );
});

t.test('a folder that is not there, or none, is told', async (t) => {
  t.match(await check('-folder', '/nowhere'), { exitCode: 1, errors: 'there is no such folder' });
  t.match(await check(), { exitCode: 2, errors: '-folder is needed' });
});
