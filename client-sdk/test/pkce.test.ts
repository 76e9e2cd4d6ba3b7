import t from 'tap';
import { ConfigurationError } from '../src/errors.ts';
import { calculateCodeChallenge, generateCodeVerifier } from '../src/pkce.ts';

t.test('the verifier of RFC 7636 Appendix B gives its challenge', async (t) => {
  const challenge = await calculateCodeChallenge('dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk');
  t.equal(challenge, 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM');
});

t.test('verifiers have the form of the RFC and differ', async (t) => {
  const verifiers = new Set(Array.from({ length: 50 }, generateCodeVerifier));
  t.equal(verifiers.size, 50);
  for (const verifier of verifiers) t.match(verifier, /^[A-Za-z0-9_-]{43}$/);
});

t.test('an invalid code verifier is rejected before it is sent', async (t) => {
  for (const verifier of ['', 'short', 'a'.repeat(42), 'a'.repeat(129), `${'a'.repeat(43)}+`]) {
    await t.rejects(calculateCodeChallenge(verifier), ConfigurationError);
  }
  await t.resolves(calculateCodeChallenge('a'.repeat(43)));
  await t.resolves(calculateCodeChallenge('.-_~'.repeat(32)));
});
