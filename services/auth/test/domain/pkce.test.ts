import t from 'tap';
import { isFlowOver, matchesChallenge, parseChallenge } from '../../src/sign-in/pkce.ts';

const challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';

t.test('the pair of RFC 7636, appendix B', (t) => {
  const verifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
  t.ok(matchesChallenge(verifier, { challenge, method: 's256' }));
  t.notOk(matchesChallenge(`${verifier}A`, { challenge, method: 's256' }));
  t.notOk(matchesChallenge(challenge, { challenge, method: 's256' }));
  t.ok(matchesChallenge(challenge, { challenge, method: 'plain' }));
  t.notOk(matchesChallenge(verifier, { challenge, method: 'plain' }));
  t.end();
});

t.test('a challenge comes with a method that is known, in any case of letters, or not at all', (t) => {
  t.same(parseChallenge({}), { ok: true, challenge: undefined });
  t.same(parseChallenge({ code_challenge: '', code_challenge_method: '' }), {
    ok: true,
    challenge: undefined,
  });
  t.same(parseChallenge({ code_challenge: challenge, code_challenge_method: 'S256' }), {
    ok: true,
    challenge: { challenge, method: 's256' },
  });
  for (const members of [
    { code_challenge: challenge },
    { code_challenge_method: 'plain' },
    { code_challenge: challenge, code_challenge_method: 'md5' },
    { code_challenge: challenge.slice(1), code_challenge_method: 's256' },
    { code_challenge: 'a'.repeat(129), code_challenge_method: 's256' },
    { code_challenge: `${challenge}+`, code_challenge_method: 's256' },
  ])
    t.match(parseChallenge(members), { ok: false, message: /code_challenge/ }, JSON.stringify(members));
  t.end();
});

t.test('a code is good for five minutes from when it was issued', (t) => {
  const createdAt = new Date(0);
  t.notOk(isFlowOver({ createdAt, codeIssuedAt: new Date(1_000_000) }, 1_299_999));
  t.ok(isFlowOver({ createdAt, codeIssuedAt: new Date(1_000_000) }, 1_300_000));
  t.ok(isFlowOver({ createdAt, codeIssuedAt: undefined }, 300_000));
  t.end();
});
