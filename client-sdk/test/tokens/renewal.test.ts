import t from 'tap';
import { renewBeforeSeconds } from '../../src/tokens/renewal.ts';

const early = { earlySeconds: 60, jitterSeconds: 30 };

t.test('a token is renewed before its expiry, with jitter', (t) => {
  t.equal(renewBeforeSeconds(3600, { ...early, random: 0 }), 60);
  t.equal(renewBeforeSeconds(3600, { ...early, random: 0.5 }), 75);
  t.end();
});

t.test('a token is not renewed in the first half of its remaining life', (t) => {
  t.equal(renewBeforeSeconds(60, { ...early, random: 0.9 }), 30);
  t.equal(renewBeforeSeconds(-100, { ...early, random: 0 }), 0);
  t.end();
});

t.test('a token that does not expire is not renewed', (t) => {
  t.equal(renewBeforeSeconds(Number.POSITIVE_INFINITY, { ...early, random: 0 }), 60);
  t.end();
});
