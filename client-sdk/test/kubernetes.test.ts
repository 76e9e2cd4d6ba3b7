import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  kubernetesServiceAccount,
  readServiceAccountToken,
  spiffeSvidFile,
  tokenFileAssertion,
  workloadIdentity,
} from '../src/kubernetes.ts';

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
const jwt = (claims: object) => `${encode({ alg: 'RS256' })}.${encode(claims)}.c2ln`;
const now = () => 1000;

t.test('the token is read again after the kubelet has replaced the folder', async (t) => {
  const folder = t.testdir({});
  const publish = (name: string, content: string) => {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, 'token'), content);
    symlinkSync(name, join(folder, '..data_tmp'));
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
  };
  const first = jwt({ exp: 2000, sub: 'one' });
  const second = jwt({ exp: 3000, sub: 'two' });
  publish('..1', first);
  symlinkSync('..data/token', join(folder, 'token'));
  const auth = kubernetesServiceAccount({ path: join(folder, 'token'), now });
  t.equal(auth.method, 'client_assertion');
  t.equal(await auth.assertion(), first);
  publish('..2', `${second}\n`);
  t.equal(await auth.assertion(), second);
});

t.test('an expired token, an empty and a missing file say what is wrong, without the token', async (t) => {
  const old = jwt({ exp: 999 });
  const folder = t.testdir({ old, empty: ' \n', long: 'x'.repeat(300_000) });
  const read = (name: string) => readServiceAccountToken({ path: join(folder, name), now });
  await t.rejects(read('old'), {
    name: 'TokenUnavailableError',
    message: /expired at 1970-01-01T00:16:39.000Z/,
    retryable: true,
  });
  t.notMatch(await read('old').catch((error: Error) => error.message), old);
  await t.rejects(read('empty'), { message: /is empty/ });
  await t.rejects(read('long'), { message: /too long/ });
  await t.rejects(read('missing'), { message: /projected volume/, cause: { code: 'ENOENT' } });
});

t.test('a token without exp, or of another kind, is sent unchecked', async (t) => {
  const folder = t.testdir({ opaque: 'opaque', eternal: jwt({ sub: 'x' }) });
  t.equal(await readServiceAccountToken({ path: join(folder, 'opaque'), now }), 'opaque');
  t.equal(await readServiceAccountToken({ path: join(folder, 'eternal') }), jwt({ sub: 'x' }));
});

t.test('cloud token files come from the environment, SPIFFE uses its own assertion type', async (t) => {
  const folder = t.testdir({ azure: 'a', aws: 'b' });
  const azure = join(folder, 'azure');
  const aws = join(folder, 'aws');
  t.equal(await workloadIdentity({ AZURE_FEDERATED_TOKEN_FILE: azure }).assertion(), 'a');
  t.equal(
    await workloadIdentity({ AZURE_FEDERATED_TOKEN_FILE: '', AWS_WEB_IDENTITY_TOKEN_FILE: aws }).assertion(),
    'b',
  );
  t.throws(() => workloadIdentity({}), { name: 'ConfigurationError', message: /AZURE_FEDERATED_TOKEN_FILE/ });
  t.match(spiffeSvidFile({ path: aws }), { type: /jwt-spiffe$/ });
  t.notHas(tokenFileAssertion({ path: aws }), 'type');
});
