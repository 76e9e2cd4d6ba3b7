import t from 'tap';
import { isFlowExpired, matchesChallenge, parseCodeChallenge } from '../../src/flows/pkce.ts';

const challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';

t.test('verifier matches the challenge of RFC 7636, appendix B', (t) => {
  const verifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
  t.ok(matchesChallenge(verifier, { challenge, method: 's256' }));
  t.notOk(matchesChallenge(`${verifier}A`, { challenge, method: 's256' }));
  t.notOk(matchesChallenge(challenge, { challenge, method: 's256' }));
  t.ok(matchesChallenge(challenge, { challenge, method: 'plain' }));
  t.notOk(matchesChallenge(verifier, { challenge, method: 'plain' }));
  t.end();
});

t.test('challenge requires a known method, in any case', (t) => {
  t.equal(parseCodeChallenge({}), undefined);
  t.equal(parseCodeChallenge({ code_challenge: '', code_challenge_method: '' }), undefined);
  t.same(parseCodeChallenge({ code_challenge: challenge, code_challenge_method: 'S256' }), {
    challenge,
    method: 's256',
  });
  for (const members of [
    { code_challenge: challenge },
    { code_challenge_method: 'plain' },
    { code_challenge: challenge, code_challenge_method: 'md5' },
    { code_challenge: challenge.slice(1), code_challenge_method: 's256' },
    { code_challenge: 'a'.repeat(129), code_challenge_method: 's256' },
    { code_challenge: `${challenge}+`, code_challenge_method: 's256' },
  ])
    t.throws(
      () => parseCodeChallenge(members),
      { code: 'validation_failed', message: /code_challenge/ },
      JSON.stringify(members),
    );
  t.end();
});

t.test('code expires five minutes after it was issued', (t) => {
  const createdAt = new Date(0);
  t.notOk(isFlowExpired({ createdAt, codeIssuedAt: new Date(1_000_000) }, 1_299_999));
  t.ok(isFlowExpired({ createdAt, codeIssuedAt: new Date(1_000_000) }, 1_300_000));
  t.ok(isFlowExpired({ createdAt, codeIssuedAt: undefined }, 300_000));
  t.end();
});
