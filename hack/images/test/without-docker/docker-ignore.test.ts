import t from 'tap';
import { contextFiles, isIgnored, parseDockerIgnore } from '../../without-docker/docker-ignore.ts';

t.test('the last rule that fits a path or a folder above it decides', async (t) => {
  const rules = parseDockerIgnore('# all\n*\n!services\n!hack/images\n**/node_modules\n**/*.md\n');
  t.equal(isIgnored(rules, 'README.md'), true);
  t.equal(isIgnored(rules, '.npmrc'), true);
  t.equal(isIgnored(rules, 'hack/check.ts'), true);
  t.equal(isIgnored(rules, 'services/auth/src/main.ts'), false);
  t.equal(isIgnored(rules, 'hack/images/main.ts'), false);
  t.equal(isIgnored(rules, 'services/auth/README.md'), true);
  t.equal(isIgnored(rules, 'services/auth/node_modules/x/index.js'), true);
  t.equal(isIgnored(rules, 'services/auth/src/node_modules.ts'), false);
});

t.test('Docker is sent what images are made of, and no more', async (t) => {
  const files = await contextFiles('.');
  for (const file of [
    'package-lock.json',
    'services/xds/package.json',
    'services/auth/src/db/migrations/0001_users.sql',
    'proto/generated/ratelimit/config/ratelimit/v3/rls_conf_pb.js',
    'hack/images/main.ts',
  ])
    t.ok(files.includes(file), file);
  for (const pattern of [
    /^\.git\//,
    /^node_modules\//,
    /\/test\//,
    /^charts\//,
    /^\.tollgate-auth\//,
    /\.md$/,
  ])
    t.notOk(
      files.find((file) => pattern.test(file)),
      `nothing like ${pattern}`,
    );
});
