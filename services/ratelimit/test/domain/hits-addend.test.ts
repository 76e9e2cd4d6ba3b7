import t from 'tap';
import { hitsAddend } from '../../src/domain/hits-addend.ts';
import type { Descriptor } from '../../src/domain/rate-limit-request.ts';

function hits(ofRequest: number, more: Omit<Descriptor, 'entries'> = {}): number {
  return hitsAddend({ domain: 'd', descriptors: [], hitsAddend: ofRequest }, { entries: [], ...more });
}

t.test('without a number of its own a descriptor takes the request’s, and at least 1', async (t) => {
  t.equal(hits(0), 1);
  t.equal(hits(1), 1);
  t.equal(hits(5), 5);
  t.equal(hits(4_294_967_295), 4_294_967_295);
});

t.test('its own number goes before the request’s, 0 included', async (t) => {
  t.equal(hits(5, { hitsAddend: 3n }), 3);
  t.equal(hits(5, { hitsAddend: 0n }), 0);
});

t.test('hits given back take nothing', async (t) => {
  t.equal(hits(5, { hitsAddend: 3n, isNegativeHits: true }), 0);
  t.equal(hits(5, { isNegativeHits: true }), 0);
  t.equal(hits(5, { hitsAddend: 3n, isNegativeHits: false }), 3);
});

t.test('more hits than any limit are as many as break every limit', async (t) => {
  t.equal(hits(0, { hitsAddend: 2n ** 32n - 1n }), 2 ** 32 - 1);
  t.equal(hits(0, { hitsAddend: 2n ** 32n }), 2 ** 32);
  t.equal(hits(0, { hitsAddend: 2n ** 64n - 1n }), 2 ** 32);
});
