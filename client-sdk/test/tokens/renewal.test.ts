import t from 'tap';
import { renewalTime } from '../../src/tokens/renewal.ts';

const early = { earlySeconds: 60, jitterSeconds: 30 };

t.test('a token is renewed before its expiry, with jitter', (t) => {
  t.equal(renewalTime(4600, 1000, { ...early, random: 0 }), 4540);
  t.equal(renewalTime(4600, 1000, { ...early, random: 0.5 }), 4525);
  t.end();
});

t.test('a token is not renewed in the first half of its remaining life', (t) => {
  t.equal(renewalTime(1060, 1000, { ...early, random: 0.9 }), 1030);
  t.equal(renewalTime(900, 1000, { ...early, random: 0 }), 900);
  t.end();
});

t.test('a token that does not expire is not renewed', (t) => {
  t.equal(renewalTime(undefined, 1000, { ...early, random: 0 }), Number.POSITIVE_INFINITY);
  t.end();
});
