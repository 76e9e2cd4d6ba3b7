import t from 'tap';
import { DpopNonces } from '../../src/dpop/nonces.ts';

const minuteMs = 60_000;
const startMs = 1_790_000_100_000;
const settings = { jwtSecret: 'a secret', jwtIssuer: '', apiExternalUrl: 'https://auth.example' };
const nonces = new DpopNonces(settings);

t.test('a nonce is valid in its period of five minutes, and in the next', (t) => {
  const nonce = nonces.current(startMs);
  t.match(nonce, /^[\w-]{22}$/);
  for (const [minutes, isValid] of [
    [-10, false],
    [-5, true],
    [0, true],
    [4.9, true],
    [9.9, true],
    [10, false],
  ] as const)
    t.equal(nonces.isValid(nonce, startMs + minutes * minuteMs), isValid, `after ${minutes} minutes`);
  t.not(nonces.current(startMs + 5 * minuteMs), nonce);
  t.end();
});

t.test('replicas share nonces, and servers with another secret or issuer do not', (t) => {
  const nonce = nonces.current(startMs);
  t.ok(new DpopNonces(settings).isValid(nonce, startMs));
  for (const other of [{ jwtSecret: 'another' }, { apiExternalUrl: 'https://other.example' }])
    t.notOk(new DpopNonces({ ...settings, ...other }).isValid(nonce, startMs));
  for (const value of [undefined, null, 5, '', nonce.slice(1)]) t.notOk(nonces.isValid(value, startMs));
  t.end();
});
