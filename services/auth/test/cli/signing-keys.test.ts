import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { signJwt, verifyJwt as verify } from '../../src/keys/jwt.ts';
import { parseSigningKeys, type SigningKeys } from '../../src/keys/signing-keys.ts';
import { jwtSecret } from '../helpers/auth-server.ts';
import { runOperatorCommand } from '../helpers/run-command.ts';

/** No command on keys connects. */
const databaseUrl = 'postgres://127.0.0.1:1/nowhere';

function verifies(token: string, keys: SigningKeys): boolean {
  return verify(token, keys, Date.now()).ok;
}

function parse(jwtKeys: string) {
  const parsed = parseSigningKeys({ jwtSecret, jwtKeys, jwtKeyId: '' });
  if (!parsed.ok) throw new Error(parsed.expected);
  return parsed.keys;
}

t.test('keys are rotated in three steps without a rejected token', async (t) => {
  const file = join(t.testdir(), 'keys.json');
  const run = (...args: string[]) =>
    runOperatorCommand(databaseUrl, ['signing-keys', ...args, '--file', file]);
  const keys = async () => parse(await readFile(file, 'utf8'));
  const ofSecret = signJwt({ sub: 'ada' }, parse(''));

  t.match(await run('new'), {
    exitCode: 0,
    output: '',
    errors: /wait until .* \(replicas and caches of the JWKS.*signing-keys rotate/,
  });
  t.equal((await stat(file)).mode & 0o777, 0o600);
  const added = await keys();
  t.equal(added.current.alg, 'HS256', 'the secret still signs');
  t.equal(added.byKid.size, 2, 'the new key is published');
  t.ok(verifies(ofSecret, added));
  t.match(await run('new'), { exitCode: 1, errors: /does not sign yet: run signing-keys rotate/ });

  t.match(await run('rotate'), { exitCode: 1, errors: /caches of the JWKS may lack .*--force/ });
  t.match(await run('rotate', '--force'), { exitCode: 0, errors: /wait until .*signing-keys retire/ });
  const rotated = await keys();
  t.equal(rotated.current.alg, 'ES256');
  t.ok(verifies(ofSecret, rotated), 'until it is retired');
  t.ok(verifies(signJwt({ sub: 'ada' }, rotated), added), 'servers that were not reloaded yet');

  t.match(await run('retire'), { exitCode: 1, errors: /jwt-secret has signed are valid until .*--force/ });
  t.match(await run('retire', rotated.current.kid), { exitCode: 1, errors: /signs: run signing-keys new/ });
  t.match(await run('retire', '--force'), { exitCode: 0, errors: /^removed jwt-secret/ });
  const retired = await keys();
  t.equal(retired.byKid.size, 1);
  t.notOk(verifies(ofSecret, retired));
  t.match(await run('retire'), { exitCode: 1, errors: /no key was replaced/ });

  // The waiting time of a key that was added long ago is over.
  t.match(await run('new', '--alg', 'EdDSA'), { exitCode: 0 });
  const stored: Record<string, unknown>[] = JSON.parse(await readFile(file, 'utf8'));
  for (const key of stored) if ('svc_added_at' in key) key.svc_added_at = 1;
  await writeFile(file, JSON.stringify(stored));
  t.match(await run('rotate'), { exitCode: 0 });
  t.equal((await keys()).current.alg, 'EdDSA');
});

t.test('without a file, keys are printed', async (t) => {
  const printed = await runOperatorCommand(databaseUrl, ['signing-keys', 'new', '--alg', 'RS256']);
  t.match(printed, { exitCode: 0, errors: /^set SVC_JWT_KEYS to the output/ });
  t.equal(parse(printed.output).byKid.size, 2);
  const piped = await runOperatorCommand(
    databaseUrl,
    ['signing-keys', 'rotate', '--force', '--file', '-'],
    printed.output,
  );
  t.equal(parse(piped.output).current.alg, 'RS256');
  const broken = await runOperatorCommand(
    databaseUrl,
    ['signing-keys', 'new', '--file', '-'],
    '{"k":"secret"',
  );
  t.match(broken, { exitCode: 1, output: '', errors: '-: not a JSON array of JWKs\n' });
});
