import { globSync, readFileSync } from 'node:fs';
import { findBinary } from '@tollgate/testkit/processes';
import t from 'tap';

/** Code of tests: benchmarks and the test of the gateways are set up by other modes. */
const testCode = {
  patterns: [
    'packages/{testkit/src,*/test}/**/*.ts',
    '{services/*,client-sdk,proto}/test/**/*.ts',
    'hack/{charts,demo,e2e,images,release,run-tests,test}/**/*.ts',
  ],
  exclude: ['**/node_modules/**', 'hack/test/programs.test.ts', 'hack/run-tests/test-files.test.ts'],
};

/** In every Debian, macOS and Fedora; npm comes with Node, and ps is started on macOS only. */
const everywhere = ['cp', 'env', 'mkfifo', 'npm', 'ps', 'sh', 'sleep'];
/** Publishes releases, which no test does. */
const untested = ['docker'];

/** Calls whose program is not in the code: its values. */
const variablePrograms: Readonly<Record<string, readonly string[]>> = {
  'packages/testkit/src/chromium.ts': ['chromium-headless-shell'],
  'packages/testkit/src/kube-binaries.ts': ['etcd', 'kube-apiserver', 'kubectl'],
  'packages/testkit/src/processes.ts': [],
  'packages/testkit/src/text-proxies.ts': ['envoy', 'caddy', 'nginx'],
  'client-sdk/test/integration/runtimes/runtimes.test.ts': ['node-22.12.0', 'deno', 'bun', 'workerd'],
  'hack/charts/browser-proxies.test.ts': ['caddy', 'nginx'],
  'hack/charts/examples.test.ts': ['caddy', 'nginx'],
};

const literalCall =
  /\b(?:findBinary|programIsMissing|spawn|spawnSync|execFile|execFileSync|execSync|promisify\(execFile\))\(\s*'([^' ]+)'/g;
const alias = /const (\w+) = promisify\(execFile\);/;
const variableCall = /\b(?:findBinary|programIsMissing)\((?!\s*['"])/;

/** The programs in the lists of hack/setup.sh. */
function installedPrograms(): string[] {
  const setup = readFileSync('hack/setup.sh', 'utf8');
  return ['server_programs', 'test_programs', 'installed_programs'].flatMap((name) => {
    const [, list = ''] = new RegExp(`^${name}='([^']*)'$`, 'm').exec(setup) ?? [];
    return list.split(/\s+/).map((program) => program.replace(/=.*/, ''));
  });
}

t.test('hack/setup.sh installs every program that tests start, and no other', async (t) => {
  const files = globSync(testCode.patterns, { exclude: testCode.exclude }).map(
    (path) => [path, readFileSync(path, 'utf8')] as const,
  );
  t.ok(files.length > 500, `${files.length} files`);
  t.strictSame(
    files.flatMap(([path, source]) => (variableCall.test(source) ? [path] : [])).toSorted(),
    Object.keys(variablePrograms).toSorted(),
    'the values of all variables are known',
  );
  const literals = files.flatMap(([, source]) => {
    const [, run = 'execFile'] = alias.exec(source) ?? [];
    const aliasCall = new RegExp(`\\b${run}\\(\\s*'([^' ]+)'`, 'g');
    return [...source.matchAll(literalCall), ...source.matchAll(aliasCall)].map(([, name = '']) => name);
  });
  const started = new Set([...literals, ...Object.values(variablePrograms).flat()]);
  const needed = [...started].filter((name) => !/^no-such|^\/|^\$/.test(name));
  t.strictSame(
    needed.filter((name) => !everywhere.includes(name) && !untested.includes(name)).toSorted(),
    installedPrograms().toSorted(),
  );
});

t.test(
  'all of them are here',
  { skip: process.env.CI !== 'true' && 'left out: a person may go without' },
  async (t) => {
    // A literal, so that this runs after `hack/setup.sh go-tools` has compiled it.
    findBinary('kube-apiserver');
    for (const name of installedPrograms()) t.ok(findBinary(name), name);
  },
);
