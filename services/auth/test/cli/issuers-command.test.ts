import { makeTextFolder } from '@tollgate/testkit/folders';
import t from 'tap';
import { runCommand } from '../helpers/run-command.ts';
import { startTokenIssuer } from '../helpers/token-issuer.ts';

const env = { SVC_EXT_AUTHZ_ISSUER_PRIVATE_HOSTS: '127.0.0.1' };

/** Runs `issuers check` with a token on standard input. */
async function check(
  args: readonly string[],
  { input = '', ...options }: { input?: string; env?: Readonly<Record<string, string>> } = {},
) {
  const run = await runCommand(['issuers', 'check', ...args], { env, input, ...options });
  return { code: run.exitCode, out: run.output, err: run.errors };
}

t.test('prints the keys of an issuer, and ignored keys with the reason', async (t) => {
  const idp = await startTokenIssuer(t, { path: '/realms/shop' });
  const { code, out } = await check([idp.issuer]);
  t.equal(code, 0);
  t.match(out, `issuer: ${idp.issuer}\nkeys of ${idp.issuer.replace('/realms/shop', '')}/jwks\n`);
  t.match(out, /key-1 +RSA +RS256 +verifies tokens/);
  const [published] = [{ kty: 'oct', k: 'c2VjcmV0', kid: 'secret' }];
  idp.publish('/jwks', { keys: [published] });
  const bad = await check([idp.issuer]);
  t.match(bad, { code: 1, out: /no key that can verify signatures/ });
});

t.test('says why a token is accepted or rejected', async (t) => {
  const idp = await startTokenIssuer(t);
  const accepted = await check([idp.issuer, '--aud', 'orders'], { input: `${await idp.sign()}\n` });
  t.match(accepted, { code: 0, out: /The token is accepted: user_id=issuer\|ada, plan=free, .*kind=user/ });
  const rejected = await check([idp.issuer, '--aud', 'billing'], { input: await idp.sign() });
  t.match(rejected, { code: 1, out: /The token is rejected: aud is not an accepted audience/ });
  const any = await check([idp.issuer], { input: await idp.sign() });
  t.match(any, { code: 0, out: /The audience of the token is not checked/ });
  const other = await check([idp.issuer], { input: await idp.sign({ iss: 'https://other.example' }) });
  t.match(other, { code: 1, out: 'its iss is not an issuer of these: https://other.example' });
});

t.test('checks a token against the issuers of route rules', async (t) => {
  const idp = await startTokenIssuer(t);
  const folder = makeTextFolder(t);
  const file = `${folder.path}/routes.yaml`;
  folder.write(
    'routes.yaml',
    `issuers: [{ name: idp, issuer: "${idp.issuer}", audiences: [orders], claims: { department: dept } }]`,
  );
  const token = await idp.sign({ dept: 'books' });
  t.match(await check(['--file', file], { input: token }), { code: 0, out: /department=books/ });
  folder.write('routes.yaml', 'routes: []');
  t.match(await check(['--file', file]), { code: 1, err: `${file} has no issuers` });
});

t.test('a private host that is not allowed is named', async (t) => {
  const idp = await startTokenIssuer(t);
  const { code, out } = await check([idp.issuer], { env: {} });
  t.equal(code, 1);
  t.match(out, /http: is not https/);
  t.match(await check([]), { code: 2, err: /name either an issuer or/ });
});
